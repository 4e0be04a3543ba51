package upload

import (
	"context"
	"image/color"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// wholeSeconds is a driver with times in whole seconds, whose clock stands still. If it dates, an
// object that replaces another one gets a later time.
type wholeSeconds struct {
	*memory.Driver
	dates bool

	mu    sync.Mutex
	times map[string]time.Time
}

func (d *wholeSeconds) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	_, missing := d.Driver.Stat(ctx, key)
	info, err := d.Driver.Put(ctx, key, r, opts)
	if err != nil {
		return info, err
	}
	d.mu.Lock()
	at := noon
	if d.dates && missing == nil {
		at = d.times[key].Add(time.Second)
	}
	if d.dates && at.Before(opts.NotBefore) {
		at = opts.NotBefore
	}
	d.times[key] = at
	d.mu.Unlock()
	return d.dated(info), nil
}

func (d *wholeSeconds) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	r, info, err := d.Driver.Open(ctx, key, rng)
	return r, d.dated(info), err
}

func (d *wholeSeconds) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := d.Driver.Stat(ctx, key)
	return d.dated(info), err
}

func (d *wholeSeconds) dated(info storagedrivers.Info) storagedrivers.Info {
	d.mu.Lock()
	defer d.mu.Unlock()
	info.ModTime = d.times[info.Key]
	return info
}

// onWholeSeconds returns an Overwrite alias for images on a storage with times in whole seconds,
// and its uploader, which has stored a red image. fail is called before each later operation.
func onWholeSeconds(t *testing.T, dates bool, fail func(op, key string) error) (*item.Alias, *Uploader) {
	t.Helper()
	d := memory.New()
	started := false
	d.Fail = func(op, key string) error {
		if !started {
			return nil
		}
		return fail(op, key)
	}
	alias := imageAlias(t, closed(t, "seconds", &wholeSeconds{Driver: d, dates: dates, times: map[string]time.Time{}}, storagedrivers.Options{}))
	alias.Overwrite = true
	u := newUploader(alias)
	if _, failures := uploadImages(t, u, file("a.png", pngOf(red)), file("b.png", pngOf(red))); failures != nil {
		t.Fatal(failures)
	}
	started = true
	return alias, u
}

// TestVariantWithinASecond: an image that is replaced again and again within a second, on a storage
// with times in whole seconds, never has the variant of an earlier image. Nor would it after a
// crash. In the end it has its own.
func TestVariantWithinASecond(t *testing.T) {
	t.Parallel()
	for name, dates := range map[string]bool{"a host that dates": true, "a host with its own clock": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var alias *item.Alias
			looking := false
			alias, u := onWholeSeconds(t, dates, func(string, string) error {
				if looking {
					return nil
				}
				looking = true
				defer func() { looking = false }()
				now := contents(t, alias.Storage)
				state, err := alias.VariantState(t.Context(), "a.png")
				isOwn := slices.ContainsFunc([]color.NRGBA{red, blue, green}, func(c color.NRGBA) bool {
					return now["a.png"] == pngOf(c) && now["a.png.webp"] == webpOf(c)
				})
				if state == item.VariantCurrent && !isOwn || err != nil {
					t.Errorf("the variant of an earlier image is %s, error %v", state, err)
				}
				return nil
			})
			for _, paint := range []color.NRGBA{blue, unloved, green, blue, green} {
				if _, failures := uploadImages(t, u, file("a.png", pngOf(paint))); failures != nil {
					t.Fatal(failures)
				}
				want := item.VariantCurrent
				if paint == unloved {
					want = item.VariantMissing
				}
				if state, err := alias.VariantState(t.Context(), "a.png"); state != want || err != nil {
					t.Errorf("the variant is %s, want %s, error %v", state, want, err)
				}
			}
			looking = true
			wantContents(t, alias.Storage, map[string]string{
				"a.png": pngOf(green), "a.png.webp": webpOf(green), "b.png": pngOf(red), "b.png.webp": webpOf(red),
			})
		})
	}
}

// TestVariantWithinASecondFails: after a failed replacement every image has its own variant.
func TestVariantWithinASecondFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		at     string // the first operation that fails
		stored color.NRGBA
	}{
		"at the removal": {"delete a.png.webp", red},
		"at the image":   {"put a.png", red},
		"at another one": {"put b.png", blue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := false
			alias, u := onWholeSeconds(t, false, func(op, key string) error {
				if failed || op+" "+key != tt.at {
					return nil
				}
				failed = true
				return storagedrivers.ErrNoSpace
			})
			_, failures := uploadImages(t, u, file("a.png", pngOf(blue)), file("b.png", pngOf(blue)))
			wantFailure(t, failures, item.NoSpace, strings.TrimSuffix(strings.Fields(tt.at)[1], ".webp"), "full")
			now := contents(t, alias.Storage)
			other := red
			if now["b.png"] == pngOf(blue) && name == "at the image" { // it may have been replaced beside a.png
				other = blue
			}
			wantContents(t, alias.Storage, map[string]string{
				"a.png": pngOf(tt.stored), "a.png.webp": webpOf(tt.stored),
				"b.png": pngOf(other), "b.png.webp": webpOf(other),
			})
		})
	}
}

// TestVariantUncoveredElsewhere: an image keeps its variant in the response if another process has
// removed that only to replace the image.
func TestVariantUncoveredElsewhere(t *testing.T) {
	t.Parallel()
	stored, met := false, false
	var alias *item.Alias
	alias, u := onWholeSeconds(t, false, func(op, key string) error {
		if stored = stored || op == "put" && key == "a.png.webp"; !stored || met || op != "stat" || key != "a.png" {
			return nil
		}
		met = true
		replace(t, alias.Storage, key, pngOf(green))
		return item.Remove(t.Context(), alias.Storage, "a.png.webp")
	})
	items, failures := uploadImages(t, u, file("a.png", pngOf(blue)))
	if failures != nil {
		t.Fatal(failures)
	}
	if !met || items[0].WebP == "" {
		t.Errorf("the item is %+v, replaced: %t", items[0], met)
	}
}
