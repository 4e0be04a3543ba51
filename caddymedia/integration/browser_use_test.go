package integration

import (
	"fmt"
	"path/filepath"
	"testing"
)

// docs is a second file alias, for small texts.
const docs = "file_alias docs {\nextensions txt\nmax_size 2MiB\n}\n"

// TestBrowserAccounts: an account is created, logs in, gets a new password, loses its tokens, is
// limited and removed.
func TestBrowserAccounts(t *testing.T) {
	needsBrowser(t)
	p := startPanel(t, basic+docs)
	browse(t, "accounts", p.facts(nil))
}

// TestBrowserUpload: several files are uploaded, refused, cancelled and dropped.
func TestBrowserUpload(t *testing.T) {
	needsBrowser(t)
	withinOneDay()
	p := startPanel(t, basic+docs)
	browse(t, "upload", p.facts(nil))
}

// TestBrowserItems: items are found by browsing, searching, addresses and the browser's history.
func TestBrowserItems(t *testing.T) {
	needsBrowser(t)
	p := startPanel(t, basic+"image_alias photos\n")
	picture := jpegOf(t, 8, 8)
	putFile(t, filepath.Join(p.root, "img", "content", "tree.jpg"), picture)
	for i := range 80 {
		putFile(t, filepath.Join(p.root, "img", "content", "all", fmt.Sprintf("picture-%02d.jpg", i)), picture)
	}
	browse(t, "items", p.facts(nil))
}

// TestBrowserHealth: the configuration is downloaded, and a failed server recovers.
func TestBrowserHealth(t *testing.T) {
	needsBrowser(t)
	p := startPanel(t, basic+archive)
	browse(t, "health", p.facts(nil))
}
