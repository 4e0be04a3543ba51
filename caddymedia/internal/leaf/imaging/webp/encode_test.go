package webp_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"sync"
	"testing"
	"time"

	reference "github.com/deepteams/webp"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

var sizes = []image.Point{{1, 1}, {2, 1}, {1, 2}, {3, 5}, {15, 17}, {16, 16}, {33, 31}, {257, 129}, {webp.MaxSide, 1}, {1, webp.MaxSide}}

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, size := range sizes {
		t.Run(size.String(), func(t *testing.T) {
			t.Parallel()
			img := drawAlpha(size.X, size.Y)
			alike(t, encode(t, img, webp.Options{Quality: 95}), img, 30)
			alike(t, encode(t, img, webp.Options{Lossless: true}), img, 99)
			p := planes(draw(size.X, size.Y))
			want := pixels(p)
			alike(t, encode(t, p, webp.Options{Quality: 95}), want, 30)
		})
	}
}

func TestLooks(t *testing.T) {
	t.Parallel()
	photo := draw(640, 427)
	for _, effort := range []webp.Effort{webp.Fast, webp.Normal, webp.Small} {
		opts := webp.Options{Effort: effort}
		t.Run("planes/"+string(effort), func(t *testing.T) {
			t.Parallel()
			p := planes(photo)
			want := pixels(p)
			alike(t, encode(t, p, opts), want, 36)
		})
		t.Run("opaque/"+string(effort), func(t *testing.T) {
			t.Parallel()
			alike(t, encode(t, photo, opts), photo, 36)
		})
		t.Run("alpha/"+string(effort), func(t *testing.T) {
			t.Parallel()
			img := drawAlpha(640, 427)
			alike(t, encode(t, img, opts), img, 40)
		})
		t.Run("lossless/"+string(effort), func(t *testing.T) {
			t.Parallel()
			img := drawAlpha(200, 101)
			alike(t, encode(t, img, webp.Options{Effort: effort, Lossless: true}), img, 99)
		})
	}
}

// TestPaddedPlanes: the planes of a JPEG decoder have more samples than the image. They must not
// appear.
func TestPaddedPlanes(t *testing.T) {
	t.Parallel()
	for _, size := range []image.Point{{1, 1}, {31, 33}, {64, 48}, {101, 75}} {
		p := planes(draw(size.X, size.Y))
		file := encode(t, padded(p), webp.Options{})
		if !bytes.Equal(file, encode(t, clonePlanes(p), webp.Options{})) {
			t.Errorf("%v: other bytes than without padding", size)
		}
	}
}

// TestStride: a sub-image shares the pixels of a larger image.
func TestStride(t *testing.T) {
	t.Parallel()
	img := drawAlpha(90, 70)
	view := &image.NRGBA{Pix: img.Pix[img.PixOffset(11, 7):], Stride: img.Stride, Rect: image.Rect(0, 0, 51, 43)}
	tight := image.NewNRGBA(view.Rect)
	for y := range 43 {
		copy(tight.Pix[y*tight.Stride:], view.Pix[y*view.Stride:][:4*51])
	}
	for _, opts := range []webp.Options{{}, {Lossless: true}} {
		if !bytes.Equal(encode(t, view, opts), encode(t, tight, opts)) {
			t.Errorf("%+v: other bytes than of a copy", opts)
		}
	}
}

// TestRange: full range becomes limited range. White stays white, and grey has no tint.
func TestRange(t *testing.T) {
	t.Parallel()
	for _, v := range []uint8{0, 1, 60, 128, 200, 254, 255} {
		p := image.NewYCbCr(image.Rect(0, 0, 40, 40), image.YCbCrSubsampleRatio420)
		for i := range p.Y {
			p.Y[i] = v
		}
		for i := range p.Cb {
			p.Cb[i], p.Cr[i] = 128, 128
		}
		got := decode(t, encode(t, p, webp.Options{Quality: 100})).NRGBAAt(20, 20)
		for _, c := range []uint8{got.R, got.G, got.B} {
			if d := int(c) - int(v); d < -2 || d > 2 {
				t.Errorf("%d became %v", v, got)
			}
		}
	}
}

