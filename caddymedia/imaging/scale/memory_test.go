package scale_test

import (
	"fmt"
	"image"
	"image/draw"
	"runtime"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging/scale"
)

// TestMemory is not parallel, because it reads counters of the process.
func TestMemory(t *testing.T) {
	for _, size := range []image.Point{{800, 600}, {100, 4000}, {4000, 100}, {50, 50}} {
		all := image.Rectangle{Max: size}
		white := image.NewNRGBA(all)
		draw.Draw(white, all, image.White, image.Point{}, draw.Src)
		for name, img := range map[string]image.Image{
			"4:2:0": image.NewYCbCr(all, image.YCbCrSubsampleRatio420), "4:4:4": image.NewYCbCr(all, image.YCbCrSubsampleRatio444),
			"grey": image.NewGray(all), "opaque": white, "alpha": image.NewNRGBA(all),
		} {
			for _, box := range []scale.Box{{Width: 100}, {Width: size.X * 26 / 100}, {Width: size.X * 2 / 3}, {Width: size.X - 1}} {
				t.Run(fmt.Sprintf("%s %v to %d", name, size, box.Width), func(t *testing.T) {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					out := scale.New(img).Scale(box.View(size.X, size.Y), scale.Turn{})
					runtime.ReadMemStats(&after)
					got := int64(after.TotalAlloc-before.TotalAlloc) - int64(len(samples(out)))
					most := scale.Memory(size.X, size.Y, samplesOfTwo(img))
					const small = 32 << 10
					if got > most+small {
						t.Errorf("allocated %d bytes, but the estimate is %d", got, most)
					}
				})
			}
		}
	}
	if got := scale.Memory(4000, 3000, 8); got > 20<<20 {
		t.Errorf("the estimate for 12 megapixels is %d bytes", got)
	}
}

// samplesOfTwo returns the number of samples of two pixels.
func samplesOfTwo(img image.Image) int {
	switch img := img.(type) {
	case *image.Gray:
		return 2
	case *image.YCbCr:
		x, y := subsampling(img.SubsampleRatio)
		return max(3, 2+4/(x*y))
	default:
		return 8
	}
}
