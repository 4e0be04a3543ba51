package scale_test

import (
	"fmt"
	"image"
	"math"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging/scale"
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
