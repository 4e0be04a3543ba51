package upload

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
)

// TestStaysReplaced: if a storage cannot restore the replaced image, the new one is not left with
// the variant of the old one.
func TestStaysReplaced(t *testing.T) {
	t.Parallel()
	s := onMemory(t, func(op, key string) error {
		if op == "put" && strings.HasPrefix(key, "z.png") {
			return storagedrivers.ErrNoSpace
		}
		return nil
	})
	alias := imageAlias(t, s)
	alias.Overwrite = true
	u := newUploader(alias)
	if _, failures := uploadImages(t, u, file("a.png", pngOf(red)), file("b.png", pngOf(red))); failures != nil {
		t.Fatal(failures)
	}
	_, failures := uploadImages(t, u,
		file("a.png", pngOf(unloved)), file("b.png", pngOf(blue)), file("c.png", pngOf(blue)), file("z.png", pngOf(red)))
	wantFailure(t, failures, item.NoSpace, "z.png", "full")
	if len(failures) != 3 || !strings.Contains(failures[1].Message, "stays replaced") {
		t.Errorf("%v", failures)
	}
	wantContents(t, s, map[string]string{"a.png": pngOf(unloved), "b.png": pngOf(blue)})
}

// TestTwoFail: of two failing uploads that replace one image, neither restores data of the other.
func TestTwoFail(t *testing.T) {
	t.Parallel()
	var u *Uploader
	var second sync.WaitGroup
	var variants atomic.Int32
	s := onLocal(t, func(op, key string) error {
		if op == "commit" && key == "z.png" {
			second.Go(func() {
				if _, failures := uploadImages(t, u, file("a.png", pngOf(blue))); failures == nil {
					t.Error("the second upload does not fail")
				}
			})
			return storagedrivers.ErrNoSpace
		}
		if op == "commit" && key == "a.png.webp" && variants.Add(1) == 3 {
			return storagedrivers.ErrNoSpace
		}
		return nil
	})
	alias := imageAlias(t, s)
	alias.Overwrite = true
	u = newUploader(alias)
	if _, failures := uploadImages(t, u, file("a.png", pngOf(red))); failures != nil {
		t.Fatal(failures)
	}
	if _, failures := uploadImages(t, u, file("a.png", pngOf(green)), file("z.png", pngOf(red))); failures == nil {
		t.Error("the first upload does not fail")
	}
	second.Wait()
	wantContents(t, s, map[string]string{"a.png": pngOf(red), "a.png.webp": webpOf(red)})
}

// TestVariantStays: a variant that cannot be removed is named with its image.
func TestVariantStays(t *testing.T) {
	t.Parallel()
	s := onMemory(t, func(op, key string) error {
		switch {
		case op == "put" && key == "z.png.webp":
			return storagedrivers.ErrNoSpace
		case op == "delete" && key == "a.png.webp":
			return errors.New(secret)
		}
		return nil
	})
	_, failures := uploadImages(t, newUploader(imageAlias(t, s)), file("a.png", pngOf(green)), file("z.png", pngOf(red)))
	wantFailure(t, failures, item.NoSpace, "z.png", "full")
	if len(failures) != 2 || failures[1].Filename != "a.png" || !strings.Contains(failures[1].Message, "may stay stored") {
		t.Errorf("%v", failures)
	}
	wantContents(t, s, map[string]string{"a.png.webp": webpOf(green)})
}
