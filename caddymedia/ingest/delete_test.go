package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// Delete fails if fail does.
func (d *faulty) Delete(ctx context.Context, key string) error {
	if err := d.ask("delete", key); err != nil {
		return err
	}
	return d.Driver.Delete(ctx, key)
}

// withItems returns an alias for pictures and one for files, with items of both on one storage.
func withItems(t *testing.T, s *storagedrivers.Storage, overwrite bool) (u *Uploader, images, files *Alias) {
	t.Helper()
	images, files = pictures(t, s), newAlias(t, DefaultAlias, s)
	images.Overwrite, files.Overwrite = overwrite, overwrite
	images.Prefix = "img/content"
	for key, value := range itemsThere() {
		put(t, s, key, value)
	}
	return newUploader(images, files), images, files
}

func itemsThere() map[string]string {
	return map[string]string{
		"img/content/a.png": "a", "img/content/a.png.webp": "variant of a", "img/content/sub/a.png": "sub a",
		"img/content/b.jpg": "b", "img/content/c.svg": "c", "img/content/old.webp": "brought along",
		"img/content/alone.png.webp": "variant of none",
		"file/content/a.txt":         "text", "file/content/a.png": "file", "file/content/a.png.webp": "file too",
		"file/content/sub/a.txt": "sub text",
	}
}

// TestDelete: an item is removed with its variant, and nothing else is.
func TestDelete(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for _, overwrite := range []bool{false, true} {
			for _, c := range []struct {
				kind     Kind
				filename string
				gone     []string // below the folder of the alias
			}{
				{Image, "a.png", []string{"a.png", "a.png.webp"}},
				{Image, "sub/a.png", []string{"sub/a.png"}},
				{Image, "b.jpg", []string{"b.jpg"}},
				{Image, "c.svg", []string{"c.svg"}},
				{Image, "old.webp", []string{"old.webp"}},
				{Image, "alone.png", []string{"alone.png.webp"}},
				{File, "a.txt", []string{"a.txt"}},
				{File, "a.png", []string{"a.png"}}, // the other one is a file of its own
				{File, "a.png.webp", []string{"a.png.webp"}},
				{File, "sub/a.txt", []string{"sub/a.txt"}},
			} {
				t.Run(fmt.Sprintf("%s %t %s %s", name, overwrite, c.kind, c.filename), func(t *testing.T) {
					t.Parallel()
					s := open(t, nil)
					u, images, files := withItems(t, s, overwrite)
					alias := map[Kind]*Alias{Image: images, File: files}[c.kind]
					if err := u.Delete(t.Context(), alias, c.filename, Actor{}); err != nil {
						t.Fatal(err)
					}
					want := itemsThere()
					for _, gone := range c.gone {
						delete(want, alias.Key(gone))
					}
					wantContents(t, s, want)
					if err := u.Delete(t.Context(), alias, c.filename, Actor{}); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("the second time: %v", err)
					}
				})
			}
		}
	}
}

// TestDeleteOfNone: deleting a name without an item fails with fs.ErrNotExist and removes nothing.
func TestDeleteOfNone(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			u, images, files := withItems(t, s, true)
			for _, filename := range []string{
				"", "/", ".", "..", "none.png", "sub", "sub/", "a.png/", "/a.png", "a.png/x", "../content/a.png", "sub/../a.png",
				"sub//a.png", `sub\a.png`, "a.png\x00", "a.png ", "a\xff.png", "A.PNG", strings.Repeat("x", 2000), "sub/none.txt",
			} {
				for _, alias := range []*Alias{images, files} {
					if err := u.Delete(t.Context(), alias, filename, Actor{}); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%s %q: %v", alias.Kind, filename, err)
					}
				}
			}
			for _, filename := range []string{"a.png.webp", "alone.png.webp", "b.jpg.webp", "none.PNG.webp", "c.svg.webp"} {
				if err := u.Delete(t.Context(), images, filename, Actor{}); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("variant %s: %v", filename, err)
				}
			}
			wantContents(t, s, itemsThere())
		})
	}
}

