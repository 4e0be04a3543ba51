package integration

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStorageThatCannotBeUsed: a file blocks the folder of a storage. The site starts, other
// storages work, and the answer contains neither path nor system error.
func TestStorageThatCannotBeUsed(t *testing.T) {
	broken := filepath.Join(tempFolder(t), "plain-file")
	if err := os.WriteFile(broken, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startSite(t, basic+"storage broken {\ndriver local "+broken+"\n}\nimage_alias broken {\nstorage broken\n}", "media")
	for _, parts := range [][]formPart{
		{field("alias", "broken"), file("a.gif", gifOf(t))},
		{file("a.gif", gifOf(t)), field("alias", "broken")},
	} {
		r := s.uploadImage(t, parts...)
		if r.status != http.StatusBadGateway && r.status != http.StatusServiceUnavailable {
			t.Fatalf("%d %s", r.status, r.body)
		}
		wantNoPath(t, r.failures(t, r.status), broken)
	}
	r := s.get(t, "/static/img/broken/a.gif")
	if r.status != http.StatusBadGateway && r.status != http.StatusServiceUnavailable {
		t.Errorf("fetching from it: %d, which must not be taken for a missing item", r.status)
	}
	if strings.Contains(r.body, broken) {
		t.Errorf("the answer names a path: %s", r.body)
	}
	s.waitForLog(t, "storage unreachable")
	s.uploadImage(t, file("a.gif", gifOf(t))).one(t)
	// The storage works as soon as the problem is fixed.
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	s.uploadImage(t, field("alias", "broken"), file("a.gif", gifOf(t))).one(t)
}

func wantNoPath(t *testing.T, failures []failed, paths ...string) {
	t.Helper()
	for _, f := range failures {
		for _, internal := range append(paths, "/tmp", "plain-file", "not a directory", "no space left", "ENOSPC") {
			if strings.Contains(f.Message, internal) {
				t.Errorf("message %q has %q", f.Message, internal)
			}
		}
	}
}

// TestReadOnlyFolder: an upload into a read-only folder is answered with 502 and a message that
// names the problem.
func TestReadOnlyFolder(t *testing.T) {
	if os.Getuid() <= 0 {
		t.Skip("to root no folder is read-only")
	}
	s := startSite(t, basic, "media")
	s.uploadImage(t, file("a.gif", gifOf(t))).one(t)
	if err := os.Chmod(s.root, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(s.root, 0o700) })
	wantNoPath(t, s.uploadFile(t, file("a.txt", "x")).failures(t, http.StatusBadGateway), s.root)
}
