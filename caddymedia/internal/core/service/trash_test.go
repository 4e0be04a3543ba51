package service

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// trashed returns a service with a trash of an hour, of the alias "webp".
func trashed(t *testing.T) (*Service, *item.Alias, *memory.Driver) {
	t.Helper()
	s, driver := listed(t)
	alias, _ := s.Alias(item.Image, "webp")
	alias.Trash = 3 * time.Hour
	return s, alias, driver
}

// keep stores an entry.
func keep(t *testing.T, alias *item.Alias, driver *memory.Driver, filename string, removed time.Time) item.Kept {
	t.Helper()
	old := storagedrivers.Info{Key: alias.Key(filename), ModTime: removed.Add(-time.Hour), ETag: fmt.Sprint(removed)}
	kept := alias.NewKept(old, removed)
	if _, err := driver.Put(t.Context(), alias.TrashKey(kept), strings.NewReader(filename), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	return kept
}

// trashPages returns the filenames of all pages of a query, which is answered in slices.
func (s *Service) trashPages(t *testing.T, q TrashQuery, slice int) (names []string) {
	t.Helper()
	for range 1000 {
		page, err := s.listTrash(t.Context(), q, slice)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Entries) > q.Limit || page.Incomplete != (page.Next != "" && len(page.Entries) < q.Limit) {
			t.Errorf("%d entries, incomplete %t", len(page.Entries), page.Incomplete)
		}
		for _, entry := range page.Entries {
			names = append(names, entry.Filename)
		}
		if page.Next == "" {
			return names
		}
		if strings.Contains(page.Next, "/") {
			t.Errorf("the cursor %q has a filename, which may be that of another user", page.Next)
		}
		q.Cursor = page.Next
	}
	t.Fatal("the pages have no end")
	return nil
}

// TestListTrash: the pages of any size, read in slices of any size, add up to what was removed, in
// either order, by folder, filename and search, without what has ended.
func TestListTrash(t *testing.T) {
	t.Parallel()
	s, alias, driver := trashed(t)
	now := s.now()
	all := make([]string, 0, 40) // the last one removed first
	for i := range cap(all) {
		filename := fmt.Sprintf("%c/%02d.jpg", 'a'+i%2, i)
		all = append(all, filename)
		keep(t, alias, driver, filename, now.Add(-time.Duration(i*i)*6*time.Second)) // some within one second
	}
	keep(t, alias, driver, "a/ended.jpg", now.Add(-alias.Trash))
	keep(t, alias, driver, "@uploads/x.jpg", now)
	for _, key := range []string{"img/webp@trash/x", "img/webp@trash/2026-11-29T22/x", "img/webp@trash/2026-11-29T22/x/a.jpg"} {
		if _, err := driver.Put(t.Context(), key, strings.NewReader(""), storagedrivers.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	only := func(wanted func(string) bool) []string {
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !wanted(name) })
	}
	for name, tt := range map[string]struct {
		query TrashQuery
		want  []string
	}{
		"all":      {TrashQuery{}, all},
		"folder":   {TrashQuery{Folder: "a"}, only(func(name string) bool { return strings.HasPrefix(name, "a/") })},
		"beside":   {TrashQuery{Folder: "a/0"}, nil},
		"filename": {TrashQuery{Filename: "b/05.jpg"}, []string{"b/05.jpg"}},
		"search":   {TrashQuery{Search: "1"}, only(func(name string) bool { return strings.Contains(name, "1") })},
		"folders":  {TrashQuery{Search: "B/0"}, only(func(name string) bool { return strings.HasPrefix(name, "b/0") })},
	} {
		for _, tt.query.OldestFirst = range []bool{false, true} {
			want := slices.Clone(tt.want)
			if tt.query.OldestFirst {
				slices.Reverse(want)
			}
			for _, tt.query.Limit = range []int{1, 7, 100} {
				for _, slice := range []int{1, 5, 1000} {
					for _, tt.query.MaxExamined = range []int{0, 3} {
						tt.query.Alias = alias
						if got := s.trashPages(t, tt.query, slice); !slices.Equal(got, want) {
							t.Fatalf("%s, %+v in slices of %d: %q, want %q", name, tt.query, slice, got, want)
						}
					}
				}
			}
		}
	}
	if _, err := s.ListTrash(t.Context(), TrashQuery{Alias: alias, Limit: 1, Cursor: "x"}); !errors.Is(err, ErrCursor) {
		t.Errorf("error %v, want %v", err, ErrCursor)
	}
}

