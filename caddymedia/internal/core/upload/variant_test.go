package upload

import (
	"bytes"
	"context"
	"errors"
	"image/color"
	"image/png"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestOverwriteVariant: an image that replaces another one has its own variant, or none.
func TestOverwriteVariant(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
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
			storeImages(t, step.uploader, file("a.png", pngOf(step.paint)))
			want := map[string]string{"a.png": pngOf(step.paint)}
			if step.want != "" {
				want["a.png.webp"] = step.want
			}
			t.Logf("step %d", i)
			wantContents(t, s, want)
		}
	})
}

// TestVariantsOfOneName: images of one name in a request get names of their own, each with its
// variant.
func TestVariantsOfOneName(t *testing.T) {
	t.Parallel()
	const first, second = "a-1795176000.png", "a-1795176001.png"
	for _, c := range []struct {
		name     string
		filename string // forced
		want     []string
	}{
		{"sent", "", []string{"a.png", "b-1795176000.png", first, second}},
		{"forced", "a.png", []string{"a.png", first, second, "a-1795176002.png"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, open opener) {
				s := open(t, nil)
				put(t, s, "b.png", "old")
				req := Upload{Request: Request{Kind: item.Image, Forced: Forced{Filename: c.filename}}}
				items, failures := uploadBody(t, newUploader(imageAlias(t, s)), bytes.NewReader(formBody(
					file("a.png", pngOf(red)), file("b.png", pngOf(green)), file("x/A.png", pngOf(blue)), file("a.png", pngOf(unloved)),
				)), req)
				if got := filenames(items); failures != nil || !slices.Equal(got, c.want) {
					t.Fatalf("names %q, %v, want %q", got, failures, c.want)
				}
				wantContents(t, s, map[string]string{
					"b.png":   "old",
					c.want[0]: pngOf(red), c.want[0] + ".webp": webpOf(red),
					c.want[1]: pngOf(green), c.want[1] + ".webp": webpOf(green),
					c.want[2]: pngOf(blue), c.want[2] + ".webp": webpOf(blue),
					c.want[3]: pngOf(unloved),
				})
			})
		})
	}
}

