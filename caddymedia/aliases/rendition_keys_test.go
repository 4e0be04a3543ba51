package aliases

import (
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
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
