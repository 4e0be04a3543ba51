package upload

import (
	"context"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestLocksOfOneBackend: storages on the same backend share name locks, for example before and
// after a reload that renames a storage.
func TestLocksOfOneBackend(t *testing.T) {
	t.Parallel()
	on := func(name, backend, root, prefix string) *aliases.Alias {
		location := storagedrivers.Location{Backend: backend, Root: root}
		a := newAlias(t, "a", closed(t, name, memory.New(), storagedrivers.Options{Location: location}))
		a.Prefix = prefix
		return a
	}
	unlock, err := on("one", "x", "", "media/img").Lock(t.Context(), "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for _, c := range []struct {
		name  string
		alias *aliases.Alias
		held  bool
	}{
		{"another name", on("two", "x", "", "media/img"), true},
		{"a folder level", on("two", "x", "media", "img"), true},
		{"another folder", on("one", "x", "media", "file"), false},
		{"another backend", on("one", "y", "", "media/img"), false},
	} {
		ctx, cancel := t.Context(), func() {}
		if c.held { // a free lock needs no deadline, which a busy machine could exceed
			ctx, cancel = context.WithTimeout(ctx, 10*time.Millisecond)
		}
		unlock, err := c.alias.Lock(ctx, "a.txt")
		if cancel(); (err != nil) != c.held {
			t.Errorf("%s: error %v, want the lock held %t", c.name, err, c.held)
		}
		if err == nil {
			unlock()
		}
	}
}
