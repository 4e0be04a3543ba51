package browser_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// docs is a second file alias, for small texts.
const docs = "file_alias docs {\nextensions txt\nmax_size 2MiB\n}\n"

// TestBrowserAccounts: an account is created, logs in, gets a new password, loses its tokens, is
// limited and removed.
func TestBrowserAccounts(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+docs)
	browse(t, "accounts", panelFacts(p, nil))
}

// TestBrowserUpload: several files are uploaded, refused, cancelled and dropped.
func TestBrowserUpload(t *testing.T) {
	needsBrowser(t)
	site.AwaitOneDay()
	p := site.StartPanel(t, site.Basic+docs)
	browse(t, "upload", panelFacts(p, nil))
}

// TestBrowserItems: items are found by browsing, searching, addresses and the browser's history.
func TestBrowserItems(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+"image_alias photos\n")
	picture := sample.JPEG(t, 8, 8)
	site.PutFile(t, filepath.Join(p.Root, "img", "content", "tree.jpg"), picture)
	for i := range 80 {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", "all", fmt.Sprintf("picture-%02d.jpg", i)), picture)
	}
	browse(t, "items", panelFacts(p, nil))
}

// TestBrowserHealth: the configuration is downloaded, and a failed server recovers.
func TestBrowserHealth(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+archive)
	browse(t, "health", panelFacts(p, nil))
}
