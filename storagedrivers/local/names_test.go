package local

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// keeping returns a driver that keeps the names of all folders, and files of these names. Its clock
// is ahead, so that its folders are unchanged for some time.
func keeping(t *testing.T, files ...string) *Driver {
	t.Helper()
	d := New(Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))
	d.keepFrom = 0
	later := time.Now().Add(time.Minute)
	d.now = func() time.Time { return later }
	t.Cleanup(func() { d.Close() })
	d.create(t, files...)
	time.Sleep(20 * time.Millisecond) // more than a step of the clock of the file system
	return d
}

func (d *Driver) create(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		name := filepath.Join(d.path, file)
		test.Must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o600)))
	}
}

// page returns the keys of a page of three, and the cursor of the next.
func (d *Driver) page(t *testing.T, cursor string) (keys []string, next string) {
	t.Helper()
	page, err := d.List(t.Context(), storagedrivers.ListOptions{Cursor: cursor, Limit: 3})
	test.Must(t, err)
	for _, info := range page.Objects {
		keys = append(keys, info.Key)
	}
	return keys, page.Next
}

// TestChangesBetweenListings: a listing that begins, and a page that is listed again, have all
// changes. A folder that has just changed may change again at the same time.
func TestChangesBetweenListings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(t *testing.T, d *Driver)
		want   []string // of both pages
	}{
		"added":   {func(t *testing.T, d *Driver) { d.create(t, "a/0", "a/9") }, []string{"a/0", "a/1", "a/2", "a/3", "a/4", "a/9"}},
		"removed": {func(t *testing.T, d *Driver) { test.Must(t, os.Remove(d.path+"/a/2")) }, []string{"a/1", "a/3", "a/4"}},
		"replaced": {func(t *testing.T, d *Driver) {
			d.create(t, "b/5")
			test.Must(t, errors.Join(os.Rename(d.path+"/a", d.path+"/.a"), os.Rename(d.path+"/b", d.path+"/a")))
		}, []string{"a/5"}},
		"a file instead": {func(t *testing.T, d *Driver) {
			test.Must(t, os.RemoveAll(d.path+"/a"))
			d.create(t, "a")
		}, []string{"a"}},
	} {
		for _, settled := range []bool{true, false} {
			t.Run(fmt.Sprint(name, settled), func(t *testing.T) {
				t.Parallel()
				d := keeping(t, "a/1", "a/2", "a/3", "a/4")
				if !settled {
					d.now = time.Now
				}
				_, next := d.page(t, "")
				d.page(t, next)
				for _, n := range d.current.names.Folders() {
					if !settled && !n.State.changed.IsZero() {
						t.Errorf("the names of %q count as settled", n.Prefix)
					}
				}
				tt.change(t, d)
				got, next := d.page(t, "")
				if next != "" {
					more, _ := d.page(t, next)
					got = append(got, more...)
				}
				test.Same(t, got, tt.want)
			})
		}
	}
}

// TestPageAgain: a later page has an object that is stored before the page is listed again.
func TestPageAgain(t *testing.T) {
	t.Parallel()
	d := keeping(t, "1", "2", "3", "4")
	_, next := d.page(t, "")
	d.page(t, next)
	d.create(t, "5")
	if got, _ := d.page(t, next); !slices.Equal(got, []string{"4", "5"}) {
		t.Errorf("got %q", got)
	}
}

// TestWalkDuringChanges: a walk has each object once that exists all the time, and reads a folder
// once although it changes, or once more behind its first names. Parts of a folder are as good as
// all of it.
func TestWalkDuringChanges(t *testing.T) {
	t.Parallel()
	for _, limits := range [][2]int{{keepNames, firstNames}, {keepNames, 20}, {20, 20}} {
		d := keeping(t)
		most := limits[0]
		d.keepNames, d.firstNames = most, limits[1]
		want := make([]string, 100)
		for i := range want {
			want[i] = fmt.Sprintf("%03d-stays", i)
		}
		d.create(t, want...)
		var got []string
		parts := map[*names]bool{}
		for pages, next := 0, ""; pages == 0 || next != ""; pages++ {
			var keys []string
			keys, next = d.page(t, next)
			for _, key := range keys {
				if filepath.Ext(key) == "" {
					got = append(got, key)
				}
			}
			d.create(t, fmt.Sprintf("%03d-new.jpg", pages*7%100))
			if pages%2 == 1 {
				test.Must(t, os.Remove(filepath.Join(d.path, fmt.Sprintf("%03d-new.jpg", pages*7%100))))
			}
			total := 0
			for _, kept := range d.current.names.Folders() {
				total += len(kept.Sorted)
				parts[kept] = true
			}
			if total == 0 || total > most {
				t.Fatalf("kept %d names, at most %d are allowed", total, most)
			}
		}
		if want := map[int]int{firstNames: 1, 20: 2}[limits[1]]; most == keepNames && len(parts) != want {
			t.Errorf("the folder was read in %d parts, want %d", len(parts), want)
		}
		test.Same(t, got, want, "at most", most, "names: got")
	}
}

