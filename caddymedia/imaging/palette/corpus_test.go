package palette_test

import (
	"image"
	"image/color"
	plan9 "image/color/palette"
	"image/draw"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/imaging/palette"
)

// TestBesidePlan9 compares photographs with those in the palette that image/gif uses by default.
func TestBesidePlan9(t *testing.T) {
	t.Parallel()
	for _, path := range append(imagingtest.Files(t, "valid"), imagingtest.Files(t, "color")...) {
		if filepath.Ext(path) != ".jpg" {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			img := photograph(t, path)
			other := image.NewPaletted(img.Rect, plan9.Plan9)
			draw.FloydSteinberg.Draw(other, img.Rect, img, image.Point{})
			got := palette.Paletted(img)
			ours, theirs := psnr(got, img, 1), psnr(other, img, 1)
			ourMeans, theirMeans := psnr(got, img, 4), psnr(other, img, 4)
			t.Logf("%.1f dB, Plan 9 %.1f; means of 4 by 4: %.1f, Plan 9 %.1f", ours, theirs, ourMeans, theirMeans)
			if ours < theirs+10 || ourMeans < theirMeans+4 {
				t.Error("it is not much better than the palette of Plan 9")
			}
		})
	}
}

// photograph returns the middle of a photograph.
func photograph(t *testing.T, path string) *image.NRGBA {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	photo, err := jpeg.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	img := image.NewNRGBA(image.Rect(0, 0, 400, 300))
	middle := photo.Bounds().Size().Sub(img.Rect.Max).Div(2)
	draw.Draw(img, img.Rect, photo, middle, draw.Src)
	return img
}

// psnr returns the peak signal-to-noise ratio of opaque images in dB, of the means of squares.
func psnr(a, b image.Image, side int) float64 {
	sum, n := 0.0, 0.0
	size := a.Bounds().Size().Div(side)
	for i := range size.X * size.Y {
		p, q := mean(a, i%size.X*side, i/size.X*side, side), mean(b, i%size.X*side, i/size.X*side, side)
		for c := range p {
			sum += (p[c] - q[c]) * (p[c] - q[c])
			n++
		}
	}
	return 10 * math.Log10(255*255*n/sum)
}

func mean(img image.Image, x, y, side int) (m [3]float64) {
	for i := range side * side {
		c := color.NRGBAModel.Convert(img.At(x+i%side, y+i/side)).(color.NRGBA)
		for k, v := range []uint8{c.R, c.G, c.B} {
			m[k] += float64(v) / float64(side*side)
		}
	}
	return m
}
