package derived_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/derived"
	"github.com/caddymedia/media/caddymedia/internal/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

// thumbnailOf returns the thumbnail of a stored image, for a new request.
func thumbnailOf(ctx context.Context, t *testing.T, m *derived.Maker, alias *aliases.Alias, filename string) (*derived.Thumbnail, error) {
	t.Helper()
	stored, err := alias.Pair(context.WithoutCancel(ctx), filename)
	if err != nil {
		t.Error(err)
		return nil, err
	}
	return m.Thumbnail(ctx, &derived.ThumbnailRequest{Alias: alias, Filename: filename, Stored: stored})
}

func wantThumbnail(t *testing.T, m *derived.Maker, alias *aliases.Alias, filename, want string) *derived.Thumbnail {
	t.Helper()
	got, err := thumbnailOf(t.Context(), t, m, alias, filename)
	if err != nil {
		t.Errorf("%s: %v", filename, err)
		return new(derived.Thumbnail)
	}
	if string(got.File) != want || got.Info.ContentType != "image/webp" || got.Info.Size != int64(len(want)) {
		t.Errorf("%s: %q, %+v, want %q", filename, got.File, got.Info, want)
	}
	return got
}

// TestThumbnail: a thumbnail is made once, also for many callers, and not stored. That of a replaced
// image is another one with another tag.
func TestThumbnail(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, onMemory(t, nil))
	m, painted := counting(render.Limits{}, func(context.Context) error { return nil })
	put(t, alias.Storage, "pics/often.png", pngOf(red))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { wantThumbnail(t, m, alias, "often.png", webpOf(red)) })
	}
	all.Wait()
	before := wantThumbnail(t, m, alias, "often.png", webpOf(red))
	if n := painted.Load(); n != 2 { // lossy and lossless
		t.Errorf("it was painted %d times", n)
	}
	wantContents(t, alias.Storage, map[string]string{"pics/often.png": pngOf(red)})
	replace(t, alias.Storage, "pics/often.png", pngOf(blue))
	if after := wantThumbnail(t, m, alias, "often.png", webpOf(blue)); after.Info.ETag == before.Info.ETag || after.Info.ETag == "" {
		t.Errorf("tags %s and %s", before.Info.ETag, after.Info.ETag)
	}
}

// TestThumbnailSource: a thumbnail is made of the variant if that is current and smaller.
func TestThumbnailSource(t *testing.T) {
	t.Parallel()
	noon := time.Now()
	at := func(key string, size, second int64) storagedrivers.Info {
		return storagedrivers.Info{Key: key, Size: size, ModTime: noon.Add(time.Duration(second) * time.Second)}
	}
	for _, c := range []struct {
		variant storagedrivers.Info
		want    string
	}{
		{storagedrivers.Info{}, "a.png"},
		{at("a.png.webp", 50, 1), "a.png.webp"},
		{at("a.png.webp", 50, -1), "a.png"},
		{at("a.png.webp", 150, 1), "a.png"},
	} {
		r := derived.ThumbnailRequest{Stored: aliases.Pair{Image: at("a.png", 100, 0), Variant: c.variant}}
		if got := r.Source().Key; got != c.want {
			t.Errorf("%+v: made of %s, want %s", c.variant, got, c.want)
		}
	}
}

