package scale_test

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
)

// TestFinePatterns makes copies of a zone plate: rings around a corner, of which the period reaches
// 2 pixels at the far edges. Rings too fine for the copy must become grey, and the others must
// stay. A source halved first keeps a little of the former, as in libvips.
func TestFinePatterns(t *testing.T) {
	t.Parallel()
	const side = 1200
	plate := func(x, y float64, _ int) float64 {
		return 127.5 + 127.5*math.Cos(math.Pi*(x*x+y*y)/(2*side))
	}
	img := grey(side, side, plate)
	for _, c := range []struct{ factor, most float64 }{
		{2, 1.5}, {2.5, 1.5}, {3.1, 1.5}, {3.9, 1.5}, {4, 7}, {5, 5}, {6.25, 3}, {7.9, 2}, {8.1, 4}, {12.5, 2},
	} {
		t.Run(fmt.Sprint(c.factor), func(t *testing.T) {
			t.Parallel()
			v := scale.Box{Width: int(side / c.factor)}.View(side, side)
			got := scale.New(img).Scale(v, scale.Turn{}).(*image.Gray)
			var fine, coarse []float64
			for i, value := range got.Pix {
				// The frequencies across and down, in periods per pixel of the copy.
				pixel := c.factor * c.factor / (2 * side)
				across, down := float64(i%got.Stride)*pixel, float64(i/got.Stride)*pixel
				switch {
				case max(across, down) > 0.75:
					fine = append(fine, float64(value)-127.5)
				case max(across, down) < 0.25:
					coarse = append(coarse, float64(value)-127.5)
				}
			}
			if got := rms(fine); got > c.most {
				t.Errorf("%.2f levels are left of the fine rings, want at most %v", got, c.most)
			}
			if got := rms(coarse); got < 85 { // 127.5 / sqrt(2) is 90
				t.Errorf("%.2f levels are left of the coarse rings", got)
			}
		})
	}
}

func rms(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v * v
	}
	return math.Sqrt(sum / float64(len(values)))
}

// TestRinging checks the overshoot at a sharp edge, which is that of the filter: a ninth of the
// step before clipping. Farther away there is none.
func TestRinging(t *testing.T) {
	t.Parallel()
	const width, height, factor = 900, 300, 3
	edge := func(x, _ float64, _ int) float64 {
		if x < width/2 {
			return 60
		}
		return 180
	}
	for name, img := range drawn(width, height, opaque(edge)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := scale.New(img).Scale(scale.Box{Width: width / factor}.View(width, height), scale.Turn{})
			compare(t, got, 0, 120*0.11, func(x, y float64, c int) float64 {
				if math.Abs(x-width/factor/2) < 2 { // the edge itself
					return seenAt(got, x, y, c)
				}
				return opaque(edge)(x*factor, y*factor, c)
			})
			compare(t, got, 0, 1, func(x, y float64, c int) float64 {
				if math.Abs(x-width/factor/2) < 8 {
					return seenAt(got, x, y, c)
				}
				return opaque(edge)(x*factor, y*factor, c)
			})
		})
	}
}

// seenAt returns a sample of a copy.
func seenAt(img image.Image, x, y float64, c int) float64 {
	i, j := int(x), int(y)
	switch img := img.(type) {
	case *image.YCbCr:
		return float64([]uint8{img.Y[img.YOffset(i, j)], img.Cb[img.COffset(i, j)], img.Cr[img.COffset(i, j)]}[c])
	case *image.NRGBA:
		return float64(img.Pix[img.PixOffset(i, j)+c])
	case *image.Gray:
		return float64(img.GrayAt(i, j).Y)
	}
	return 0
}

