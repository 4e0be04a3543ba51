package item

import (
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
	"github.com/caddymedia/media/storagedrivers"
)

// TestRenditionKeys: the image is found from the key, and no folder is the key of another
// rendition.
func TestRenditionKeys(t *testing.T) {
	t.Parallel()
	alias := &Alias{Prefix: "pics"}
	f := RenditionFile{&Rendition{Name: "a", Box: scale.Box{Width: 1}}, imaging.WebP}
	folder, first, _ := strings.Cut(alias.RenditionKey("a.jpg", f, storagedrivers.Info{Key: "x"}), "a.jpg/")
	if folder != "pics@renditions/1/" {
		t.Errorf("the folder is %q", folder)
	}
	keys := map[string]bool{}
	for _, filename := range []string{
		"a.jpg", "in/a.jpg", "1/a.jpg", "a.jpg/" + first, "a.jpg/" + first + "/b.png", "2/a.jpg/b.png", "ä b.jpg",
	} {
		key := alias.RenditionKey(filename, f, storagedrivers.Info{Key: "x"})
		got, ok := alias.ImageOfRendition(key)
		if got != filename || !strings.HasSuffix(key, "/"+first) || !ok {
			t.Errorf("%s is of %q, %t", key, got, ok)
		}
		for other := range keys {
			if strings.HasPrefix(key, other+"/") || strings.HasPrefix(other, key+"/") {
				t.Errorf("%s and %s", key, other)
			}
		}
		keys[key] = true
	}
	for _, key := range []string{"pics/a.jpg", "pics@renditions/a.jpg", "pics@renditions/2/a.jpg/x", "other@renditions/1/a.jpg/x", "pics@renditions/x/a.jpg/y"} {
		if got, ok := alias.ImageOfRendition(key); ok {
			t.Errorf("%s is of %q", key, got)
		}
	}
}

// TestRenditionSettings: a rendition of other settings has another key. The name is not part of the
// fingerprint.
func TestRenditionSettings(t *testing.T) {
	t.Parallel()
	alias := &Alias{Kind: Image, Prefix: "pics"}
	key := func(r *Rendition, image storagedrivers.Info) string {
		return alias.RenditionKey("a.png", r.FileOf("a.png", false), image)
	}
	before := Rendition{Name: "soon", Box: scale.Box{Width: 6}, Format: imaging.WebP}
	for name, change := range map[string]func(*Rendition){
		"width":   func(r *Rendition) { r.Box.Width++ },
		"height":  func(r *Rendition) { r.Box.Height = 4 },
		"fit":     func(r *Rendition) { r.Box.Cover = true },
		"format":  func(r *Rendition) { r.Format = imaging.JPEG },
		"quality": func(r *Rendition) { r.Quality = 50 },
		"name":    func(r *Rendition) { r.Name = "other" },
	} {
		after := before
		change(&after)
		if (after.Fingerprint() == before.Fingerprint()) != (name == "name") {
			t.Errorf("%s: the fingerprint was %s and is %s", name, before.Fingerprint(), after.Fingerprint())
		}
		if key(&before, storagedrivers.Info{}) == key(&after, storagedrivers.Info{}) {
			t.Errorf("%s: the key is %s as before", name, key(&after, storagedrivers.Info{}))
		}
	}
	if key(&before, storagedrivers.Info{}) == key(&before, storagedrivers.Info{ETag: "x"}) {
		t.Error("two generations have one key")
	}
}

// TestRenditionOfGIF: it is a PNG, and a rendition stored as a GIF is never found under its key.
func TestRenditionOfGIF(t *testing.T) {
	t.Parallel()
	alias := &Alias{Kind: Image, Prefix: "pics"}
	r := &Rendition{Name: "small", Box: scale.Box{Width: 6}}
	f := r.FileOf("a.gif", false)
	if f.Format != imaging.PNG || f.ContentType() != "image/png" || f.Fingerprint() == (RenditionFile{r, imaging.GIF}).Fingerprint() {
		t.Errorf("it is %s, %s, with the settings %s", f.Format, f.ContentType(), f.Fingerprint())
	}
	if key := alias.RenditionKey("a.gif", f, storagedrivers.Info{}); !strings.HasSuffix(key, ".png") {
		t.Errorf("its key is %s", key)
	}
	if f := r.FileOf("a.gif", true); f.Format != imaging.WebP {
		t.Errorf("where WebP is preferred it is %s", f.Format)
	}
}

// TestRenditionURLs: images that can be decoded and SVGs have addresses of renditions.
func TestRenditionURLs(t *testing.T) {
	t.Parallel()
	alias := &Alias{Kind: Image, Name: "content", BaseURL: "https://cdn.example", Renditions: []Rendition{{Name: "later"}, {Name: "soon"}}}
	for filename, want := range map[string]int{"in/a b.png": 1, "a.svg": 1, "a.avif": 0, "a.txt": 0} {
		urls := alias.RenditionURLs("", filename, "soon")
		if len(urls) != want || (urls == nil) != (want == 0) {
			t.Errorf("%s: %v", filename, urls)
		}
		if address := urls["later"]; filename == "in/a b.png" && address != "https://cdn.example/static/img/content@later/in/a%20b.png" {
			t.Errorf("the address is %s", address)
		}
	}
	if urls := alias.RenditionURLs("", "a.png", "soon", "later"); urls != nil {
		t.Errorf("an image without possible renditions: %v", urls)
	}
}
