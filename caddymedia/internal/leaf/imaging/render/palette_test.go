package render

import (
	"image"
	"image/color"
	"testing"
)

// many returns an opaque image of a number of colours, at most 4,096.
func many(colors int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	for i := range 64 * 64 {
		c := i % colors
		img.SetNRGBA(i%64, i/64, color.NRGBA{uint8(c), uint8(c >> 4), uint8(c>>8) * 17, 255})
	}
	return img
}

func TestExact(t *testing.T) {
	t.Parallel()
	soft := many(200)
	soft.Pix[3] = 100
	for name, c := range map[string]struct {
		img    *image.NRGBA
		colors int // 0 for no result
	}{
		"few": {many(7), 7}, "256": {many(256), 256}, "257": {many(257), 0}, "half transparent": {soft, 200},
		"invisible": {image.NewNRGBA(image.Rect(0, 0, 9, 9)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := exactPalette(c.img)
			if got == nil || c.colors == 0 {
				if got != nil || c.colors != 0 {
					t.Errorf("the result is nil: %t", got == nil)
				}
				return
			}
			for i := range got.Pix {
				x, y := i%got.Stride, i/got.Stride
				if have, want := got.Palette[got.Pix[i]], c.img.NRGBAAt(x, y); have != want && want.A != 0 {
					t.Fatalf("at %d, %d: %v, want %v", x, y, have, want)
				}
			}
		})
	}
}
