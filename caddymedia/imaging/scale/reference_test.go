package scale_test

import (
	"fmt"
	"image"
	"math"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging/scale"
)

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
