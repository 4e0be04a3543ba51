package listing

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// remoteFolder is a folder on another host, whose entries are names with their generation.
type remoteFolder struct {
	kept  Remote[remoteEntry]
	now   time.Time
	names map[string]int
	reads int
}

type remoteEntry struct {
	name       string
	generation int
}

func newRemoteFolder(names ...string) *remoteFolder {
	f := &remoteFolder{names: map[string]int{}}
	f.kept.Most, f.kept.Now = 100, func() time.Time { return f.now }
	f.kept.Name = func(_ string, e remoteEntry) string { return e.name }
	for _, name := range names {
		f.names[name] = 1
	}
	return f
}

// page returns the names after a cursor with their generations.
func (f *remoteFolder) page(t *testing.T, cursor string, limit int) (found []string) {
	t.Helper()
	opts := storagedrivers.ListOptions{Cursor: cursor}
	read := func(from string) (*Folder[remoteEntry, time.Time], error) {
		return f.kept.Folder(t.Context(), opts, "a/", from, func() (all []remoteEntry, err error) {
			f.reads++
			for name, generation := range f.names {
				all = append(all, remoteEntry{name, generation})
			}
			return all, nil
		})
	}
	err := f.kept.Walk(opts, "a/", read, func(name string, e *remoteEntry) error {
		if "a/"+name <= cursor || len(found) == limit {
			return nil
		}
		generation := f.names[name] // as a driver looks it up
		if e != nil {
			generation = e.generation
		}
		if generation > 0 {
			found = append(found, fmt.Sprintf("%s=%d", name, generation))
		}
		return nil
	})
	test.Must(t, err)
	return found
}

// TestRemoteChanges: a page that goes on shows what this process has changed since the folder was
// read, and what others have changed after half a minute. A new listing shows all.
func TestRemoteChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change     func(f *remoteFolder)
		key        string
		want       []string // after the change
		unreported []string // of others
	}{
		"created":       {func(f *remoteFolder) { f.names["c5"] = 1 }, "a/c5", []string{"c=1", "c5=1", "d=1"}, []string{"c=1", "d=1"}},
		"created last":  {func(f *remoteFolder) { f.names["e"] = 1 }, "a/e", []string{"c=1", "d=1", "e=1"}, []string{"c=1", "d=1"}},
		"passed":        {func(f *remoteFolder) { f.names["a5"] = 1 }, "a/a5", []string{"c=1", "d=1"}, []string{"c=1", "d=1"}},
		"replaced":      {func(f *remoteFolder) { f.names["d"] = 2 }, "a/d", []string{"c=1", "d=2"}, []string{"c=1", "d=1"}},
		"deleted":       {func(f *remoteFolder) { delete(f.names, "c") }, "a/c", []string{"d=1"}, []string{"c=1", "d=1"}},
		"in a folder":   {func(f *remoteFolder) { f.names["c/"] = 1 }, "a/c/x", []string{"c=1", "c/=1", "d=1"}, []string{"c=1", "d=1"}},
		"other folders": {func(f *remoteFolder) { delete(f.names, "c") }, "b/c", []string{"c=1", "d=1"}, []string{"c=1", "d=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRemoteFolder("a", "b", "c", "d")
			if got := f.page(t, "", 2); !slices.Equal(got, []string{"a=1", "b=1"}) {
				t.Fatalf("first page %q", got)
			}
			c.change(f)
			test.Same(t, f.page(t, "a/b", 9), c.unreported, "by others")
			f.kept.Change(c.key)
			for range 2 {
				test.Same(t, f.page(t, "a/b", 9), c.want, "by this process")
			}
			test.Equal(t, f.reads, 1, "read", "times")
			f.now = f.now.Add(KeepTime)
			f.page(t, "a/b", 9)
			f.page(t, "", 9)
			test.Equal(t, f.reads, 3, "later read", "times")
		})
	}
}

// TestRemoteChangeWhileRead: a change is known also if it happens while the folder is read.
func TestRemoteChangeWhileRead(t *testing.T) {
	t.Parallel()
	f := newRemoteFolder("a", "b", "c")
	_, err := f.kept.Folder(t.Context(), storagedrivers.ListOptions{}, "a/", "", func() ([]remoteEntry, error) {
		read := []remoteEntry{{"a", 1}, {"b", 1}, {"c", 1}}
		delete(f.names, "c")
		f.kept.Change("a/c")
		return read, nil
	})
	test.Must(t, err)
	test.Same(t, f.page(t, "a/a", 9), []string{"b=1"})
}

// TestRemoteParts: a folder that is too large is read in parts, and too many changes end what is
// kept.
func TestRemoteParts(t *testing.T) {
	t.Parallel()
	f := newRemoteFolder()
	for i := range 1000 {
		f.names[fmt.Sprintf("%04d", i)] = 1
	}
	want := make([]string, 0, len(f.names))
	for _, name := range slices.Sorted(maps.Keys(f.names)) {
		want = append(want, name+"=1")
	}
	var got []string
	for cursor := ""; len(got) < len(want); cursor = "a/" + got[len(got)-1][:4] {
		page := f.page(t, cursor, 10)
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	test.Same(t, got, want, len(got), "names", len(want))
	f.page(t, "a/0990", 1)
	reads := f.reads
	if f.page(t, "a/0990", 1); f.reads != reads {
		t.Error("the last part was read again")
	}
	for i := range 2 * keepChanges {
		f.kept.Change(fmt.Sprintf("a/x%d", i))
	}
	test.Equal(t, len(f.kept.Folders()[0].changed), keepChanges+1, "changes are kept")
	if f.page(t, "a/0990", 1); f.reads == reads {
		t.Error("after too many changes the folder was not read again")
	}
}

// TestRemoteFrom: the last entries of a folder are kept without the others.
func TestRemoteFrom(t *testing.T) {
	t.Parallel()
	f := newRemoteFolder()
	all := []remoteEntry{{"a", 1}, {"b", 1}, {"c", 1}}
	opts := storagedrivers.ListOptions{Cursor: "a/b"}
	kept, err := f.kept.Folder(t.Context(), opts, "a/", "b", func() ([]remoteEntry, error) { return all, nil })
	if err != nil || !slices.Equal(kept.Sorted, all[1:]) || &kept.Sorted[0] == &all[1] {
		t.Errorf("kept %+v, error %v", kept, err)
	}
}
