package upload

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/storagedrivers"
)

// TestStaysReplaced: if a storage cannot restore the replaced picture, the new one is not left with
// the variant of the old one.
func TestStaysReplaced(t *testing.T) {
	t.Parallel()
	s := onMemory(t, func(op, key string) error {
		if op == "put" && strings.HasPrefix(key, "z.png") {
			return storagedrivers.ErrNoSpace
		}
		return nil
	})
	alias := pictures(t, s)
	alias.Overwrite = true
	u := newUploader(alias)
	if _, failures := uploadPictures(t, u, file("a.png", picture(red)), file("b.png", picture(red))); failures != nil {
		t.Fatal(failures)
	}
	_, failures := uploadPictures(t, u,
		file("a.png", picture(unloved)), file("b.png", picture(blue)), file("c.png", picture(blue)), file("z.png", picture(red)))
	wantFailure(t, failures, aliases.NoSpace, "z.png", "full")
	if len(failures) != 3 || !strings.Contains(failures[1].Message, "stays replaced") {
		t.Errorf("%v", failures)
	}
	wantContents(t, s, map[string]string{
		"a.png": picture(unloved), "b.png": picture(blue), "b.png.webp": webpOf(blue),
	})
}

// TestTwoFail: of two failing uploads that replace one picture, neither restores data of the other.
func TestTwoFail(t *testing.T) {
	t.Parallel()
	var u *Uploader
	var second sync.WaitGroup
	var variants atomic.Int32
	s := onLocal(t, func(op, key string) error {
		if op == "commit" && key == "z.png" {
			second.Go(func() {
				if _, failures := uploadPictures(t, u, file("a.png", picture(blue))); failures == nil {
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
	alias := pictures(t, s)
	alias.Overwrite = true
	u = newUploader(alias)
	if _, failures := uploadPictures(t, u, file("a.png", picture(red))); failures != nil {
		t.Fatal(failures)
	}
	if _, failures := uploadPictures(t, u, file("a.png", picture(green)), file("z.png", picture(red))); failures == nil {
		t.Error("the first upload does not fail")
	}
	second.Wait()
	wantContents(t, s, map[string]string{"a.png": picture(red), "a.png.webp": webpOf(red)})
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
	_, failures := uploadPictures(t, newUploader(pictures(t, s)), file("a.png", picture(green)), file("z.png", picture(red)))
	wantFailure(t, failures, aliases.NoSpace, "z.png", "full")
	if len(failures) != 2 || failures[1].Filename != "a.png" || !strings.Contains(failures[1].Message, "may stay stored") {
		t.Errorf("%v", failures)
	}
	wantContents(t, s, map[string]string{"a.png.webp": webpOf(green)})
}

// TestNameThatIsTooLongLater: a name without room for the time is refused even if it is free.
func TestNameThatIsTooLongLater(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := newAlias(t, aliases.DefaultAlias, s)
	alias.Prefix = strings.TrimSuffix(strings.Repeat(strings.Repeat("p", 200)+"/", 5), "/")
	_, failures := uploadForm(t, newUploader(alias), file("abcdefghi.txt", "text"))
	wantFailure(t, failures, aliases.BadRequest, "abcdefghi.txt", "too long")
}
