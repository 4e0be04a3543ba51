package media

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging/scale"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/storagedrivers"
)

// sized returns a rendition of a width.
func sized(name string, width int) ingest.Rendition {
	return ingest.Rendition{Name: name, Box: scale.Box{Width: width}}
}

func TestRenditionErrors(t *testing.T) {
	t.Parallel()
	many := make([]ingest.Rendition, 17)
	for i := range many {
		many[i] = sized(fmt.Sprint("r", i), 1)
	}
	for want, renditions := range map[string][]ingest.Rendition{
		`rendition "A": a name is 1 to 64`:                                     {sized("A", 1)},
		`rendition "a": it is there twice`:                                     {sized("a", 1), sized("a", 2)},
		`rendition "a": width or height is missing`:                            {sized("a", 0)},
		`rendition "a": width and height are from 1 to 16383`:                  {sized("a", 16384)},
		`rendition "a": format is same, webp, jpeg or png, not GIF`:            {{Name: "a", Box: scale.Box{Width: 1}, Format: "GIF"}},
		`rendition "a": quality is a number from 1 to 100`:                     {{Name: "a", Box: scale.Box{Width: 1}, Quality: 101}},
		`image alias "content": renditions are at most 16 in an alias, not 17`: many,
	} {
		config := configOf(t)
		config.Aliases[0].Renditions = renditions
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
		config.Aliases[2].Prefix = prefix
		s, err := New(config)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", prefix, err, want)
		}
		if err == nil {
			_ = s.Close()
		}
	}
	config := configOf(t)
	config.Aliases = config.Aliases[:1]
	config.Aliases[0].Prefix, config.Aliases[0].Renditions = "/", []ingest.Rendition{sized("a", 1)}
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
	config.Aliases[0].Renditions = []ingest.Rendition{
		sized("small", 20), sized("other", 20), sized("wide", 200), sized("large", 60),
		{Name: "tall", Box: scale.Box{Height: 10}},
		{Name: "square", Box: scale.Box{Width: 50, Height: 50, Cover: true}},
	}
	s := start(t, config)
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 40, 100)), nil); err != nil {
		t.Fatal(err)
	}
	turned := "\xFF\xD8\xFF\xE1\x00\x22Exif\x00\x00MM\x00\x2A\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00" +
		photo.String()[2:]
	storage, _ := s.Storage("default")
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
