package upload

import (
	"image/color"
	"image/png"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
)

// TestOverwriteVariant: an image that replaces another one has its own variant, or none.
func TestOverwriteVariant(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			alias := imageAlias(t, s)
			alias.Overwrite = true
			u := newUploader(alias)
			without := imageAlias(t, s)
			without.Overwrite, without.WebP = true, nil
			uploaderWithout := newUploader(without)
			for i, step := range []struct {
				uploader *Uploader
				paint    color.NRGBA
				want     string // the variant, empty for none
			}{
				{u, red, webpOf(red)},
				{u, blue, webpOf(blue)},
				{u, unloved, ""},
				{u, red, webpOf(red)},
				{uploaderWithout, green, ""},
			} {
				if _, failures := uploadImages(t, step.uploader, file("a.png", pngOf(step.paint))); failures != nil {
					t.Fatal(failures)
				}
				want := map[string]string{"a.png": pngOf(step.paint)}
				if step.want != "" {
					want["a.png.webp"] = step.want
				}
				t.Logf("step %d", i)
				wantContents(t, s, want)
			}
		})
	}
}

// TestVariantFails: if the commit of a variant fails, its image and the earlier items are rolled
// back.
func TestVariantFails(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for _, key := range []string{"a.png", "a.png.webp", "b.png", "b.png.webp"} {
			t.Run(name+" at "+key, func(t *testing.T) {
				t.Parallel()
				s := open(t, storing(key, storagedrivers.ErrNoSpace))
				_, failures := uploadImages(t, newUploader(imageAlias(t, s)), file("a.png", pngOf(red)), file("b.png", pngOf(blue)))
				wantFailure(t, failures, item.NoSpace, strings.TrimSuffix(key, ".webp"), "full")
				wantContents(t, s, nil)
			})
		}
	}
}

// TestVariantRolledBack: a rollback restores the replaced variant with its image.
func TestVariantRolledBack(t *testing.T) {
	t.Parallel()
	for _, paint := range []color.NRGBA{blue, unloved} {
		failing, fails := false, storing("b.png.webp", storagedrivers.ErrNoSpace)
		s := onLocal(t, func(op, key string) error {
			if !failing {
				return nil
			}
			return fails(op, key)
		})
		alias := imageAlias(t, s)
		alias.Overwrite = true
		u := newUploader(alias)
		if _, failures := uploadImages(t, u, file("a.png", pngOf(red)), file("b.png", pngOf(red))); failures != nil {
			t.Fatal(failures)
		}
		failing = true
		_, failures := uploadImages(t, u, file("a.png", pngOf(paint)), file("b.png", pngOf(blue)))
		wantFailure(t, failures, item.NoSpace, "b.png", "full")
		wantContents(t, s, map[string]string{
			"a.png": pngOf(red), "a.png.webp": webpOf(red), "b.png": pngOf(red), "b.png.webp": webpOf(red),
		})
	}
}

// TestVariantOvertaken: another process replaces the image before its variant is committed, on a
// storage that commits one after the other. In the end the variant belongs to the image, which is
// fetched once.
func TestVariantOvertaken(t *testing.T) {
	t.Parallel()
	for _, winner := range []color.NRGBA{blue, unloved} {
		t.Run("by "+webpOf(winner), func(t *testing.T) {
			t.Parallel()
			var elsewhere *Uploader
			var overtaken atomic.Bool
			var fetched atomic.Int32
			here, there := shared(t, "memory", func(op, key string) error {
				if op == "open" {
					fetched.Add(1)
				}
				if op != "put" || !strings.HasSuffix(key, render.Suffix) || overtaken.Swap(true) {
					return nil
				}
				if _, failures := uploadImages(t, elsewhere, file("a.png", pngOf(winner))); failures != nil {
					t.Error(failures)
				}
				return nil
			})
			one, other := imageAlias(t, here), imageAlias(t, there)
			one.Overwrite, other.Overwrite = true, true
			elsewhere = newUploader(other)
			if _, failures := uploadImages(t, newUploader(one), file("a.png", pngOf(red))); failures != nil {
				t.Fatal(failures)
			}
			if n := fetched.Load(); n > 1 {
				t.Errorf("the image was fetched %d times", n)
			}
			want := map[string]string{"a.png": pngOf(winner)}
			if winner != unloved {
				want["a.png.webp"] = webpOf(winner)
			}
			wantContents(t, here, want)
		})
	}
}

