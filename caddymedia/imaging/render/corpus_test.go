package render_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	decoder "github.com/deepteams/webp"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// newMaker returns a Maker with the encoder of this build.
func newMaker(t testing.TB) *render.Maker {
	t.Helper()
	encoder, err := webp.New()
	if err != nil {
		t.Fatal(err)
	}
	return render.NewMaker(encoder, render.Limits{})
}

// made returns the variant of an image.
func made(t testing.TB, file []byte, ext string, opts render.Options) []byte {
	t.Helper()
	out, err := variantOf(t.Context(), newMaker(t), bytes.NewReader(file), checked(t, file, ext), opts)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func decodedWebP(t testing.TB, file []byte) image.Image {
	t.Helper()
	img, err := decoder.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatalf("decoding the variant: %v", err)
	}
	planes, lossy := img.(*image.YCbCr)
	if !lossy {
		return img
	}
	out := image.NewNRGBA(planes.Rect)
	for y := range planes.Rect.Dy() {
		for x := range planes.Rect.Dx() {
			out.SetNRGBA(x, y, limitedRange(planes.YCbCrAt(x, y)))
		}
	}
	return out
}

// limitedRange returns the colour of a sample in the limited range of WebP, ITU-R BT.601.
// image/color assumes the full range of JPEG.
func limitedRange(c color.YCbCr) color.NRGBA {
	y, cb, cr := 1.164383*(float64(c.Y)-16), float64(c.Cb)-128, float64(c.Cr)-128
	sample := func(v float64) uint8 { return uint8(math.Round(min(max(v, 0), 255))) }
	return color.NRGBA{sample(y + 1.596027*cr), sample(y - 0.391762*cb - 0.812968*cr), sample(y + 2.017232*cb), 255}
}

// reference decodes an image in the simplest way.
func reference(t testing.TB, file []byte, info imaging.Info) image.Image {
	t.Helper()
	var img image.Image
	var err error
	switch info.Format {
	case imaging.JPEG:
		img, err = jpeg.Decode(bytes.NewReader(file))
	case imaging.PNG:
		img, err = png.Decode(bytes.NewReader(file))
	default:
		img, err = gif.Decode(bytes.NewReader(file))
	}
	if err != nil {
		t.Fatal(err)
	}
	return turned(img, int(info.Orientation))
}

// TestCorpus makes the variant of every image and compares the visible colours.
func TestCorpus(t *testing.T) {
	t.Parallel()
	root := os.DirFS(imagingtest.Corpus(t))
	for _, folder := range []string{"valid", "color", "orientation"} {
		err := fs.WalkDir(root, folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				file, err := fs.ReadFile(root, name)
				if err != nil {
					t.Fatal(err)
				}
				compare(t, name, file)
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func compare(t *testing.T, name string, file []byte) {
	t.Helper()
	ext := strings.TrimPrefix(filepath.Ext(name), ".")
	info := checked(t, file, ext)
	out := made(t, file, ext, render.Options{})
	got, want := decodedWebP(t, out), reference(t, file, info)
	least := 27.0 // small images full of detail
	switch {
	case info.Width >= 1000:
		least = 36
	case strings.Contains(name, "alpha"):
		least = 37
	case info.Width < 100:
		least = 23 // test cards of the sharpest colours, whose chroma WebP halves
	}
	for _, over := range []color.Gray{{0}, {255}} {
		db := psnr(t, got, want, over)
		t.Logf("%.1f dB over %d, %d bytes of %d", db, over.Y, len(out), len(file))
		if db < least {
			t.Errorf("%.1f dB over %d, want at least %.0f", db, over.Y, least)
		}
	}
}
