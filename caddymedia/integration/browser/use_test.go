package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
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

// TestBrowserResume: a large upload is cut in the middle, continued, and cancelled.
func TestBrowserResume(t *testing.T) {
	needsBrowser(t)
	const size = 24 << 20
	p := site.StartPanel(t, site.Basic)
	proxy := faults.New(t, strings.TrimPrefix(p.URL, "http://"))
	proxy.CutAfter(size / 2)
	facts := panelFacts(p, map[string]any{"size": size})
	facts.Panel = "http://" + proxy.Address + "/media-admin/"
	browse(t, "resume", facts)
}

// TestBrowserUploads: unfinished uploads are listed and ended.
func TestBrowserUploads(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+docs)
	browse(t, "uploads", panelFacts(p, map[string]any{"key": site.APIKey, "password": site.Password}))
}

// TestBrowserItems: items are found by browsing, searching, addresses and the browser's history.
func TestBrowserItems(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+"image_alias photos\n")
	img := sample.JPEG(t, 8, 8)
	site.PutFile(t, filepath.Join(p.Root, "img", "content", "tree.jpg"), img)
	for i := range 78 {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", "all", fmt.Sprintf("image-%02d.jpg", i)), img)
	}
	for i := range 70 {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", "deep", fmt.Sprintf("folder-%02d", i), "tree.jpg"), img)
	}
	for i := range 9 {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", "deep", fmt.Sprintf("tree-%d.jpg", i)), img)
	}
	for name, year := range map[string]int{"newest": 2040, "oldest": 2001} {
		file := filepath.Join(p.Root, "img", "content", "all", name+".jpg")
		site.PutFile(t, file, img)
		when := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		if err := os.Chtimes(file, when, when); err != nil {
			t.Fatal(err)
		}
	}
	browse(t, "items", panelFacts(p, nil))
}

// TestBrowserRenditions: renditions are added, renamed and removed in the form of their alias, and
// shown with the images.
func TestBrowserRenditions(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic)
	site.PutFile(t, filepath.Join(p.Root, "img", "content", "tree.jpg"), sample.JPEG(t, 640, 480))
	browse(t, "renditions", panelFacts(p, nil))
}

// TestBrowserHealth: the configuration is downloaded, a failed server recovers, items are counted, and
// changes are shown.
func TestBrowserHealth(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Basic+archive)
	for i := range 3 {
		site.PutFile(t, filepath.Join(p.Root, "img", "content", fmt.Sprintf("image-%d.jpg", i)), strings.Repeat("x", 2048))
	}
	browse(t, "health", panelFacts(p, nil))
}