// TestThumbnailForms: a thumbnail is upright, fits the box and does not move. Without an encoder for
// WebP it is a JPEG or PNG.
func TestThumbnailForms(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, onMemory(t, nil))
	m := derivedtest.NewMaker(nil, render.Limits{})
	var photo, drawing, film bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewYCbCr(image.Rect(0, 0, 800, 600), image.YCbCrSubsampleRatio420), nil); err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(&drawing, image.NewNRGBA(image.Rect(0, 0, 400, 1000))); err != nil {
		t.Fatal(err)
	}
	frame := func(c color.Color) *image.Paletted {
		return image.NewPaletted(image.Rect(0, 0, 640, 320), color.Palette{c})
	}
	if err := gif.EncodeAll(&film, &gif.GIF{Image: []*image.Paletted{frame(red), frame(blue)}, Delay: []int{10, 10}}); err != nil {
		t.Fatal(err)
	}
	// An Exif segment with the orientation 6: shown turned to the right.
	const exif = "\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	turned := photo.String()[:2] + exif + photo.String()[2:]
	for _, c := range []struct {
		filename, content, kind string
		width, height           int
	}{
		{"form.jpg", photo.String(), "jpeg", 320, 240},
		{"turned.jpg", turned, "jpeg", 240, 320},
		{"form.png", drawing.String(), "png", 128, 320},
		{"form.gif", film.String(), "png", 320, 160},
	} {
		put(t, alias.Storage, alias.Key(c.filename), c.content)
		got, err := thumbnailOf(t.Context(), t, m, alias, c.filename)
		if err != nil {
			t.Errorf("%s: %v", c.filename, err)
			continue
		}
		img, kind, err := image.Decode(bytes.NewReader(got.File))
		if err != nil || kind != c.kind || img.Bounds().Size() != image.Pt(c.width, c.height) || got.Info.ContentType != "image/"+c.kind {
			t.Errorf("%s: %s of %v, %+v, %v", c.filename, kind, img.Bounds(), got.Info, err)
		}
		if c.filename == "form.gif" && color.NRGBAModel.Convert(img.At(9, 9)) != red {
			t.Errorf("the first frame is not shown, but %v", img.At(9, 9))
		}
	}
	put(t, alias.Storage, "pics/still.gif", film.String())
	wantThumbnail(t, newMaker(), alias, "still.gif", webpOf(red)) // its encoder makes no animation
}

// TestThumbnailFails: an image that cannot be rendered is fetched once.
func TestThumbnailFails(t *testing.T) {
	t.Parallel()
	var opens atomic.Int64
	m, alias := newMaker(), withRenditions(t, onMemory(t, func(op, _ string) error {
		if op == "open" {
			opens.Add(1)
		}
		return nil
	}))
	put(t, alias.Storage, "pics/broken.png", "no image")
	for range 5 {
		if _, err := thumbnailOf(t.Context(), t, m, alias, "broken.png"); !derived.IsUnrenderable(err) {
			t.Errorf("error %v", err)
		}
	}
	if n := opens.Load(); n != 1 {
		t.Errorf("it was fetched %d times", n)
	}
	stored, err := alias.Pair(t.Context(), "broken.png")
	if err != nil {
		t.Fatal(err)
	}
	if err := alias.Storage.Delete(t.Context(), "pics/broken.png"); err != nil {
		t.Fatal(err)
	}
	stored.Image.ETag = `"other"`
	r := &derived.ThumbnailRequest{Alias: alias, Filename: "broken.png", Stored: stored}
	if _, err := m.Thumbnail(t.Context(), r); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a deleted image: %v", err)
	}
}

// TestThumbnailLeft: the work ends when its caller leaves, and goes on for a caller that has joined.
func TestThumbnailLeft(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, onMemory(t, nil))
	put(t, alias.Storage, "pics/left.png", pngOf(red))
	begun, ended := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	m, _ := counting(render.Limits{}, func(ctx context.Context) (err error) {
		once.Do(func() {
			close(begun)
			<-ctx.Done()
			err = context.Cause(ctx)
			ended <- err
		})
		return err
	})
	ctx, leave := context.WithCancel(t.Context())
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := thumbnailOf(ctx, t, m, alias, "left.png"); !errors.Is(err, context.Canceled) {
			t.Errorf("one that left: %v", err)
		}
	})
	<-begun
	both.Go(func() { wantThumbnail(t, m, alias, "left.png", webpOf(red)) })
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the work ended with %v", err)
	}
	both.Wait()
}

// TestThumbnailPatience: a caller waits for a bounded time only.
func TestThumbnailPatience(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, onMemory(t, nil))
	put(t, alias.Storage, "pics/long.png", pngOf(red))
	m, _ := counting(render.Limits{Wait: 20 * time.Millisecond}, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	var held atomic.Int64
	stored, err := alias.Pair(t.Context(), "long.png")
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	r := &derived.ThumbnailRequest{Alias: alias, Filename: "long.png", Stored: stored, Hold: func() (func(), error) {
		held.Add(1)
		return func() { close(released) }, nil
	}}
	if _, err := m.Thumbnail(t.Context(), r); !errors.Is(err, render.ErrBusy) {
		t.Errorf("error %v", err)
	}
	<-released
	if held.Load() != 1 {
		t.Errorf("held %d times", held.Load())
	}
	wantContents(t, alias.Storage, map[string]string{"pics/long.png": pngOf(red)})
}
