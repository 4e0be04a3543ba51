package upload

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// withItems returns an alias for images and one for files, with items of both on one storage.
func withItems(t *testing.T, s *storagedrivers.Storage, overwrite bool) (u *Uploader, images, files *item.Alias) {
	t.Helper()
	images, files = imageAlias(t, s), newAlias(t, item.DefaultAlias, s)
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
				kind     item.Kind
				filename string
				gone     []string // below the folder of the alias
			}{
				{item.Image, "a.png", []string{"a.png", "a.png.webp"}},
				{item.Image, "sub/a.png", []string{"sub/a.png"}},
				{item.Image, "b.jpg", []string{"b.jpg"}},
				{item.Image, "c.svg", []string{"c.svg"}},
				{item.Image, "old.webp", []string{"old.webp"}},
				{item.Image, "alone.png", []string{"alone.png.webp"}},
				{item.File, "a.txt", []string{"a.txt"}},
				{item.File, "a.png", []string{"a.png"}}, // the other one is a file of its own
				{item.File, "a.png.webp", []string{"a.png.webp"}},
				{item.File, "sub/a.txt", []string{"sub/a.txt"}},
			} {
				t.Run(fmt.Sprintf("%s %t %s %s", name, overwrite, c.kind, c.filename), func(t *testing.T) {
					t.Parallel()
					s := open(t, nil)
					u, images, files := withItems(t, s, overwrite)
					alias := map[item.Kind]*item.Alias{item.Image: images, item.File: files}[c.kind]
					if err := u.Delete(t.Context(), alias, c.filename, item.Actor{}); err != nil {
						t.Fatal(err)
					}
					want := itemsThere()
					for _, gone := range c.gone {
						delete(want, alias.Key(gone))
					}
					wantContents(t, s, want)
					if err := u.Delete(t.Context(), alias, c.filename, item.Actor{}); !errors.Is(err, fs.ErrNotExist) {
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
	onEach(t, func(t *testing.T, open opener) {
		s := open(t, nil)
		u, images, files := withItems(t, s, true)
		for _, filename := range []string{
			"", "/", ".", "..", "none.png", "sub", "sub/", "a.png/", "/a.png", "a.png/x", "../content/a.png", "sub/../a.png",
			"sub//a.png", `sub\a.png`, "a.png\x00", "a.png ", "a\xff.png", "A.PNG", strings.Repeat("x", 2000), "sub/none.txt",
		} {
			for _, alias := range []*item.Alias{images, files} {
				if err := u.Delete(t.Context(), alias, filename, item.Actor{}); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s %q: %v", alias.Kind, filename, err)
				}
			}
		}
		for _, filename := range []string{"a.png.webp", "alone.png.webp", "b.jpg.webp", "none.PNG.webp", "c.svg.webp"} {
			if err := u.Delete(t.Context(), images, filename, item.Actor{}); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("variant %s: %v", filename, err)
			}
		}
		wantContents(t, s, itemsThere())
	})
}

// TestDeleteInUploadsFolder: at the root of a storage, the folder of resumable uploads has no
// items.
func TestDeleteInUploadsFolder(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := newAlias(t, item.DefaultAlias, s)
	alias.Prefix = ""
	key := naming.UploadsFolder + "/open/a.txt"
	put(t, s, key, "record")
	if err := newUploader(alias).Delete(t.Context(), alias, key, item.Actor{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
	wantContents(t, s, map[string]string{key: "record"})
}

// TestDeleteOfLongName: an item whose name is too long to have a variant can be deleted.
func TestDeleteOfLongName(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	long := strings.Repeat("x", 255-4) + ".png"
	put(t, s, "img/content/"+long, "long")
	u, images, _ := withItems(t, s, true)
	if err := u.Delete(t.Context(), images, long, item.Actor{}); err != nil {
		t.Fatal(err)
	}
	wantContents(t, s, itemsThere())
}

// TestDeleteFails: if the storage cannot find or remove the variant or the image, its error is
// returned and the item does not count as missing. No variant stays without its image, and a second
// try succeeds.
func TestDeleteFails(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for _, kind := range []error{fs.ErrPermission, storagedrivers.ErrUnavailable, storagedrivers.ErrNoSpace} {
			for _, at := range []string{"delete a.png", "delete a.png.webp", "stat a.png", "stat a.png.webp"} {
				t.Run(fmt.Sprintf("%s %v %s", name, kind, at), func(t *testing.T) {
					t.Parallel()
					failing := true
					s := open(t, func(op, key string) error {
						if failing && op+" "+strings.TrimPrefix(key, "img/content/") == at {
							return fmt.Errorf("%s: %w", secret, kind)
						}
						return nil
					})
					u, images, _ := withItems(t, s, true)
					err := u.Delete(t.Context(), images, "a.png", item.Actor{})
					if !errors.Is(err, kind) || errors.Is(err, fs.ErrNotExist) {
						t.Errorf("error %v, want %v", err, kind)
					}
					failing = false
					want := itemsThere()
					if at == "delete a.png" && name == "memory" { // local puts the variant back
						delete(want, "img/content/a.png.webp")
					}
					wantContents(t, s, want)
					if err := u.Delete(t.Context(), images, "a.png", item.Actor{}); err != nil {
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

// TestDeleteInClosedStorage: an item of a closed storage does not count as missing.
func TestDeleteInClosedStorage(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	u, _, files := withItems(t, s, false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := u.Delete(t.Context(), files, "a.txt", item.Actor{}); !errors.Is(err, storagedrivers.ErrClosed) {
		t.Errorf("error %v, want %v", err, storagedrivers.ErrClosed)
	}
}

// TestDeleteOfCallerThatIsGone: a deletion ends before the first removal, or is completed.
func TestDeleteOfCallerThatIsGone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
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
		if err := u.Delete(gone, images, "a.png", item.Actor{}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
		wantContents(t, s, itemsThere())
		if err := u.Delete(ctx, images, "a.png", item.Actor{}); err != nil {
			t.Error(err)
		}
		want := itemsThere()
		delete(want, "img/content/a.png")
		delete(want, "img/content/a.png.webp")
		wantContents(t, s, want)
	})
}

// TestDeleteItem: only an item that matches is removed, and neither a variant alone nor another
// object. One that another process stores between the comparison and the removal stays.
func TestDeleteItem(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		s := open(t, nil)
		u, images, _ := withItems(t, s, true)
		remove := func(filename string, matches bool) error {
			_, err := u.DeleteItem(t.Context(), Deletion{Alias: images, Filename: filename, Matches: func(storagedrivers.Info) bool { return matches }})
			return err
		}
		if err := remove("a.png", false); !errors.Is(err, item.ErrOther) {
			t.Errorf("another item: %v", err)
		}
		for _, filename := range []string{"alone.png", "none.png", "a.png.webp", "../file/content/a.txt", ""} {
			if err := remove(filename, true); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%q: %v", filename, err)
			}
		}
		wantContents(t, s, itemsThere())
		matches := same(t, images, "a.png")
		overtaken := Deletion{Alias: images, Filename: "a.png", Matches: func(info storagedrivers.Info) bool {
			defer replace(t, s, "img/content/a.png", "newer")
			return matches(info)
		}}
		if _, err := u.DeleteItem(t.Context(), overtaken); !errors.Is(err, item.ErrOther) {
			t.Errorf("overtaken: %v", err)
		}
		want := itemsThere()
		want["img/content/a.png"] = "newer"
		if s.Features().Together != storagedrivers.Atomic {
			delete(want, "img/content/a.png.webp") // which is removed first
		}
		wantContents(t, s, want)
		if err := remove("a.png", true); err != nil {
			t.Error(err)
		}
	})
}

// TestDeleteWaitsForUpload: a deletion waits for the commit of the image's variant, up to its
// deadline.
func TestDeleteWaitsForUpload(t *testing.T) {
	t.Parallel()
	for name, overwrite := range map[string]bool{"append": false, "overwrite": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deleteWaits(t, overwrite)
		})
	}
}

func deleteWaits(t *testing.T, overwrite bool) {
	halfWay, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := onLocal(t, func(op, key string) error {
		if op == "commit" && strings.HasSuffix(key, ".webp") {
			once.Do(func() {
				close(halfWay)
				<-goOn
			})
		}
		return nil
	})
	u, images, _ := withItems(t, s, overwrite)
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		if _, failures := uploadImages(t, u, file("new.png", pngOf(red))); failures != nil {
			t.Error(failures)
		}
	})
	<-halfWay
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := u.Delete(ctx, images, "new.png", item.Actor{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	if err := u.Delete(t.Context(), images, "b.jpg", item.Actor{}); err != nil {
		t.Errorf("another name: %v", err)
	}
	group.Go(func() {
		if err := u.Delete(t.Context(), images, "new.png", item.Actor{}); err != nil {
			t.Error(err)
		}
	})
	close(goOn)
	group.Wait()
	want := itemsThere()
	delete(want, "img/content/b.jpg")
	wantContents(t, s, want)
}

// TestUploadOfSharedName: an upload that may replace an item waits for those that share its name.
// One that replaces nothing shares it too.
func TestUploadOfSharedName(t *testing.T) {
	t.Parallel()
	for _, overwrite := range []bool{false, true} {
		t.Run(fmt.Sprint("overwrite ", overwrite), func(t *testing.T) {
			t.Parallel()
			alias := newAlias(t, item.DefaultAlias, onMemory(t, nil))
			alias.Overwrite = overwrite
			u := newUploader(alias)
			unlock, err := alias.Share(t.Context(), "a.txt")
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if overwrite {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
			}
			items, failures := u.Upload(ctx, Upload{Request: Request{Kind: item.File}}, Single("a.txt", strings.NewReader("text")))
			if checked(t, items, failures); overwrite != (failures != nil) {
				t.Errorf("while the name is shared: %v, %v", items, failures)
			}
			unlock()
			if _, failures := uploadForm(t, u, file("a.txt", "text")); failures != nil {
				t.Error(failures)
			}
		})
	}
}

// TestDeleteAmongOverwriters: one image is uploaded and deleted again and again. Every upload
// succeeds with its variant, and in the end there are both or neither.
func TestDeleteAmongOverwriters(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		s := open(t, nil)
		alias := imageAlias(t, s)
		alias.Overwrite = true
		u := newUploader(alias)
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				items, failures := uploadImages(t, u, file("a.png", pngOf(color.NRGBA{byte(i), 5, 5, 255})))
				if failures != nil || items[0].WebP == "" {
					t.Errorf("upload %d: %v, %v", i, items, failures)
				}
			})
			group.Go(func() {
				if err := u.Delete(t.Context(), alias, "a.png", item.Actor{}); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("deletion %d: %v", i, err)
				}
			})
		}
		group.Wait()
		if n := len(contents(t, s)); n != 0 && n != 2 {
			t.Errorf("%d objects are left, want an image with its variant or nothing", n)
		}
		err := u.Delete(t.Context(), alias, "a.png", item.Actor{})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		wantContents(t, s, nil)
	})
}