// TestAllOrNothing: if the commit of an item or a variant fails, all items of the request are
// rolled back, and others stay.
func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for _, key := range []string{"a.png", "a.png.webp", "b.png", "b.png.webp"} {
			t.Run(name+" at "+key, func(t *testing.T) {
				t.Parallel()
				s := open(t, storing(key, storagedrivers.ErrNoSpace))
				put(t, s, "old.png", "old")
				_, failures := uploadImages(t, newUploader(imageAlias(t, s)), file("a.png", pngOf(red)), file("b.png", pngOf(blue)))
				wantFailure(t, failures, item.NoSpace, strings.TrimSuffix(key, ".webp"), "full")
				wantContents(t, s, map[string]string{"old.png": "old"})
				if len(failures) != 1 {
					t.Errorf("%d failures, want 1: %v", len(failures), failures)
				}
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
		storeImages(t, u, file("a.png", pngOf(red)), file("b.png", pngOf(red)))
		failing = true
		_, failures := uploadImages(t, u, file("a.png", pngOf(paint)), file("b.png", pngOf(blue)))
		wantFailure(t, failures, item.NoSpace, "b.png", "full")
		wantContents(t, s, map[string]string{
			"a.png": pngOf(red), "a.png.webp": webpOf(red), "b.png": pngOf(red), "b.png.webp": webpOf(red),
		})
	}
}

// twoImageNodes is twoNodes with aliases for images with variants.
func twoImageNodes(t *testing.T, fail func(op, key string) error) (here, elsewhere *Uploader, s *storagedrivers.Storage) {
	t.Helper()
	s, there := shared(t, "memory", fail)
	one, other := imageAlias(t, s), imageAlias(t, there)
	one.Overwrite, other.Overwrite = true, true
	return newUploader(one), newUploader(other), s
}

// TestVariantOvertaken: another process replaces an image before its variant is committed, on a
// storage that commits one after the other, or right after the commit of an image without a
// variant. In the end the variant belongs to the image, which is fetched once at most.
func TestVariantOvertaken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ paint, winner color.NRGBA }{{red, blue}, {red, unloved}, {unloved, blue}} {
		t.Run(webpOf(c.paint)+" by "+webpOf(c.winner), func(t *testing.T) {
			t.Parallel()
			var elsewhere *Uploader
			var committed, overtaken, fetched atomic.Int32
			here, elsewhere, s := twoImageNodes(t, func(op, key string) error {
				if op == "open" {
					fetched.Add(1)
				}
				now := op == "put" && strings.HasSuffix(key, render.Suffix) || c.paint == unloved && op == "stat" && committed.Load() > 0
				if now && overtaken.Add(1) == 1 {
					if _, failures := uploadImages(t, elsewhere, file("a.png", pngOf(c.winner))); failures != nil {
						t.Error(failures)
					}
				}
				if op == "put" {
					committed.Add(1)
				}
				return nil
			})
			storeImages(t, here, file("a.png", pngOf(c.paint)))
			if n := fetched.Load(); n > 1 || overtaken.Load() == 0 {
				t.Errorf("the image was fetched %d times, overtaken: %d", n, overtaken.Load())
			}
			want := map[string]string{"a.png": pngOf(c.winner)}
			if c.winner != unloved {
				want["a.png.webp"] = webpOf(c.winner)
			}
			wantContents(t, s, want)
		})
	}
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
			uploader, elsewhere, s := twoImageNodes(t, func(op, key string) error {
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
			items := storeImages(t, uploader, file("a.png", pngOf(red)))
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
			wantContents(t, s, want)
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
	storeImages(t, u, file("a.png", pngOf(red)), file("b.png", pngOf(red)), file("d.svg", vector))
	_, failures := uploadImages(t, u,
		file("a.png", pngOf(unloved)), file("b.png", pngOf(blue)), file("c.png", pngOf(blue)), file("d.svg", vector+"\n"), file("z.png", pngOf(red)))
	wantFailure(t, failures, item.NoSpace, "z.png", "full")
	if len(failures) != 4 || !strings.Contains(failures[1].Message, "stays replaced") {
		t.Errorf("%v", failures)
	}
	wantContents(t, s, map[string]string{"a.png": pngOf(unloved), "b.png": pngOf(blue), "d.svg": vector + "\n"})
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
	storeImages(t, u, file("a.png", pngOf(red)))
	if _, failures := uploadImages(t, u, file("a.png", pngOf(green)), file("z.png", pngOf(red))); failures == nil {
		t.Error("the first upload does not fail")
	}
	second.Wait()
	wantContents(t, s, map[string]string{"a.png": pngOf(red), "a.png.webp": webpOf(red)})
}

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

func (d *wholeSeconds) Features() storagedrivers.Features {
	features := d.Driver.Features()
	features.Copies = false // as hosts with such times
	return features
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
	storeImages(t, u, file("a.png", pngOf(red)), file("b.png", pngOf(red)))
	started = true
	return alias, u
}

// TestStays: an item or a variant that cannot be removed is named, and the others are rolled back.
func TestStays(t *testing.T) {
	t.Parallel()
	for stays, content := range map[string]string{"a.png": pngOf(green), "a.png.webp": webpOf(green)} {
		t.Run(stays, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, func(op, key string) error {
				switch {
				case op == "put" && key == "z.png.webp":
					return storagedrivers.ErrNoSpace
				case op == "delete" && key == stays:
					return errors.New(secret)
				}
				return nil
			})
			u := newUploader(imageAlias(t, s))
			_, failures := uploadImages(t, u, file("a.png", pngOf(green)), file("b.png", pngOf(red)), file("z.png", pngOf(red)))
			wantFailure(t, failures, item.NoSpace, "z.png", "full")
			if len(failures) != 2 || failures[1].Filename != "a.png" || !strings.Contains(failures[1].Message, "may stay stored") {
				t.Errorf("%v", failures)
			}
			wantContents(t, s, map[string]string{stays: content})
		})
	}
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
				storeImages(t, u, file("a.png", pngOf(paint)))
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
	items := storeImages(t, u, file("a.png", pngOf(blue)))
	if !met || items[0].WebP == "" {
		t.Errorf("the item is %+v, replaced: %t", items[0], met)
	}
}
