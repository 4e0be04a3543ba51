package features_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestStorageThatCannotBeUsed: a file blocks the folder of a storage. The site starts, other
// storages work, and the answer contains neither path nor system error.
func TestStorageThatCannotBeUsed(t *testing.T) {
	broken := filepath.Join(site.TempFolder(t), "plain-file")
	if err := os.WriteFile(broken, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := site.Start(t, site.Basic+"storage broken {\ndriver local "+broken+"\n}\nimage_alias broken {\nstorage broken\n}", "media")
	for _, parts := range [][]site.Part{
		{site.Field("alias", "broken"), site.File("a.gif", sample.GIF(t))},
		{site.File("a.gif", sample.GIF(t)), site.Field("alias", "broken")},
	} {
		r := s.UploadImage(t, parts...)
		if r.Status != http.StatusBadGateway && r.Status != http.StatusServiceUnavailable {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		wantNoPath(t, r.Failures(t, r.Status), broken)
	}
	r := s.Get(t, "/static/img/broken/a.gif")
	if r.Status != http.StatusBadGateway && r.Status != http.StatusServiceUnavailable {
		t.Errorf("fetching from it: %d, which must not be taken for a missing item", r.Status)
	}
	if strings.Contains(r.Body, broken) {
		t.Errorf("the answer names a path: %s", r.Body)
	}
	s.WaitForLog(t, "storage unreachable")
	s.UploadImage(t, site.File("a.gif", sample.GIF(t))).One(t)
	// The storage works as soon as the problem is fixed.
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	s.UploadImage(t, site.Field("alias", "broken"), site.File("a.gif", sample.GIF(t))).One(t)
}

func wantNoPath(t *testing.T, failures []site.Failure, paths ...string) {
	t.Helper()
	for _, f := range failures {
		for _, internal := range append(paths, "/tmp", "plain-file", "not a directory", "no space left", "ENOSPC") {
			if strings.Contains(f.Message, internal) {
				t.Errorf("message %q has %q", f.Message, internal)
			}
		}
	}
}