// TestDeleteAmongAppenders: images of one name are uploaded while the first of them is deleted.
// No image is left without its variant, and no variant without its image.
func TestDeleteAmongAppenders(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		s := open(t, nil)
		alias := imageAlias(t, s)
		u := newUploader(alias)
		var uploads, deletions sync.WaitGroup
		var uploaded atomic.Bool
		for range 2 {
			deletions.Go(func() {
				for !uploaded.Load() {
					if err := u.Delete(t.Context(), alias, "a.png", item.Actor{}); err != nil && !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("deletion: %v", err)
					}
				}
			})
		}
		for i := range 64 {
			uploads.Go(func() {
				_, failures := uploadImages(t, u, file("a.png", pngOf(color.NRGBA{byte(i), 5, 5, 255})))
				if failures != nil {
					t.Errorf("upload %d: %v", i, failures)
				}
			})
		}
		uploads.Wait()
		uploaded.Store(true)
		deletions.Wait()
		wantPairs(t, contents(t, s))
	})
}

// wantPairs asserts that there are only images with their variants.
func wantPairs(t *testing.T, left map[string]string) {
	t.Helper()
	for key := range left {
		other, isVariant := strings.CutSuffix(key, render.Suffix)
		if !isVariant {
			other += render.Suffix
		}
		if _, ok := left[other]; !ok {
			t.Errorf("%s is left without %s", key, other)
		}
	}
}
