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

	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/item"
)

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

// TestUploadOfSharedName: an upload that may replace an item waits for those that share its name. One
// that replaces nothing shares it too.
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
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
}

// TestDeleteAmongAppenders: images of one name are uploaded while the first of them is deleted.
// No image is left without its variant, and no variant without its image.
func TestDeleteAmongAppenders(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