func TestNoAlphaWithoutNeed(t *testing.T) {
	t.Parallel()
	for _, opts := range []webp.Options{{}, {Lossless: true}, {Profile: []byte("profile")}} {
		file := encode(t, draw(50, 40), opts)
		features, err := reference.GetFeatures(bytes.NewReader(file))
		imagingtest.Must(t, err)
		if features.HasAlpha || bytes.Contains(file, []byte("ALPH")) {
			t.Errorf("%+v: has alpha", opts)
		}
	}
}

func TestPixelsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	img := drawAlpha(123, 77)
	before := bytes.Clone(img.Pix)
	for _, opts := range []webp.Options{{}, {Lossless: true}} {
		encode(t, img, opts)
		if !bytes.Equal(img.Pix, before) {
			t.Errorf("%+v: the image changed", opts)
		}
	}
}

func TestQualityAndSize(t *testing.T) {
	t.Parallel()
	img, last := draw(400, 300), 0
	for _, quality := range []int{1, 20, 50, 80, 95, 100} {
		n := len(encode(t, img, webp.Options{Quality: quality}))
		if n <= last {
			t.Errorf("quality %d: %d bytes, and %d at the one before", quality, n, last)
		}
		last = n
	}
	if a, b := encode(t, img, webp.Options{}), encode(t, img, webp.Options{Quality: webp.DefaultQuality, Effort: webp.Normal}); !bytes.Equal(a, b) {
		t.Error("the zero value is not the defaults")
	}
}

