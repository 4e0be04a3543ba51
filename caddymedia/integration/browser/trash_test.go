package browser_test

import (
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestBrowserTrash: deletions are undone, the trash is searched, restored from and emptied, and an
// earlier version of an item is brought back. Some of it is done by the keyboard, on a phone and by
// an uploader.
func TestBrowserTrash(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanelConfig(t, site.Config{
		Media: "trash 14d\n" + site.Basic + replacing + "file_alias plain {\ntrash off\n}\n",
		Site:  site.UploaderBlock, Global: "admin " + servers.FreeAddress(t),
	})
	putImages(t, p, "", 6)
	putImages(t, p, "old", 20)
	putImages(t, p, "old/older", 10)
	putImages(t, p, "many", 70)
	for i, name := range []string{"tree.jpg", "summer/house.jpg"} {
		site.PutFile(t, filepath.Join(p.Root, "img", "photos", name), sample.JPEG(t, 320+i, 240))
	}
	for i, name := range []string{"1.jpg", "2.jpg", "3.jpg", "deep/4.jpg"} {
		site.PutFile(t, filepath.Join(p.Root, "img", "photos", "album", name), sample.JPEG(t, 400, 200+i))
	}
	site.PutFile(t, filepath.Join(p.Root, "file", "content", "note.txt"), "first")
	site.PutFile(t, filepath.Join(p.Root, "file", "plain", "note.txt"), "first")
	browse(t, "trash", panelFacts(p, map[string]any{"jpegs": []string{
		encoded(sample.JPEG(t, 500, 100)), encoded(sample.JPEG(t, 50, 200)),
	}, "first": encoded(sample.JPEG(t, 320, 240))}))
}
