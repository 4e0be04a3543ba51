package scale_test

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging/scale"
)

var ratios = []image.YCbCrSubsampleRatio{
	image.YCbCrSubsampleRatio444, image.YCbCrSubsampleRatio422, image.YCbCrSubsampleRatio420,
	image.YCbCrSubsampleRatio440, image.YCbCrSubsampleRatio411, image.YCbCrSubsampleRatio410,
}

// turns are the turns of the EXIF orientations 1 to 8.
var turns = []scale.Turn{
	{},
	{FlipX: true},
	{FlipX: true, FlipY: true},
	{FlipY: true},
	{Transpose: true},
	{FlipY: true, Transpose: true},
	{FlipX: true, FlipY: true, Transpose: true},
	{FlipX: true, Transpose: true},
}

// channel returns the value of a channel at a point, in pixels.
type channel func(x, y float64, channel int) float64

// subsampling returns how many pixels a sample of chroma covers.
func subsampling(ratio image.YCbCrSubsampleRatio) (x, y int) {
	full := image.NewYCbCr(image.Rect(0, 0, 4, 4), ratio)
	x = 4 / full.CStride
	return x, 16 / x / len(full.Cb)
}

// planes draws an image whose samples have the values in their centres.
func planes(width, height int, ratio image.YCbCrSubsampleRatio, at channel) *image.YCbCr {
	img := image.NewYCbCr(image.Rect(0, 0, width, height), ratio)
	for i := range img.Y {
		img.Y[i] = level(at(float64(i%img.YStride)+0.5, float64(i/img.YStride)+0.5, 0))
	}
	x, y := subsampling(ratio)
	for i := range img.Cb {
		cx, cy := (float64(i%img.CStride)+0.5)*float64(x), (float64(i/img.CStride)+0.5)*float64(y)
		img.Cb[i], img.Cr[i] = level(at(cx, cy, 1)), level(at(cx, cy, 2))
	}
	return img
}

func grey(width, height int, at channel) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, width, height))
	for i := range img.Pix {
		img.Pix[i] = level(at(float64(i%width)+0.5, float64(i/width)+0.5, 0))
	}
	return img
}

func pixels(width, height int, at channel) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range img.Pix {
		img.Pix[i] = level(at(float64(i/4%width)+0.5, float64(i/4/width)+0.5, i%4))
	}
	return img
}

func level(v float64) uint8 { return uint8(min(max(math.Round(v), 0), 255)) }

// opaque returns at with a fourth channel of 255.
func opaque(at channel) channel {
	return func(x, y float64, c int) float64 {
		if c == 3 {
			return 255
		}
		return at(x, y, c)
	}
}

// drawn returns the same image in all types.
func drawn(width, height int, at channel) map[string]image.Image {
	all := map[string]image.Image{
		"grey": grey(width, height, at), "opaque": pixels(width, height, opaque(at)), "alpha": pixels(width, height, at),
	}
	for _, r := range ratios {
		all[fmt.Sprint(r)] = planes(width, height, r, at)
	}
	return all
}

// compare fails the test if a copy differs by more than tolerance levels from the values of a
// channel. Pixels nearer than margin to an edge are left out.
func compare(t *testing.T, got image.Image, margin int, tolerance float64, want channel) {
	t.Helper()
	b := got.Bounds()
	worst, where := 0.0, ""
	check := func(pix []uint8, stride, sub, size, offset, c int) {
		width, height := (b.Dx()+sub-1)/sub, (b.Dy()+sub-1)/sub
		for y := margin; y < height-margin; y++ {
			for x := margin; x < width-margin; x++ {
				have := float64(pix[y*stride+x*size+offset])
				off := math.Abs(have - want((float64(x)+0.5)*float64(sub), (float64(y)+0.5)*float64(sub), c))
				if off > worst {
					worst, where = off, fmt.Sprintf("channel %d at %d, %d is %v", c, x, y, have)
				}
			}
		}
	}
	switch img := got.(type) {
	case *image.Gray:
		check(img.Pix, img.Stride, 1, 1, 0, 0)
	case *image.NRGBA:
		for c := range 4 {
			check(img.Pix, img.Stride, 1, 4, c, c)
		}
	case *image.YCbCr:
		check(img.Y, img.YStride, 1, 1, 0, 0)
		check(img.Cb, img.CStride, 2, 1, 0, 1)
		check(img.Cr, img.CStride, 2, 1, 0, 2)
	default:
		t.Fatalf("the copy is a %T", got)
	}
	if worst > tolerance {
		t.Errorf("%s, which is wrong by %.2f", where, worst)
	}
}

// turned returns an image as viewed, sample by sample.
func turned(img image.Image, turn scale.Turn) image.Image {
	b := img.Bounds()
	width, height := b.Dx(), b.Dy()
	stored := func(x, y int) (int, int) {
		if turn.Transpose {
			x, y = y, x
		}
		if turn.FlipX {
			x = width - 1 - x
		}
		if turn.FlipY {
			y = height - 1 - y
		}
		return x, y
	}
	size := image.Rect(0, 0, width, height)
	if turn.Transpose {
		size = image.Rect(0, 0, height, width)
	}
	var out interface {
		image.Image
		Set(x, y int, c color.Color)
	} = image.NewNRGBA(size)
	if _, is := img.(*image.Gray); is {
		out = image.NewGray(size)
	}
	for y := range size.Max.Y {
		for x := range size.Max.X {
			out.Set(x, y, img.At(stored(x, y)))
		}
	}
	return out
}
