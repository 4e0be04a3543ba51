package ftp

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// TestNothingMayBeRenamed: an object of the same size that could not be replaced is not mistaken
// for the new one.
func TestNothingMayBeRenamed(t *testing.T) {
	t.Parallel()
	for name, facts := range map[string]bool{"facts": true, "sizes": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{facts: facts}
			f.refuse(func(command, _ string) bool {
				return command == "RNFR" || command == "DELE"
			}, refusal)
			f.start(t)
			d := open(t, f.config())
			f.replace(t, "object", "old")
			if _, err := d.Put(t.Context(), "object", strings.NewReader("new"), overwrite); err == nil {
				t.Error("nothing was stored, and no error says so")
			}
			holds(t, d, "object", "old")
		})
	}
}

// TestListedWhilePutAside: a listing does not treat an old object that was moved aside as a
// leftover.
func TestListedWhilePutAside(t *testing.T) {
	t.Parallel()
	var renames atomic.Int32
	var lister *Driver
	f := &fake{facts: true, keep: true}
	f.before = func(_ *session, command, _ string) string {
		// The first RNTO is refused, the second moves the old object aside.
		if command != "RNTO" {
			return ""
		}
		if n := renames.Add(1); n < 3 || n >= 3+replaceAttempts {
			return ""
		}
		_, err := lister.List(t.Context(), storagedrivers.ListOptions{})
		fails(t, err, nil)
		return refusal
	}
	f.start(t)
	d := open(t, f.config())
	lister = open(t, f.config())
	f.replace(t, "key", "old")
	when := time.Now().Add(-3 * 24 * time.Hour)
	if err := os.Chtimes(filepath.Join(f.root, "key"), when, when); err != nil {
		t.Fatal(err)
	}
	if err := put(t, d, "key", "content", overwrite); err == nil {
		t.Error("the server has refused the rename, and no error says so")
	}
	holds(t, d, "key", "old")
	f.has(t, "key")
}
