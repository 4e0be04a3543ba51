package derived_test

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

func TestRenew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		stored []string // keys in the order in which they were stored
		paint  color.NRGBA
		all    bool

		want  derived.Renewed
		left  string // the variant
		fails error
	}{
		{"missing", []string{"a.png"}, red, false, derived.Renewed{Before: item.VariantMissing, Result: item.VariantMade, Size: 14}, webpOf(red), nil},
		{"stale", []string{"a.png.webp", "a.png"}, red, false, derived.Renewed{Before: item.VariantStale, Result: item.VariantMade, Size: 14}, webpOf(red), nil},
		{"current", []string{"a.png", "a.png.webp"}, red, false, derived.Renewed{Before: item.VariantCurrent}, "variant", nil},
		{"current, all", []string{"a.png", "a.png.webp"}, red, true, derived.Renewed{Before: item.VariantCurrent, Result: item.VariantMade, Size: 14}, webpOf(red), nil},
		{"none", []string{"a.png"}, unloved, false, derived.Renewed{Before: item.VariantMissing, Result: item.VariantNone, Size: 0}, "", render.ErrNone},
		{"stale and none", []string{"a.png.webp", "a.png"}, unloved, false, derived.Renewed{Before: item.VariantStale, Result: item.VariantNone, Size: 0}, "", render.ErrNone},
		{"current and none", []string{"a.png", "a.png.webp"}, unloved, true, derived.Renewed{Before: item.VariantCurrent, Result: item.VariantNone, Size: 0}, "variant", render.ErrNone},
		{"no image", []string{"a.png.webp"}, red, true, derived.Renewed{}, "variant", fs.ErrNotExist},
	} {
		for name, open := range storages {
			t.Run(c.name+" on "+name, func(t *testing.T) {
				t.Parallel()
				s := open(t, nil)
				alias := imageAlias(t, s)
				want := map[string]string{}
				for _, key := range c.stored {
					want[key] = "variant"
					if key == "a.png" {
						want[key] = pngOf(c.paint)
					}
					put(t, s, key, want[key])
				}
				if delete(want, "a.png.webp"); c.left != "" {
					want["a.png.webp"] = c.left
				}
				done, err := newMaker().Renew(t.Context(), alias, "a.png", c.all)
				if done != c.want || !errors.Is(err, c.fails) {
					t.Errorf("%+v, %v, want %+v, %v", done, err, c.want, c.fails)
				}
				wantContents(t, s, want)
			})
		}
	}
}

// TestRenewRefused: a damaged image, other items, and all items of an alias without variants get no
// variant.
func TestRenewRefused(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	with, without := imageAlias(t, s), imageAlias(t, s)
	without.WebP = nil
	put(t, s, "good.png", pngOf(red))
	for _, filename := range []string{"damaged.png", "a.svg", "a.png.webp", "a.txt"} {
		put(t, s, filename, "x")
	}
	want := contents(t, s)
	for filename, alias := range map[string]*item.Alias{
		"damaged.png": with, "a.svg": with, "a.png.webp": with, "a.txt": with, "good.png": without,
	} {
		if _, err := newMaker().Renew(t.Context(), alias, filename, true); err == nil || errors.Is(err, render.ErrNone) {
			t.Errorf("%s: error %v", filename, err)
		}
	}
	wantContents(t, s, want)
}

// TestRenewOvertaken: another process replaces or deletes an image while its variant is being made,
// or before its bytes are read.
func TestRenewOvertaken(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"memory", "local"} {
		for _, at := range []string{"open", "made"} {
			for name, c := range map[string]struct {
				want  map[string]string // as the other process leaves it
				fails error
			}{
				"an image":                   {map[string]string{"a.png": pngOf(blue), "a.png.webp": webpOf(blue)}, nil},
				"an image without a variant": {map[string]string{"a.png": pngOf(unloved)}, fs.ErrNotExist},
				"its deletion":               {map[string]string{}, fs.ErrNotExist},
			} {
				if at == "open" && (kind == "local" || c.fails != nil) {
					continue // the local driver has no such fault; the errors are others
				}
				t.Run(kind+", "+name+" at "+at, func(t *testing.T) {
					t.Parallel()
					var there *storagedrivers.Storage
					var armed, overtaken atomic.Bool
					var here *storagedrivers.Storage
					here, there = shared(t, kind, func(op, key string) error {
						made := op == "stage" || op == "put" && strings.HasSuffix(key, render.Suffix)
						if !armed.Load() || (at == "open") != (op == "open") || at == "made" && !made || overtaken.Swap(true) {
							return nil
						}
						for _, key := range []string{"a.png", "a.png.webp"} {
							if value, ok := c.want[key]; ok {
								replace(t, there, key, value)
							} else if err := item.Remove(t.Context(), there, key); err != nil {
								t.Error(err)
							}
						}
						return nil
					})
					alias := imageAlias(t, here)
					alias.Overwrite = true
					put(t, here, "a.png", pngOf(red))
					armed.Store(true)
					if _, err := newMaker().Renew(t.Context(), alias, "a.png", false); !errors.Is(err, c.fails) {
						t.Errorf("error %v, want %v", err, c.fails)
					}
					if !overtaken.Load() {
						t.Error("no process overtook it")
					}
					wantContents(t, here, c.want)
				})
			}
		}
	}
}

// TestReconcileLeavesOthers: the variant of another process, which has also replaced the image,
// stays.
func TestReconcileLeavesOthers(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	var mine [2]storagedrivers.Info
	for i, key := range []string{"a.png", "a.png.webp"} {
		put(t, s, key, pngOf(red))
		var err error
		if mine[i], err = s.Stat(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		replace(t, s, key, pngOf(blue))
	}
	if hasVariant, err := newMaker().Reconcile(t.Context(), imageAlias(t, s), "a.png", mine[0], mine[1]); !hasVariant || err != nil {
		t.Errorf("it has a variant: %t, error %v", hasVariant, err)
	}
	wantContents(t, s, map[string]string{"a.png": pngOf(blue), "a.png.webp": pngOf(blue)})
}

// TestWaits: upkeep waits for uploads and deletions of the name.
func TestWaits(t *testing.T) {
	t.Parallel()
	for stored, upkeep := range map[string]func(context.Context, *item.Alias, storagedrivers.Info) error{
		"a.png": func(ctx context.Context, alias *item.Alias, _ storagedrivers.Info) error {
			_, err := newMaker().Renew(ctx, alias, "a.png", false)
			return err
		},
		"a.png.webp": func(ctx context.Context, alias *item.Alias, orphan storagedrivers.Info) error {
			_, err := newMaker().RemoveOrphan(ctx, alias, orphan)
			return err
		},
	} {
		s := onMemory(t, nil)
		alias := imageAlias(t, s)
		replace(t, s, stored, pngOf(red))
		info, err := s.Stat(t.Context(), stored)
		if err != nil {
			t.Fatal(err)
		}
		unlock, err := alias.Lock(t.Context(), "a.png")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := upkeep(ctx, alias, info); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
		}
		cancel()
		unlock()
		wantContents(t, s, map[string]string{stored: pngOf(red)})
	}
}

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
	onEach(t, func(t *testing.T, open opener) {
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
