package media

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

func TestRenditionErrors(t *testing.T) {
	t.Parallel()
	many := map[string]*Rendition{}
	for i := range 17 {
		many[fmt.Sprint("r", i)] = &Rendition{Width: 1}
	}
	for want, renditions := range map[string]map[string]*Rendition{
		`rendition "A": a name is 1 to 64`:                                     {"A": {Width: 1}},
		`renditions.a: width or height is missing`:                             {"a": {Fit: "cover"}, "b": {}},
		`renditions.b: width or height is missing`:                             {"a": {Height: 1}, "b": nil},
		`renditions.a: width and height are from 1 to 16383`:                   {"a": {Width: 16384}},
		`renditions.a.width is a number above zero`:                            {"a": {Width: -1}},
		`renditions.a.format is one of same, webp, jpeg, png, not "gif"`:       {"a": {Width: 1, Format: "gif"}},
		`renditions.a: quality is a number from 1 to 100, not 101`:             {"a": {Width: 1, Quality: 101}},
		`image alias "content": renditions are at most 16 in an alias, not 17`: many,
	} {
		config := configOf(t)
		config.ImageAliases["content"].Renditions = renditions
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestRenditionFolders: no alias lies in the folder of renditions, which is outside of its own.
func TestRenditionFolders(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"img/content@renditions":     `prefix: the folder "content@renditions" is reserved for renditions`,
		"img/Content@Renditions/1/x": `prefix: the folder "Content@Renditions" is reserved for renditions`,
		"img/@renditions/":           `prefix: the folder "@renditions" is reserved for renditions`,
		"img/content@renditions2":    "",
	} {
		config := configOf(t)
		config.FileAliases["content"].Prefix = prefix
		s, err := New(config)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", prefix, err, want)
		}
		if err == nil {
			_ = s.Close()
		}
	}
	config := configOf(t)
	config.ImageAliases = map[string]*ImageAlias{
		"content": {AliasOptions: AliasOptions{Prefix: "/"}, Renditions: map[string]*Rendition{"a": {Width: 1}}},
	}
	config.FileAliases = nil
	if _, err := New(config); err == nil || !strings.Contains(err.Error(), "prefix other than /") {
		t.Errorf("at the root: %v", err)
	}
}

func TestRevalidated(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		cacheForever:                             "public, max-age=86400",
		cacheAsk:                                 "public, no-cache",
		"no-store":                               "no-store",
		"public":                                 "public, max-age=86400",
		"private, MAX-AGE=60":                    "private, MAX-AGE=60",
		"max-age=60, s-maxage=9999999":           "max-age=60, s-maxage=86400",
		"s-maxage=60":                            "s-maxage=60, max-age=86400",
		`max-age="100000",immutable`:             "max-age=86400",
		"max-age=never":                          "max-age=86400",
		"max-age=5, stale-while-revalidate=9999": "max-age=5",
	} {
		if got := revalidated(given); got != want {
			t.Errorf("%q becomes %q, want %q", given, got, want)
		}
	}
}

func TestImageSrcset(t *testing.T) {
	t.Parallel()
	config := configOf(t)
	config.ImageAliases["content"].Renditions = map[string]*Rendition{
		"small": {Width: 20}, "other": {Width: 20}, "wide": {Width: 200}, "large": {Width: 60},
		"tall": {Height: 10}, "square": {Width: 50, Height: 50, Fit: "cover"},
	}
	s := start(t, config)
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 40, 100)), nil); err != nil {
		t.Fatal(err)
	}
	turned := "\xFF\xD8\xFF\xE1\x00\x22Exif\x00\x00MM\x00\x2A\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00" +
		photo.String()[2:]
	storage, _ := s.core.Storage("default")
	for key, content := range map[string]string{
		"img/content/a b,c.jpg": turned, "img/content/a.svg": "<svg/>", "img/content/bad.jpg": "no picture", "img/content/a.webp": "RIFF",
	} {
		if _, err := storage.Put(t.Context(), key, strings.NewReader(content), storagedrivers.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const photoSet = "/static/img/content@other/a%20b%2Cc.jpg 20w, /static/img/content@square/a%20b%2Cc.jpg 40w, " +
		"/static/img/content@large/a%20b%2Cc.jpg 60w, /static/img/content/a%20b%2Cc.jpg 100w"
	for filename, want := range map[string]string{
		"a b,c.jpg": strings.Replace(photoSet, "@square/a%20b%2Cc.jpg 40w", "@square/a%20b%2Cc.jpg 50w", 1),
		"a.svg":     "/static/img/content/a.svg",
		"bad.jpg":   "", "none.jpg": "", "../x.jpg": "", "a b,c.jpg.webp": "",
	} {
		for range 2 { // the second time from memory
			if got, err := s.ImageSrcset(t.Context(), "content", filename); got != want || err != nil {
				t.Errorf("%s: %q, %v, want %q", filename, got, err, want)
			}
		}
	}
	if _, err := s.ImageSrcset(t.Context(), "none", "a.jpg"); err == nil {
		t.Error("an unknown alias is no error")
	}
}
