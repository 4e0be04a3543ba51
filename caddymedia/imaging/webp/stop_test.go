package webp_test

import (
	"context"
	"errors"
	"image"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

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