// TestInvisibleColors checks that the colour of invisible pixels has no effect on visible ones.
func TestInvisibleColors(t *testing.T) {
	t.Parallel()
	const width, height = 240, 200
	alpha := func(x, y float64) float64 {
		switch r := math.Hypot(x-120, y-100); {
		case r < 60:
			return 255
		case r < 80:
			return (80 - r) * 255 / 20
		default:
			return 0
		}
	}
	img := pixels(width, height, func(x, y float64, c int) float64 {
		a := alpha(x, y)
		switch {
		case c == 3:
			return a
		case level(a) == 0:
			return [3]float64{0, 255, 255}[c]
		default:
			return [3]float64{200, 40, 10}[c]
		}
	})
	for _, width := range []int{239, 150, 80, 55, 30, 11} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			got := scale.New(img).Scale(scale.Box{Width: width}.View(img.Rect.Dx(), height), scale.Turn{}).(*image.NRGBA)
			for i := 0; i < len(got.Pix); i += 4 {
				p := got.Pix[i : i+4]
				want := [3]int{200, 40, 10}
				if p[3] == 0 {
					want = [3]int{}
				}
				for c := range want {
					lost := 1.5
					if p[3] > 0 {
						lost += 255 / float64(p[3]) / 4 // of a product of 16 bits
					}
					if math.Abs(float64(want[c])-float64(p[c])) > lost {
						t.Fatalf("pixel %d is %v", i/4, p)
					}
				}
			}
		})
	}
}

// noise returns a value for each pixel that does not depend on its neighbours.
func noise(x, y float64, c int) float64 {
	return float64(uint32(x*9871+y*5557+float64(c)*777) * 2654435761 >> 9 & 255)
}

// TestReference compares copies of noise with the filter as it is defined, computed in floating
// point.
func TestReference(t *testing.T) {
	t.Parallel()
	const width, height = 90, 70
	img, soft := grey(width, height, noise), pixels(width, height, noise)
	for _, size := range []image.Point{{90, 70}, {89, 69}, {60, 50}, {31, 40}, {23, 18}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			v := scale.View{From: scale.Area{Width: width, Height: height}, Size: size}
			compare(t, scale.New(img).Scale(v, scale.Turn{}), 0, 0.6, func(x, y float64, _ int) float64 {
				return clipped(weighted(v, x, y, func(x, y float64) float64 { return noise(x, y, 0) }))
			})
			got := scale.New(soft).Scale(v, scale.Turn{})
			if v.Size.X == width {
				return // an exact copy, also of invisible pixels
			}
			alpha := func(x, y float64) float64 { return noise(x, y, 3) }
			compare(t, got, 0, 0.8, func(x, y float64, c int) float64 {
				a := weighted(v, x, y, alpha)
				if c == 3 {
					return clipped(a)
				}
				if a < 10 { // too little precision is left
					return seenAt(got, x, y, c)
				}
				color := weighted(v, x, y, func(x, y float64) float64 { return noise(x, y, c) * alpha(x, y) })
				return clipped(color / a)
			})
		})
	}
}

func clipped(v float64) float64 { return min(max(v, 0), 255) }

// weighted returns the mean of the pixels around a point of a copy, weighted by the filter.
func weighted(v scale.View, x, y float64, at func(x, y float64) float64) float64 {
	across, down := v.From.Width/float64(v.Size.X), v.From.Height/float64(v.Size.Y)
	x, y = x*across, y*down
	sum, weights := 0.0, 0.0
	for j := math.Floor(y-3*down) + 0.5; j < y+3*down+1; j++ {
		for i := math.Floor(x-3*across) + 0.5; i < x+3*across+1; i++ {
			w := lanczos((i-x)/across) * lanczos((j-y)/down)
			sum += w * at(min(max(i, 0.5), v.From.Width-0.5), min(max(j, 0.5), v.From.Height-0.5))
			weights += w
		}
	}
	return sum / weights
}

func lanczos(x float64) float64 {
	if x == 0 {
		return 1
	}
	if math.Abs(x) >= 3 {
		return 0
	}
	return math.Sin(math.Pi*x) / (math.Pi * x) * math.Sin(math.Pi*x/3) / (math.Pi * x / 3)
}

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