// TestDeleteOfLongName: an item whose name is too long to have a variant can be deleted.
func TestDeleteOfLongName(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	long := strings.Repeat("x", 255-4) + ".png"
	put(t, s, "img/content/"+long, "long")
	u, images, _ := withItems(t, s, true)
	if err := u.Delete(t.Context(), images, long, Actor{}); err != nil {
		t.Fatal(err)
	}
	wantContents(t, s, itemsThere())
}

// TestDeleteFails: if the storage cannot remove the variant or the picture, its error is returned,
// no variant stays without its picture, and a second try succeeds.
func TestDeleteFails(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for _, kind := range []error{fs.ErrPermission, storagedrivers.ErrUnavailable, storagedrivers.ErrNoSpace} {
			for _, at := range []string{"a.png", "a.png.webp"} {
				t.Run(fmt.Sprintf("%s %v %s", name, kind, at), func(t *testing.T) {
					t.Parallel()
					failing := true
					s := open(t, func(op, key string) error {
						if failing && op == "delete" && key == "img/content/"+at {
							return fmt.Errorf("%s: %w", secret, kind)
						}
						return nil
					})
					u, images, _ := withItems(t, s, true)
					err := u.Delete(t.Context(), images, "a.png", Actor{})
					if !errors.Is(err, kind) || errors.Is(err, fs.ErrNotExist) {
						t.Errorf("error %v, want %v", err, kind)
					}
					want := itemsThere()
					if at == "a.png" && name == "memory" { // local puts the variant back
						delete(want, "img/content/a.png.webp")
					}
					wantContents(t, s, want)
					failing = false
					if err := u.Delete(t.Context(), images, "a.png", Actor{}); err != nil {
						t.Errorf("later: %v", err)
					}
					delete(want, "img/content/a.png")
					delete(want, "img/content/a.png.webp")
					wantContents(t, s, want)
				})
			}
		}
	}
}

// TestDeleteInStorageThatIsDown: an item of an unavailable storage does not count as missing.
func TestDeleteInStorageThatIsDown(t *testing.T) {
	t.Parallel()
	for _, kind := range []error{fs.ErrPermission, storagedrivers.ErrUnavailable} {
		for _, at := range []string{"a.png", "a.png.webp"} {
			t.Run(fmt.Sprintf("%v %s", kind, at), func(t *testing.T) {
				t.Parallel()
				s := onMemory(t, func(op, key string) error {
					if op == "stat" && strings.HasSuffix(key, "content/"+at) {
						return kind
					}
					return nil
				})
				u, images, _ := withItems(t, s, false)
				if err := u.Delete(t.Context(), images, "a.png", Actor{}); !errors.Is(err, kind) || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("error %v, want %v", err, kind)
				}
				wantContents(t, s, itemsThere())
			})
		}
	}
	s := onMemory(t, nil)
	u, _, files := withItems(t, s, false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := u.Delete(t.Context(), files, "a.txt", Actor{}); !errors.Is(err, storagedrivers.ErrClosed) {
		t.Errorf("error %v, want %v", err, storagedrivers.ErrClosed)
	}
}

// TestDeleteOfCallerThatIsGone: a deletion ends before the first removal, or is completed.
func TestDeleteOfCallerThatIsGone(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			s := open(t, func(op, key string) error {
				if op == "delete" && strings.HasSuffix(key, ".webp") {
					cancel()
				}
				return nil
			})
			u, images, _ := withItems(t, s, true)
			gone, leave := context.WithCancel(t.Context())
			leave()
			if err := u.Delete(gone, images, "a.png", Actor{}); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want %v", err, context.Canceled)
			}
			wantContents(t, s, itemsThere())
			if err := u.Delete(ctx, images, "a.png", Actor{}); err != nil {
				t.Error(err)
			}
			want := itemsThere()
			delete(want, "img/content/a.png")
			delete(want, "img/content/a.png.webp")
			wantContents(t, s, want)
		})
	}
}