// TestNoVariantOvertaken: another process replaces an image without a variant right after its commit.
// The newer image keeps its variant.
func TestNoVariantOvertaken(t *testing.T) {
	t.Parallel()
	var elsewhere *Uploader
	var committed, overtaken bool
	here, there := shared(t, "memory", func(op, _ string) error {
		if op == "stat" && committed && !overtaken {
			overtaken = true
			if _, failures := uploadImages(t, elsewhere, file("a.png", pngOf(blue))); failures != nil {
				t.Error(failures)
			}
		}
		committed = committed || op == "put"
		return nil
	})
	one, other := imageAlias(t, here), imageAlias(t, there)
	one.Overwrite, other.Overwrite = true, true
	elsewhere = newUploader(other)
	if _, failures := uploadImages(t, newUploader(one), file("a.png", pngOf(unloved))); failures != nil {
		t.Fatal(failures)
	}
	wantContents(t, here, map[string]string{"a.png": pngOf(blue), "a.png.webp": webpOf(blue)})
}

// TestVariantNeverReconciled: another process replaces the image each time that its variant is
// made again, and once more after the last time. The response matches the final state.
func TestVariantNeverReconciled(t *testing.T) {
	t.Parallel()
	const rounds = 5 // how often package derived makes a variant again
	for _, last := range []color.NRGBA{blue, unloved} {
		t.Run("by "+webpOf(last), func(t *testing.T) {
			t.Parallel()
			var elsewhere *Uploader
			var inside bool
			var made, replaced int // variants here, images there
			here, there := shared(t, "memory", func(op, key string) error {
				paint := color.NRGBA{byte(made), 7, 7, 255}
				switch {
				case inside:
					return nil
				case op == "put" && strings.HasSuffix(key, render.Suffix):
					made++
				case op == "stat" && made == rounds+1 && replaced == made:
					paint = last
				default:
					return nil
				}
				inside = true
				defer func() { inside = false }()
				replaced++
				if _, failures := uploadImages(t, elsewhere, file("a.png", pngOf(paint))); failures != nil {
					t.Error(failures)
				}
				return nil
			})
			one, other := imageAlias(t, here), imageAlias(t, there)
			one.Overwrite, other.Overwrite = true, true
			elsewhere = newUploader(other)
			items, failures := uploadImages(t, newUploader(one), file("a.png", pngOf(red)))
			if failures != nil {
				t.Fatal(failures)
			}
			if replaced != rounds+2 {
				t.Errorf("replaced %d times", replaced)
			}
			if (items[0].WebP != "") != (last != unloved) {
				t.Errorf("the answer has the variant %q", items[0].WebP)
			}
			want := map[string]string{"a.png": pngOf(last)}
			if last != unloved {
				want["a.png.webp"] = webpOf(last)
			}
			wantContents(t, here, want)
		})
	}
}

// TestOverwritersAtOnce: of many concurrent uploads of one image, one wins with its variant.
func TestOverwritersAtOnce(t *testing.T) {
	t.Parallel()
	s := onLocal(t, nil)
	alias := imageAlias(t, s)
	alias.Overwrite = true
	u := newUploader(alias)
	var group sync.WaitGroup
	for i := range 24 {
		group.Go(func() {
			paint := color.NRGBA{byte(10 * i), byte(i), 200, 255}
			if _, failures := uploadImages(t, u, file("a.png", pngOf(paint))); failures != nil {
				t.Error(failures)
			}
		})
	}
	group.Wait()
	got := contents(t, s)
	img, err := png.Decode(strings.NewReader(got["a.png"]))
	if err != nil {
		t.Fatal(err)
	}
	paint := color.NRGBAModel.Convert(img.At(0, 0)).(color.NRGBA)
	if got["a.png.webp"] != webpOf(paint) {
		t.Errorf("beside %v lies %q", paint, got["a.png.webp"])
	}
}
