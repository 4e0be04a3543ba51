package render_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

// recorder is an encoder that records its arguments.
type recorder struct {
	mu       sync.Mutex
	still    []image.Image
	lossless []bool
	frames   []*image.NRGBA
	delays   []time.Duration
	loops    int

	before func(context.Context) error // called before each encoding, if set
	inside atomic.Int32                // number of calls of before in progress
	memory int64                       // bytes per pixel
}

func (r *recorder) Name() string { return "recorder" }
func (r *recorder) Stops() bool  { return true }

func (r *recorder) Memory(t webp.Task) int64 {
	factor := r.memory
	if t.Use == webp.Pixels {
		factor *= 5
	}
	if t.Use == webp.Lossless {
		factor *= 10
	}
	return int64(t.Width) * int64(t.Height) * factor
}

func (r *recorder) Encode(ctx context.Context, img image.Image, opts webp.Options) ([]byte, error) {
	if r.before != nil {
		if err := r.before(ctx); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.still, r.lossless = append(r.still, img), append(r.lossless, opts.Lossless)
	if opts.Lossless {
		return []byte("exact"), nil
	}
	return []byte("not quite exact"), nil
}

func (r *recorder) Animate(_ context.Context, a webp.Animation, _ webp.Options) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loops = a.Loops
	for frame, delay := range a.Frames {
		kept := image.NewNRGBA(frame.Rect)
		copy(kept.Pix, frame.Pix)
		r.frames, r.delays = append(r.frames, kept), append(r.delays, delay)
	}
	return []byte("moving"), nil
}

// checked returns the result of the structural check of an image.
func checked(t testing.TB, file []byte, ext string) imaging.Info {
	t.Helper()
	info, err := imaging.CheckImage(bytes.NewReader(file), int64(len(file)), ext, imaging.Options{})
	imagingtest.Must(t, err, "checking the image")
	return info
}

// variantOf returns the variant of an image.
func variantOf(
	ctx context.Context, m *render.Maker, r io.ReadSeeker, info imaging.Info, opts render.Options,
) ([]byte, error) {
	made, err := m.Make(ctx, r, info, render.Variant(opts))
	if err != nil {
		return nil, err
	}
	return made[0].File, made[0].Err
}

// recorded returns the arguments of the encoder for an image.
func recorded(t testing.TB, file []byte, ext string) *recorder {
	t.Helper()
	r := new(recorder)
	m := render.NewMaker(r, render.Limits{})
	_, err := variantOf(t.Context(), m, bytes.NewReader(file), checked(t, file, ext), render.Options{})
	imagingtest.Must(t, err, "making the variant")
	return r
}

// scene returns a smooth image in which every part is different.
func scene(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			u, v := float64(x)/float64(width), float64(y)/float64(height)
			img.SetNRGBA(x, y, color.NRGBA{
				R: byte(40 + 180*u), G: byte(30 + 200*v), B: byte(128 + 90*math.Sin(5*u+3*v)), A: 255,
			})
		}
	}
	return img
}

func encoded(t testing.TB, encode func(*bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	imagingtest.Must(t, encode(&b))
	return b.Bytes()
}

func asJPEG(t testing.TB, img image.Image) []byte {
	t.Helper()
	return encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, img, &jpeg.Options{Quality: 95}) })
}

func asPNG(t testing.TB, img image.Image) []byte {
	t.Helper()
	return encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, img) })
}

func asGIF(t testing.TB, g *gif.GIF) []byte {
	t.Helper()
	return encoded(t, func(b *bytes.Buffer) error { return gif.EncodeAll(b, g) })
}

// withOrientation inserts EXIF with only an orientation into a JPEG.
func withOrientation(file []byte, o byte) []byte {
	exif := "\xFF\xE1\x00\x22Exif\x00\x00MM\x00\x2A\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" +
		string([]byte{o}) + "\x00\x00\x00\x00\x00\x00"
	return append(append([]byte("\xFF\xD8"), exif...), file[2:]...)
}

// psnr compares the visible colours of two images over a background, in dB.
func psnr(t testing.TB, a, b image.Image, over color.Gray) float64 {
	t.Helper()
	if a.Bounds().Size() != b.Bounds().Size() {
		t.Fatalf("one is %v, the other %v", a.Bounds().Size(), b.Bounds().Size())
	}
	var sum float64
	size := a.Bounds().Size()
	for y := range size.Y {
		for x := range size.X {
			ra, ga, ba := flat(a.At(a.Bounds().Min.X+x, a.Bounds().Min.Y+y), over)
			rb, gb, bb := flat(b.At(b.Bounds().Min.X+x, b.Bounds().Min.Y+y), over)
			sum += (ra-rb)*(ra-rb) + (ga-gb)*(ga-gb) + (ba-bb)*(ba-bb)
		}
	}
	if sum == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(255*255*3*float64(size.X*size.Y)/sum)
}

// flat composes a colour over a background.
func flat(c color.Color, over color.Gray) (r, g, b float64) {
	cr, cg, cb, ca := c.RGBA()
	rest := float64(over.Y) * float64(0xFFFF-ca) / 0xFFFF
	return float64(cr)/257 + rest, float64(cg)/257 + rest, float64(cb)/257 + rest
}

// turned returns an image as viewed under an orientation, by the words of Exif 3.0, tag 0x0112:
// the sides of the view with its row 0 and its column 0.
func turned(img image.Image, o int) image.Image {
	size := img.Bounds().Size()
	out := image.NewNRGBA(image.Rect(0, 0, size.X, size.Y))
	if o >= 5 {
		out = image.NewNRGBA(image.Rect(0, 0, size.Y, size.X))
	}
	right, bottom := out.Rect.Dx()-1, out.Rect.Dy()-1
	for row := range size.Y {
		for column := range size.X {
			var x, y int
			switch o {
			case 1: // row 0 at the top, column 0 at the left
				x, y = column, row
			case 2: // top, right
				x, y = right-column, row
			case 3: // bottom, right
				x, y = right-column, bottom-row
			case 4: // bottom, left
				x, y = column, bottom-row
			case 5: // left, top
				x, y = row, column
			case 6: // right, top
				x, y = right-row, column
			case 7: // right, bottom
				x, y = right-row, bottom-column
			case 8: // left, bottom
				x, y = row, bottom-column
			}
			out.Set(x, y, img.At(column, row))
		}
	}
	return out
}
