package browser_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestBrowserSelect: items are selected by mouse and keyboard, and on a phone by touch.
func TestBrowserSelect(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic)
	putImages(t, p, "all", 300)
	for _, folder := range []string{"all/album", "all/holidays", "all/team"} {
		putImages(t, p, folder, 3)
	}
	browse(t, "select", panelFacts(p, nil))
}

// TestBrowserActions: many items are deleted, moved, copied as addresses and downloaded, and folders
// are made and deleted.
func TestBrowserActions(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+"image_alias photos\nimage_alias secret {\nprivate\n}\n")
	for i := range 51 {
		site.PutFile(t, filepath.Join(p.Root, "img", "secret", fmt.Sprintf("image-%04d.jpg", i)), sample.JPEG(t, 8, 8))
	}
	putImages(t, p, "all", 1100)
	putImages(t, p, "few", 30)
	putImages(t, p, "few/below", 2)
	putImages(t, p, "old", 3)
	putImages(t, p, "old/older", 3)
	browse(t, "actions", panelFacts(p, nil))
}

// putImages stores images of some sizes and colours in a folder of the image alias content.
func putImages(t *testing.T, p *site.Panel, folder string, count int) {
	t.Helper()
	img := sample.JPEG(t, 320, 240)
	for i := range count {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", folder, fmt.Sprintf("image-%04d.jpg", i)), img)
	}
}
