package browser_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestBrowserTree: folders are dropped, chosen and stored with their trees, ten thousand files too.
func TestBrowserTree(t *testing.T) {
	needsBrowser(t)
	const many = 10_000
	p := site.StartPanel(t, site.Basic+docs)
	folder := t.TempDir()
	for _, name := range []string{
		"holiday/plan.txt", "holiday/Day One/notes.txt", "holiday/Day One/Thumbs.db", "holiday/.DS_Store",
		"holiday/.git/config", "holiday/program.exe", "holiday" + strings.Repeat("/deep", 16) + "/lost.txt", "single.txt",
	} {
		site.PutFile(t, filepath.Join(folder, name), "text")
	}
	for i := range many {
		site.PutFile(t, filepath.Join(folder, "many", fmt.Sprint(i/100), fmt.Sprintf("%05d.txt", i)), "text")
	}
	browse(t, "tree", panelFacts(p, map[string]any{"folder": folder, "many": many}))
}

// TestBrowserQueue: failed uploads are sent again, all are cancelled, and progress is shown on other
// pages, with the keyboard and on a phone.
func TestBrowserQueue(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+docs)
	browse(t, "queue", panelFacts(p, nil))
}

// TestBrowserPaste: images and files are pasted.
func TestBrowserPaste(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+docs)
	png := base64.StdEncoding.EncodeToString([]byte(sample.PNG(t, 64, 48)))
	browse(t, "paste", panelFacts(p, map[string]any{"png": png}))
}