// TestListTrashOnce: a generation that was kept twice is listed once, and one that is still there
// is not listed.
func TestListTrashOnce(t *testing.T) {
	t.Parallel()
	s, alias, driver := trashed(t)
	now := s.now()
	twice := storagedrivers.Info{Key: alias.Key("twice.jpg"), ModTime: now.Add(-time.Minute), ETag: "x"}
	there, err := driver.Put(t.Context(), alias.Key("there.jpg"), strings.NewReader("there"), storagedrivers.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other := there
	other.ETag = "other"
	for _, old := range []storagedrivers.Info{twice, there, other, twice} {
		now = now.Add(time.Microsecond)
		key := alias.TrashKey(alias.NewKept(old, now))
		if _, err := driver.Put(t.Context(), key, strings.NewReader("x"), storagedrivers.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if names := s.trashPages(t, TrashQuery{Alias: alias, Limit: 10}, 100); !slices.Equal(names, []string{"twice.jpg", "there.jpg"}) {
		t.Errorf("listed are %q", names)
	}
}

// TestListTrashOncePaged: so it is if a page ends between the two entries.
func TestListTrashOncePaged(t *testing.T) {
	t.Parallel()
	s, alias, driver := trashed(t)
	old := storagedrivers.Info{Key: alias.Key("a.jpg"), ModTime: s.now().Add(-time.Hour), ETag: "x"}
	for i := range 2 {
		key := alias.TrashKey(alias.NewKept(old, s.now().Add(-time.Duration(i)*time.Millisecond)))
		if _, err := driver.Put(t.Context(), key, strings.NewReader("x"), storagedrivers.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if names := s.trashPages(t, TrashQuery{Alias: alias, Limit: 1}, 100); !slices.Equal(names, []string{"a.jpg"}) {
		t.Errorf("listed are %q", names)
	}
}

// TestPurgeDoubles: all entries of a generation are purged, and none of another one. Two processes
// on one local folder make doubles too.
func TestPurgeDoubles(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storagedrivers.Driver{
		"memory": memory.New(),
		"local":  local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := partsOf(t)
			parts.Storages[0].Driver = driver
			s := start(t, parts)
			alias, _ := s.Alias(item.Image, "webp")
			alias.Trash = 3 * time.Hour
			now := s.now()
			old := storagedrivers.Info{Key: alias.Key("a.jpg"), ModTime: now.Add(-time.Hour), ETag: "x"}
			other, later := old, old
			other.ETag, later.ModTime = "y", now.Add(-time.Minute)
			kept := map[string]storagedrivers.Info{}
			var purged item.Kept
			for i, info := range []storagedrivers.Info{old, other, later, old} {
				purged = alias.NewKept(info, now.Add(-time.Duration(i)*30*time.Minute))
				kept[alias.TrashKey(purged)] = info
				if _, err := alias.Storage.Put(t.Context(), alias.TrashKey(purged), strings.NewReader("x"), storagedrivers.PutOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.PurgeDoubles(t.Context(), alias, []item.Kept{purged}, item.Actor{}); err != nil {
				t.Fatal(err)
			}
			for key, info := range kept {
				if _, err := alias.Storage.Stat(t.Context(), key); (err == nil) != (info != old) {
					t.Errorf("%s stays: %t", key, err == nil)
				}
			}
		})
	}
}

// TestSweepTrash: what has ended is removed, and nothing else.
func TestSweepTrash(t *testing.T) {
	t.Parallel()
	s, alias, driver := trashed(t)
	now := s.now()
	kept := map[string]bool{}
	for age, stays := range map[time.Duration]bool{
		0: true, time.Hour: true, alias.Trash - time.Minute: true, alias.Trash: false, alias.Trash + 24*time.Hour: false,
	} {
		one := keep(t, alias, driver, "a.jpg", now.Add(-age))
		kept[alias.TrashKey(one)] = stays
	}
	if _, err := driver.Put(t.Context(), alias.Key("item.jpg"), strings.NewReader("x"), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.SweepTrash(t.Context(), alias); err != nil {
			t.Fatal(err)
		}
		for key, stays := range kept {
			if _, err := driver.Stat(t.Context(), key); (err == nil) != stays {
				t.Errorf("%s stays: %t, want %t", key, err == nil, stays)
			}
		}
		if _, err := driver.Stat(t.Context(), alias.Key("item.jpg")); err != nil {
			t.Error(err)
		}
	}
}

// TestTrashLocked: entries that are locked stay when the time of the alias becomes shorter, and are
// listed, until the time that they were locked for.
func TestTrashLocked(t *testing.T) {
	t.Parallel()
	s, alias, driver := trashed(t)
	now := s.now()
	s.now = func() time.Time { return now }
	keep(t, alias, driver, "plain.jpg", now)
	alias.TrashLocked = true
	keep(t, alias, driver, "locked.jpg", now)
	was := alias.Trash
	alias.TrashLocked, alias.Trash = false, time.Minute
	for _, tt := range []struct {
		after time.Duration
		names []string
	}{
		{0, []string{"locked.jpg", "plain.jpg"}},
		{was - time.Second, []string{"locked.jpg"}},
		{time.Second, nil},
	} {
		now = now.Add(tt.after)
		if err := s.SweepTrash(t.Context(), alias); err != nil {
			t.Fatal(err)
		}
		names := s.trashPages(t, TrashQuery{Alias: alias, Limit: 10}, 100)
		if slices.Sort(names); !slices.Equal(names, tt.names) {
			t.Errorf("after %s: %q, want %q", tt.after, names, tt.names)
		}
	}
}

// heldObserver keeps the last count of a trash.
type heldObserver struct {
	NopObserver
	held *Count
}

func (o heldObserver) TrashHeld(_ *item.Alias, in Count) { *o.held = in }

// TestTrashHeld: the observer gets the number and size of the entries. The storage is asked once,
// and for the hours that may have changed: the last one, and those in which this process has
// purged.
func TestTrashHeld(t *testing.T) {
	t.Parallel()
	s, alias, driver := trashed(t)
	alias.Trash = 24 * time.Hour
	now := time.Now().UTC().Truncate(time.Hour).Add(30 * time.Minute)
	s.now = func() time.Time { return now }
	var held Count
	s.observer = heldObserver{held: &held}
	asked := 0
	driver.Fail = func(op, _ string) error {
		if op == "list" {
			asked++
		}
		return nil
	}
	keep(t, alias, driver, "now.jpg", now)
	keep(t, alias, driver, "hour.jpg", now.Add(-time.Hour))
	old := keep(t, alias, driver, "old.jpg", now.Add(-5*time.Hour))
	keep(t, alias, driver, "rest.jpg", now.Add(-5*time.Hour))
	for _, tt := range []struct {
		name  string
		act   func() error
		asked int
		held  Count
	}{
		{"first", func() error { return nil }, 4, Count{4, 30}},
		{"again", func() error { return nil }, 2, Count{4, 30}},
		{"kept", func() error { keep(t, alias, driver, "more.jpg", now); return nil }, 2, Count{5, 38}},
		{"purged", func() error { return s.Purge(t.Context(), alias, old, item.Actor{}) }, 3, Count{4, 31}},
		{"ended", func() error { now = now.Add(25 * time.Hour); return nil }, 4, Count{0, 0}},
		{"empty", func() error { return nil }, 1, Count{0, 0}},
	} {
		if err := tt.act(); err != nil {
			t.Fatal(err)
		}
		asked = 0
		if err := s.SweepTrash(t.Context(), alias); err != nil || asked != tt.asked || held != tt.held {
			t.Errorf("%s: asked %d times, holds %v, want %d and %v, error %v", tt.name, asked, held, tt.asked, tt.held, err)
		}
	}
}

// TestSweepTrashGoesOn: an entry that cannot be removed does not keep the rest, and an object of
// the name of an hour, which a crash has left, is removed.
func TestSweepTrashGoesOn(t *testing.T) {
	t.Parallel()
	s, alias, driver := trashed(t)
	now := s.now()
	stuck := alias.TrashKey(keep(t, alias, driver, "a.jpg", now.Add(-100*time.Hour)))
	later := alias.TrashKey(keep(t, alias, driver, "b.jpg", now.Add(-50*time.Hour)))
	stray := alias.TrashHour(now.Add(-70 * time.Hour))
	if _, err := driver.Put(t.Context(), stray, strings.NewReader(""), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	driver.Fail = func(op, key string) error {
		if op == "delete" && key == stuck {
			return fs.ErrPermission
		}
		return nil
	}
	if err := s.SweepTrash(t.Context(), alias); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v", err)
	}
	for _, key := range []string{later, stray} {
		if _, err := driver.Stat(t.Context(), key); err == nil {
			t.Errorf("%s is left", key)
		}
	}
}

// TestSweepTrashFolders: a local folder keeps no folders of hours that are over and swept.
func TestSweepTrashFolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	parts := partsOf(t)
	parts.Storages[0].Driver = local.New(local.Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler))
	s := start(t, parts)
	alias, _ := s.Alias(item.Image, "webp")
	alias.Trash = time.Hour
	left := 0
	for age, stays := range map[time.Duration]bool{0: true, 100 * time.Hour: false, 50 * time.Hour: false} {
		old := storagedrivers.Info{Key: alias.Key("sub/a.jpg"), ModTime: s.now()}
		key := alias.TrashKey(alias.NewKept(old, s.now().Add(-age)))
		if _, err := alias.Storage.Put(t.Context(), key, strings.NewReader("x"), storagedrivers.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		if stays {
			left++
		}
	}
	if err := s.SweepTrash(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	hours, err := os.ReadDir(filepath.Join(root, "img/webp@trash"))
	if err != nil || len(hours) != left {
		t.Errorf("%d hours are left, error %v", len(hours), err)
	}
}

// TestSweepMoment: a crash may leave the object by which the clock of a storage is compared. It is
// in no list, and swept.
func TestSweepMoment(t *testing.T) {
	t.Parallel()
	s, alias, driver := trashed(t)
	driver.Fail = func(op, _ string) error {
		if op == "delete" {
			return storagedrivers.ErrUnavailable
		}
		return nil
	}
	query := MomentQuery{Alias: alias, At: s.now().Add(-time.Minute), Began: s.now(), Limit: 1}
	if _, err := s.Moment(t.Context(), query); !errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	driver.Fail = nil
	page, err := s.ListTrash(t.Context(), TrashQuery{Alias: alias, Limit: 10})
	if err != nil || len(page.Entries) > 0 {
		t.Errorf("%+v, error %v", page, err)
	}
	if err := s.SweepTrash(t.Context(), alias); err != nil {
		t.Error(err)
	}
	for info, err := range alias.Storage.All(t.Context(), "") {
		t.Errorf("%s is left, error %v", info.Key, err)
	}
}