// TestNewWalkOfParts: a walk that begins does not go on with a part of a folder from before a
// change.
func TestNewWalkOfParts(t *testing.T) {
	t.Parallel()
	d := keeping(t)
	d.firstNames = 6
	for i := range 20 {
		d.create(t, fmt.Sprintf("%02d", i))
	}
	for i := 20; i < 25; i++ {
		var got []string
		for page, next := 0, ""; page == 0 || next != ""; page++ {
			var keys []string
			keys, next = d.page(t, next)
			got = append(got, keys...)
		}
		test.Equal(t, len(got), i, "of", "objects")
		test.Equal(t, len(d.current.names.Folders()), 2, "parts of the folder are kept")
		d.create(t, fmt.Sprintf("%02d", i))
		time.Sleep(20 * time.Millisecond) // as in keeping
	}
}

// TestFolderReplacedDuringWalk: a walk goes on in the folder that has the name now.
func TestFolderReplacedDuringWalk(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files, want []string
	}{
		"another folder": {[]string{"a/4", "a/5"}, []string{"a/4", "a/5", "b"}},
		"a file":         {[]string{"a"}, []string{"b"}},
		"nothing":        {nil, []string{"b"}},
	} {
		d := keeping(t, "a/1", "a/2", "a/3", "a/4", "b")
		_, next := d.page(t, "")
		test.Must(t, os.Rename(d.path+"/a", d.path+"/.a"))
		d.create(t, tt.files...)
		if got, _ := d.page(t, next); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// TestNewWalkEntersFolders: a walk that goes on has in folders that it enters what was stored
// before it began.
func TestNewWalkEntersFolders(t *testing.T) {
	t.Parallel()
	d := keeping(t, "a/1", "a/2", "a/3", "b/1")
	_, next := d.page(t, "")
	d.page(t, next)
	d.create(t, "b/2")
	_, next = d.page(t, "")
	if got, _ := d.page(t, next); !slices.Equal(got, []string{"b/1", "b/2"}) {
		t.Errorf("got %q", got)
	}
}

// TestKeptNames: the names in memory are bounded, and released after some time without use.
func TestKeptNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := keeping(t)
		d.keepNames = 50
		for i := range 40 {
			d.create(t, fmt.Sprintf("%02d/1", i), fmt.Sprintf("%02d/2", i), fmt.Sprintf("%02d/3", i))
		}
		for next, more := "", true; more; more = next != "" {
			_, next = d.page(t, next)
			time.Sleep(listing.KeepTime / 2)
			kept, total := d.current.names.Folders(), 0
			for _, names := range kept {
				total += len(names.Sorted)
			}
			if n := len(kept); n == 0 || n > listing.KeepFolders || total > d.keepNames {
				t.Fatalf("kept %d folders of %d names", n, total)
			}
		}
		time.Sleep(2 * listing.KeepTime)
		synctest.Wait()
		if kept := d.current.names.Folders(); len(kept) > 0 {
			t.Errorf("still kept: %d folders", len(kept))
		}
	})
}

// TestLevel: hidden folders and links to folders are not listed, empty folders are.
func TestLevel(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, folder := range []string{".hidden", "a/.hidden", "a/empty", "a/end.", "a/in/deep", "b"} {
		test.Must(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	test.Must(t, os.Symlink("b", filepath.Join(root, "a/link")))
	s := open(t, root)
	test.Must(t, put(t, s, "a/object", "x", storagedrivers.CreateOnly))
	for prefix, want := range map[string][]string{"": {"a/", "b/"}, "a/": {"a/empty/", "a/in/"}, "a/e": {"a/empty/"}} {
		page, err := s.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix, Shallow: true})
		test.Is(t, err, nil)
		test.Same(t, page.Folders, want, "folders of", prefix)
	}
}
