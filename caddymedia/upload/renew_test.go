package upload

import (
	"context"
	"errors"
	"image/color"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/derived"
	"github.com/caddymedia/media/caddymedia/imaging/render"
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
		{"missing", []string{"a.png"}, red, false, derived.Renewed{Before: aliases.VariantMissing, Result: aliases.VariantMade, Size: 14}, webpOf(red), nil},
		{"stale", []string{"a.png.webp", "a.png"}, red, false, derived.Renewed{Before: aliases.VariantStale, Result: aliases.VariantMade, Size: 14}, webpOf(red), nil},
		{"current", []string{"a.png", "a.png.webp"}, red, false, derived.Renewed{Before: aliases.VariantCurrent}, "variant", nil},
		{"current, all", []string{"a.png", "a.png.webp"}, red, true, derived.Renewed{Before: aliases.VariantCurrent, Result: aliases.VariantMade, Size: 14}, webpOf(red), nil},
		{"none", []string{"a.png"}, unloved, false, derived.Renewed{Before: aliases.VariantMissing, Result: aliases.VariantNone, Size: 0}, "", render.ErrNone},
		{"stale and none", []string{"a.png.webp", "a.png"}, unloved, false, derived.Renewed{Before: aliases.VariantStale, Result: aliases.VariantNone, Size: 0}, "", render.ErrNone},
		{"current and none", []string{"a.png", "a.png.webp"}, unloved, true, derived.Renewed{Before: aliases.VariantCurrent, Result: aliases.VariantNone, Size: 0}, "variant", render.ErrNone},
		{"no picture", []string{"a.png.webp"}, red, true, derived.Renewed{}, "variant", fs.ErrNotExist},
	} {
		for name, open := range storages {
			t.Run(c.name+" on "+name, func(t *testing.T) {
				t.Parallel()
				s := open(t, nil)
				alias := pictures(t, s)
				want := map[string]string{}
				for _, key := range c.stored {
					want[key] = "variant"
					if key == "a.png" {
						want[key] = picture(c.paint)
					}
					put(t, s, key, want[key])
				}
				if delete(want, "a.png.webp"); c.left != "" {
					want["a.png.webp"] = c.left
				}
				done, err := newUploader(alias).Derived.Renew(t.Context(), alias, "a.png", c.all)
				if done != c.want || !errors.Is(err, c.fails) {
					t.Errorf("%+v, %v, want %+v, %v", done, err, c.want, c.fails)
				}
				wantContents(t, s, want)
			})
		}
	}
}

// TestRenewDamaged: a damaged picture gets no new variant and keeps the old one.
func TestRenewDamaged(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := pictures(t, s)
	put(t, s, "a.png", "no picture")
	if _, err := newUploader(alias).Derived.Renew(t.Context(), alias, "a.png", false); err == nil || errors.Is(err, render.ErrNone) {
		t.Errorf("error %v, want one about the content", err)
	}
	wantContents(t, s, map[string]string{"a.png": "no picture"})
}

func TestRenewOnlyPictures(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := pictures(t, s)
	for _, filename := range []string{"a.svg", "a.png.webp", "a.txt"} {
		put(t, s, filename, "x")
		if _, err := newUploader(alias).Derived.Renew(t.Context(), alias, filename, true); err == nil {
			t.Errorf("%s has a variant", filename)
		}
	}
	alias.WebP = nil
	put(t, s, "a.png", picture(red))
	if _, err := newUploader(alias).Derived.Renew(t.Context(), alias, "a.png", true); err == nil {
		t.Error("an alias without variants has one")
	}
}

// TestRenewOvertaken: another process replaces or deletes a picture while its variant is being
// made.
func TestRenewOvertaken(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"memory", "local"} {
		for name, c := range map[string]struct {
			overtake func(*testing.T, *Uploader)
			want     map[string]string
			fails    error
		}{
			"by a picture": {
				func(t *testing.T, u *Uploader) {
					if _, failures := uploadPictures(t, u, file("a.png", picture(blue))); failures != nil {
						t.Error(failures)
					}
				},
				map[string]string{"a.png": picture(blue), "a.png.webp": webpOf(blue)},
				nil,
			},
			"by one without a variant": {
				func(t *testing.T, u *Uploader) {
					if _, failures := uploadPictures(t, u, file("a.png", picture(unloved))); failures != nil {
						t.Error(failures)
					}
				},
				map[string]string{"a.png": picture(unloved)},
				fs.ErrNotExist,
			},
			"by its deletion": {
				func(t *testing.T, u *Uploader) {
					if err := u.Delete(t.Context(), u.Aliases[aliases.Image][aliases.DefaultAlias], "a.png", aliases.Actor{}); err != nil {
						t.Error(err)
					}
				},
				map[string]string{},
				fs.ErrNotExist,
			},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				var elsewhere *Uploader
				var armed, overtaken atomic.Bool
				here, there := shared(t, kind, func(op, key string) error {
					fetched := op == "stage" || op == "put" && strings.HasSuffix(key, render.Suffix)
					if armed.Load() && fetched && !overtaken.Swap(true) {
						c.overtake(t, elsewhere)
					}
					return nil
				})
				one, other := pictures(t, here), pictures(t, there)
				one.Overwrite, other.Overwrite = true, true
				elsewhere = newUploader(other)
				put(t, here, "a.png", picture(red))
				armed.Store(true)
				if _, err := newUploader(one).Derived.Renew(t.Context(), one, "a.png", false); !errors.Is(err, c.fails) {
					t.Errorf("error %v, want %v", err, c.fails)
				}
				if !overtaken.Load() {
					t.Error("nobody overtook it")
				}
				wantContents(t, here, c.want)
			})
		}
	}
}

// TestRenewOvertakenBeforeItsBytes: the picture is replaced between Stat and Open.
func TestRenewOvertakenBeforeItsBytes(t *testing.T) {
	t.Parallel()
	var elsewhere *Uploader
	var armed, overtaken atomic.Bool
	here, there := shared(t, "memory", func(op, _ string) error {
		if armed.Load() && op == "open" && !overtaken.Swap(true) {
			if _, failures := uploadPictures(t, elsewhere, file("a.png", picture(blue))); failures != nil {
				t.Error(failures)
			}
		}
		return nil
	})
	one, other := pictures(t, here), pictures(t, there)
	one.Overwrite, other.Overwrite = true, true
	elsewhere = newUploader(other)
	put(t, here, "a.png", picture(red))
	armed.Store(true)
	if _, err := newUploader(one).Derived.Renew(t.Context(), one, "a.png", false); err != nil {
		t.Error(err)
	}
	wantContents(t, here, map[string]string{"a.png": picture(blue), "a.png.webp": webpOf(blue)})
}

// TestRenewWaits: Renew waits for uploads and deletions of the name.
func TestRenewWaits(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := pictures(t, s)
	put(t, s, "a.png", picture(red))
	unlock, err := alias.Lock(t.Context(), "a.png")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := newUploader(alias).Derived.Renew(ctx, alias, "a.png", false); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	wantContents(t, s, map[string]string{"a.png": picture(red)})
}
