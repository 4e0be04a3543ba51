package scale_test

import (
	"image"
	"image/draw"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
)

// tiled returns an image of 12 megapixels, made of a photograph at its own size.
func tiled(b *testing.B) *image.YCbCr {
	b.Helper()
	photo := decoded(b, filepath.Join(imagingtest.Corpus(b), "valid", "photo-1024-sunset.jpg")).(*image.YCbCr)
	out := image.NewYCbCr(image.Rect(0, 0, 4000, 3000), image.YCbCrSubsampleRatio420)
	width, height := photo.Rect.Dx()&^1, photo.Rect.Dy()&^1
	for y := range 3000 {
		for x := range 4000 {
			i, j := out.YOffset(x, y), photo.YOffset(x%width, y%height)
			out.Y[i] = photo.Y[j]
			i, j = out.COffset(x, y), photo.COffset(x%width, y%height)
			out.Cb[i], out.Cr[i] = photo.Cb[j], photo.Cr[j]
		}
	}
	return out
}

func BenchmarkScale(b *testing.B) {
	planes := tiled(b)
	pixels := image.NewNRGBA(planes.Rect)
	draw.Draw(pixels, pixels.Rect, planes, image.Point{}, draw.Src)
	soft := image.NewNRGBA(planes.Rect)
	copy(soft.Pix, pixels.Pix)
	for i := 3; i < len(soft.Pix); i += 4 {
		soft.Pix[i] = byte(i / 64)
	}
	for _, c := range []struct {
		name   string
		img    image.Image
		widths []int
		turn   scale.Turn
	}{
		{"planes to 320, 640 and 1280", planes, []int{320, 640, 1280}, scale.Turn{}},
		{"planes to 1280", planes, []int{1280}, scale.Turn{}},
		{"planes to 960, turned", planes, []int{960}, turns[5]},
		{"pixels to 1280", pixels, []int{1280}, scale.Turn{}},
		{"alpha to 1280", soft, []int{1280}, scale.Turn{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := scale.New(c.img)
				for _, width := range c.widths {
					upright := planes.Rect.Size()
					if c.turn.Transpose {
						upright.X, upright.Y = upright.Y, upright.X
					}
					s.Scale(scale.Box{Width: width}.View(upright.X, upright.Y), c.turn)
				}
			}
		})
	}
}
