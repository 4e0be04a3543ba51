package derived_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/derived"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
)

// later returns a time after all uploads of a test.
func later() time.Time { return time.Now().Add(time.Hour) }

func orphans(t *testing.T, alias *item.Alias, before time.Time) []storagedrivers.Info {
	t.Helper()
	var found []storagedrivers.Info
	for info, err := range derived.Orphans(t.Context(), alias, before) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, info)
	}
	return found
}

func keysOf(infos []storagedrivers.Info) []string {
	keys := make([]string, len(infos))
	for i, info := range infos {
		keys[i] = info.Key
	}
	return keys
}

func TestOrphans(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			alias := imageAlias(t, s)
			alias.Prefix = "img/content"
			for _, key := range []string{
				"img/content/a.png", "img/content/a.png.webp", "img/content/sub/b.png.webp", "img/content/c.txt.webp",
				"img/content/d.webp", "img/content/e.png.webp.webp", "img/contents/f.png.webp", "file/content/u.png.webp", "h.png.webp",
			} {
				put(t, s, key, "x")
			}
			if got, want := keysOf(orphans(t, alias, later())), []string{"img/content/sub/b.png.webp"}; !slices.Equal(got, want) {
				t.Errorf("orphans %q, want %q", got, want)
			}
			if young := orphans(t, alias, time.Now().Add(-time.Hour)); young != nil {
				t.Errorf("%q are too young", keysOf(young))
			}
		})
	}
}

// TestOrphansAcrossPages: the image of a variant may be on an earlier page, and no page is listed
// twice.
func TestOrphansAcrossPages(t *testing.T) {
	t.Parallel()
	var lists atomic.Int32
	s := onMemory(t, func(op, _ string) error {
		if op == "list" {
			lists.Add(1)
		}
		return nil
	})
	alias := imageAlias(t, s)
	var want []string
	for i := range (storagedrivers.ListOptions{}).PageLimit() {
		name := fmt.Sprintf("%04d.png", i)
		if i%100 == 7 {
			want = append(want, name+".webp")
		} else {
			put(t, s, name, "x")
		}
		put(t, s, name+".webp", "x")
	}
	if got := keysOf(orphans(t, alias, later())); !slices.Equal(got, want) {
		t.Errorf("orphans %q, want %q", got, want)
	}
	if n := lists.Load(); n != 2 {
		t.Errorf("%d pages, want 2", n)
	}
}

func TestOrphansFail(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{"list", "stat"} {
		var broken atomic.Bool
		s := onMemory(t, func(op, _ string) error {
			if broken.Load() && op == failing {
				return storagedrivers.ErrNoSpace
			}
			return nil
		})
		put(t, s, "a.png.webp", "x")
		put(t, s, "b.png.webp", "x")
		broken.Store(true)
		var errs []error
		for _, err := range derived.Orphans(t.Context(), imageAlias(t, s), later()) {
			errs = append(errs, err)
		}
		if len(errs) != 1 || !errors.Is(errs[0], storagedrivers.ErrNoSpace) {
			t.Errorf("errors of %s: %v, want one", failing, errs)
		}
	}
}

func TestRemoveOrphan(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for _, c := range []struct {
			name   string
			since  []string // stored since it was found
			want   bool
			remain []string
		}{
			{"alone", nil, true, nil},
			{"its image came", []string{"a.png"}, false, []string{"a.png", "a.png.webp"}},
			{"another came", []string{"a.png.webp"}, false, []string{"a.png.webp"}},
		} {
			t.Run(name+", "+c.name, func(t *testing.T) {
				t.Parallel()
				s := open(t, nil)
				alias := imageAlias(t, s)
				put(t, s, "a.png.webp", "x")
				found := orphans(t, alias, later())
				if len(found) != 1 {
					t.Fatalf("orphans %q, want one", keysOf(found))
				}
				for _, key := range c.since {
					_, err := s.Put(t.Context(), key, strings.NewReader("since"), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
					if err != nil {
						t.Fatal(err)
					}
				}
				removed, err := newMaker().RemoveOrphan(t.Context(), alias, found[0])
				if removed != c.want || err != nil {
					t.Errorf("removed %t, %v, want %t", removed, err, c.want)
				}
				if got := len(contents(t, s)); got != len(c.remain) {
					t.Errorf("%d objects remain, want %q", got, c.remain)
				}
			})
		}
	}
}

// TestRemoveOrphanOvertaken: the image has a variant in the end, if another process stores it
// right before RemoveOrphan removes the variant.
func TestRemoveOrphanOvertaken(t *testing.T) {
	t.Parallel()
	for _, webp := range []bool{true, false} {
		var there *storagedrivers.Storage
		var here *storagedrivers.Storage
		here, there = shared(t, "memory", func(op, key string) error {
			if op == "delete" {
				put(t, there, "a.png", pngOf(red))
			}
			return nil
		})
		alias := imageAlias(t, here)
		put(t, here, "a.png.webp", "x")
		found := orphans(t, alias, later())
		want := map[string]string{"a.png": pngOf(red), "a.png.webp": webpOf(red)}
		if !webp {
			alias.WebP = nil
			delete(want, "a.png.webp")
		}
		removed, err := newMaker().RemoveOrphan(t.Context(), alias, found[0])
		if !removed || err != nil {
			t.Errorf("removed %t, %v", removed, err)
		}
		wantContents(t, here, want)
	}
}
