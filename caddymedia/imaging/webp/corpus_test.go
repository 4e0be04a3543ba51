package webp_test

import (
	"bytes"
	"image"
	imagedraw "image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// readImage decodes a file: 4:2:0 planes unchanged, everything else as pixels.
func readImage(t testing.TB, path string) image.Image {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var img image.Image
	switch filepath.Ext(path) {
	case ".png":
		img, err = png.Decode(bytes.NewReader(data))
	case ".gif":
		img, err = gif.Decode(bytes.NewReader(data))
	default:
		img, err = jpeg.Decode(bytes.NewReader(data))
	}
	if err != nil {
		t.Fatal(err)
	}
	switch img := img.(type) {
	case *image.YCbCr:
		if img.SubsampleRatio == image.YCbCrSubsampleRatio420 {
			return img
		}
	case *image.NRGBA:
		return img
	}
	out := image.NewNRGBA(image.Rectangle{Max: img.Bounds().Size()})
	imagedraw.Draw(out, out.Rect, img, img.Bounds().Min, imagedraw.Src)
	return out
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"valid", "color"} {
		for _, path := range imagingtest.Files(t, folder) {
			t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				switch img := readImage(t, path).(type) {
				case *image.YCbCr:
					want := pixels(img)
					alike(t, encode(t, img, webp.Options{Quality: 95}), want, 36)
				case *image.NRGBA:
					alike(t, encode(t, img, webp.Options{Lossless: true}), img, 99)
					corpusLossy(t, img)
				}
			})
		}
	}
}

// corpusLossy compares the quality of a lossy file with the best possible one, that of the image
// at half the chroma resolution.
func corpusLossy(t *testing.T, img *image.NRGBA) {
	t.Helper()
	best := pixels(planes(img))
	for i := 3; i < len(best.Pix); i += 4 {
		best.Pix[i] = img.Pix[i]
	}
	got := decode(t, encode(t, img, webp.Options{Quality: 95}))
	for _, background := range []float64{0, 255} {
		possible := psnr(best, img, background)
		if db := psnr(got, img, background); db < min(38, possible-3) {
			t.Errorf("over %v: %.2f dB, where %.2f are possible", background, db, possible)
		}
	}
}

func TestCorpusAnimations(t *testing.T) {
	t.Parallel()
	for _, path := range imagingtest.Files(t, "anim") {
		if filepath.Ext(path) != ".gif" {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			want := readFrames(t, path)
			for _, opts := range []webp.Options{{Quality: 95}, {Lossless: true}} {
				got, _ := play(t, animate(t, want, 0, opts))
				if len(want) != len(got) {
					t.Fatalf("%d frames, want %d", len(got), len(want))
				}
				for i := range got {
					if db := psnr(got[i].img, want[i].img, 255); opts.Lossless && db < 99 || db < 24 {
						t.Errorf("frame %d: %.2f dB", i, db)
					}
				}
			}
		})
	}
}

// readFrames composes the frames of a GIF without their disposals, and leaves out those that change
// nothing.
func readFrames(t *testing.T, path string) []shown {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gif.DecodeAll(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	canvas := image.NewNRGBA(image.Rect(0, 0, g.Config.Width, g.Config.Height))
	var out []shown
	for i, frame := range g.Image {
		imagedraw.Draw(canvas, frame.Rect, frame, frame.Rect.Min, imagedraw.Over)
		img := image.NewNRGBA(canvas.Rect)
		copy(img.Pix, canvas.Pix)
		if i == 0 || !bytes.Equal(out[len(out)-1].img.Pix, img.Pix) {
			out = append(out, shown{img, 100 * time.Millisecond})
		}
	}
	return out
}