func TestEffortAndSize(t *testing.T) {
	t.Parallel()
	img := draw(640, 480)
	fast := len(encode(t, img, webp.Options{Effort: webp.Fast}))
	normal := len(encode(t, img, webp.Options{}))
	small := len(encode(t, img, webp.Options{Effort: webp.Small}))
	if fast <= normal || normal <= small {
		t.Errorf("%d, %d, %d bytes", fast, normal, small)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	e := newEncoder(t)
	planes := func(ratio image.YCbCrSubsampleRatio) image.Image {
		return image.NewYCbCr(image.Rect(0, 0, 8, 8), ratio)
	}
	short := image.NewYCbCr(image.Rect(0, 0, 8, 8), image.YCbCrSubsampleRatio420)
	short.Cr = short.Cr[:15]
	for name, img := range map[string]image.Image{
		"empty":      image.NewNRGBA(image.Rectangle{}),
		"elsewhere":  image.NewNRGBA(image.Rect(1, 0, 8, 8)),
		"few pixels": &image.NRGBA{Pix: make([]byte, 8*8*4-1), Stride: 32, Rect: image.Rect(0, 0, 8, 8)},
		"thin":       &image.NRGBA{Pix: make([]byte, 8*8*4), Stride: 31, Rect: image.Rect(0, 0, 8, 8)},
		"few chroma": short,
		"4:4:4":      planes(image.YCbCrSubsampleRatio444),
		"4:2:2":      planes(image.YCbCrSubsampleRatio422),
		"grey":       image.NewGray(image.Rect(0, 0, 8, 8)),
		"nothing":    nil,
	} {
		if file, err := e.Encode(t.Context(), img, webp.Options{}); err == nil || file != nil {
			t.Errorf("%s: %d bytes, %v", name, len(file), err)
		}
	}
	for _, img := range []image.Image{
		image.NewNRGBA(image.Rect(0, 0, webp.MaxSide+1, 1)),
		image.NewYCbCr(image.Rect(0, 0, 1, webp.MaxSide+1), image.YCbCrSubsampleRatio420),
	} {
		_, err := e.Encode(t.Context(), img, webp.Options{})
		imagingtest.Is(t, err, webp.ErrTooWide, img.Bounds())
	}
	for _, opts := range []webp.Options{{Quality: -1}, {Quality: 101}, {Effort: "hard"}} {
		_, err := e.Encode(t.Context(), draw(8, 8), opts)
		imagingtest.Fails(t, err, opts, "passes")
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	img, p := drawAlpha(300, 211), planes(draw(300, 211))
	for name, run := range map[string]func() []byte{
		"pixels":   func() []byte { return encode(t, img, webp.Options{}) },
		"planes":   func() []byte { return encode(t, clonePlanes(p), webp.Options{}) },
		"lossless": func() []byte { return encode(t, img, webp.Options{Lossless: true}) },
	} {
		want := run()
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				if !bytes.Equal(run(), want) {
					t.Errorf("%s: run %d gave other bytes", name, i)
				}
			})
		}
		wg.Wait()
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	e := newEncoder(t)
	for _, use := range []webp.Use{webp.Planes, webp.Pixels, webp.Lossless, webp.Frames, webp.Opaque} {
		small := e.Memory(webp.Task{Width: 1, Height: 1, Use: use})
		large := e.Memory(webp.Task{Width: webp.MaxSide, Height: webp.MaxSide, Bytes: webp.MaxSide * webp.MaxSide, Use: use})
		if small <= 0 || large < 5*webp.MaxSide*webp.MaxSide {
			t.Errorf("use %d: %d and %d bytes", use, small, large)
		}
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	if name := newEncoder(t).Name(); len(name) < len("webp 1") {
		t.Errorf("%q", name)
	}
}

func TestStoppedBefore(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for _, img := range []image.Image{draw(9, 9), planes(draw(9, 9))} {
		file, err := newEncoder(t).Encode(ctx, img, webp.Options{})
		if !errors.Is(err, cause) || !errors.Is(err, context.Canceled) || file != nil {
			t.Errorf("%T: %d bytes, %v", img, len(file), err)
		}
	}
}

// TestStoppedWithin: a long Encode ends with the error of its ctx. It ends soon if the encoder can
// be stopped.
func TestStoppedWithin(t *testing.T) {
	t.Parallel()
	e := newEncoder(t)
	img := draw(300, 300)
	if e.Stops() {
		img = tiled(img, 4000, 3000)
	}
	p := planes(img)
	for name, run := range map[string]func(context.Context) ([]byte, error){
		"planes": func(ctx context.Context) ([]byte, error) {
			return e.Encode(ctx, p, webp.Options{Effort: webp.Small})
		},
		"pixels": func(ctx context.Context) ([]byte, error) {
			return e.Encode(ctx, img, webp.Options{Effort: webp.Small, Quality: 100})
		},
		"lossless": func(ctx context.Context) ([]byte, error) {
			return e.Encode(ctx, img, webp.Options{Lossless: true})
		},
		"frames": func(ctx context.Context) ([]byte, error) {
			size := img.Rect.Size()
			frames := reused([]shown{{img, time.Second}, {img, time.Second}})
			return e.Animate(ctx, webp.Animation{Width: size.X, Height: size.Y, Frames: frames}, webp.Options{Effort: webp.Small})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := 100 * time.Millisecond
			if !e.Stops() {
				limit = time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			start := time.Now()
			file, err := run(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || file != nil {
				t.Errorf("%d bytes, %v", len(file), err)
			}
			took := time.Since(start)
			t.Logf("ended after %v", took)
			if took > time.Minute {
				t.Errorf("ended after %v", took)
			}
		})
	}
}

// tiled repeats an image.
func tiled(img *image.NRGBA, width, height int) *image.NRGBA {
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	size := img.Rect.Size()
	for y := range height {
		for x := 0; x < width; x += size.X {
			copy(out.Pix[out.PixOffset(x, y):out.PixOffset(0, y+1)], img.Pix[img.PixOffset(0, y%size.Y):][:4*size.X])
		}
	}
	return out
}

// TestLarge: the prediction modes of such an image do not fit into a file, unless the encoder
// limits them.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	img := draw(160, 48)
	n := uint32(1)
	for i := range img.Pix {
		if n = n*1664525 + 1013904223; i%4 != 3 {
			img.Pix[i] = byte(n >> 24)
		}
	}
	p := planes(tiled(img, 7000, 4010))
	got, err := reference.Decode(bytes.NewReader(encode(t, p, webp.Options{Quality: 50})))
	imagingtest.Must(t, err)
	imagingtest.Equal(t, got.Bounds().Size(), p.Rect.Size(), "an image of", got.Bounds())
}
