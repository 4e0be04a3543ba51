package item

import (
	"fmt"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestWatch: a watch knows the items of its alias, by whatever alias they were stored, and no
// others.
func TestWatch(t *testing.T) {
	t.Parallel()
	newAlias := func(storage, prefix string) *Alias {
		s := storagedrivers.New(storage, memory.New(), storagedrivers.Options{Location: storagedrivers.Location{Backend: "memory " + storage}})
		t.Cleanup(func() { _ = s.Close() })
		return &Alias{Storage: s, Prefix: prefix}
	}
	first, second := storagedrivers.Info{ETag: `"1"`}, storagedrivers.Info{ETag: `"2"`}
	for _, name := range []string{"old.txt", "replaced.txt"} {
		newAlias("main", "file/docs").Stored(name, first)
	}
	w := newAlias("main", "file/docs").Watch()
	newAlias("main", "file/docs").Stored("replaced.txt", first) // after a reload
	newAlias("main", "file/docs/sub").Stored("b.txt", first)
	newAlias("main", "file").Stored("docs/c.txt", first)
	newAlias("main", "file").Stored("docs2/d.txt", first)
	newAlias("main", "img").Stored("e.txt", first)
	newAlias("other", "file/docs").Stored("f.txt", first)
	for name, want := range map[string][2]bool{
		"old.txt": {true, false}, "replaced.txt": {false, true}, "sub/b.txt": {false, true}, "c.txt": {false, true},
		"d.txt": {}, "e.txt": {}, "f.txt": {}, "never.txt": {},
	} {
		if before, since := w.Stored(name, first); [2]bool{before, since} != want {
			t.Errorf("%s: before %t, since %t; want %t", name, before, since, want)
		}
	}
	if before, since := w.Stored("old.txt", second); before || since {
		t.Errorf("replaced by another process: before %t, since %t", before, since)
	}
}

// TestStoredItems: the last items are known, in a bounded map. After as many more, an unknown item
// counts as stored since.
func TestStoredItems(t *testing.T) {
	t.Parallel()
	const most = 10
	s, info := newStoredItems(most), storagedrivers.Info{Size: 4}
	s.add("old", info)
	began := s.last
	for n := range 100 {
		s.add(fmt.Sprint(n%7), info)
		if before, after := s.find("old", info, began); before != (n < most-1) || after != (n >= most-1) {
			t.Errorf("after %d more: before %t, after %t", n+1, before, after)
		}
		if _, after := s.find(fmt.Sprint(n%7), info, began); !after {
			t.Errorf("item %d is unknown", n)
		}
		if len(s.numbers) > most {
			t.Fatalf("%d items are known", len(s.numbers))
		}
	}
	if before, after := s.find("0", info, s.last); !before || after {
		t.Errorf("an item before a later watch: before %t, after %t", before, after)
	}
}
