package aliases

import (
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestWatch: a watch knows the items below its alias, by whatever alias they were stored, and no others.
func TestWatch(t *testing.T) {
	t.Parallel()
	newAlias := func(storage, prefix string) *Alias {
		s := storagedrivers.New(storage, memory.New(), storagedrivers.Options{Location: storagedrivers.Location{Backend: "memory " + storage}})
		t.Cleanup(func() { _ = s.Close() })
		return &Alias{Storage: s, Prefix: prefix}
	}
	w := newAlias("main", "file/docs").Watch()
	defer w.End()
	newAlias("main", "file/docs").Stored("a.txt") // after a reload
	newAlias("main", "file/docs/sub").Stored("b.txt")
	newAlias("main", "file").Stored("docs/c.txt")
	newAlias("main", "file").Stored("docs2/d.txt")
	newAlias("main", "img").Stored("e.txt")
	newAlias("other", "file/docs").Stored("f.txt")
	for _, name := range []string{"a.txt", "sub/b.txt", "c.txt"} {
		if !w.Stored(name) {
			t.Errorf("%s is unknown", name)
		}
	}
	if len(w.stored) != 3 {
		t.Errorf("known are %v", w.stored)
	}
	w.End()
	if newAlias("main", "file/docs").Stored("g.txt"); w.Stored("g.txt") {
		t.Error("the watch has not ended")
	}
}
