package palette_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging/palette"
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

// hide makes the pixels of the last rows transparent.
func hide(img *image.NRGBA, alpha uint8) *image.NRGBA {
	for i := 60*img.Stride + 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = alpha
	}
	return img
}

// want returns a pixel as it should be shown.
func want(c color.NRGBA) color.NRGBA {
	if c.A < 128 {
		return color.NRGBA{}
	}
	c.A = 255
	return c
}

func TestPaletted(t *testing.T) {
	t.Parallel()
	part := image.NewNRGBA(image.Rect(-5, 7, 95, 107))
	draw.Draw(part, image.Rect(10, 20, 74, 84), many(200), image.Point{}, draw.Src)
	for _, c := range []struct {
		name   string
		img    *image.NRGBA
		colors int
		exact  bool
	}{
		{"one", many(1), 1, true},
		{"256", many(256), 256, true},
		{"257", many(257), 256, false},
		{"2000", many(2000), 256, false},
		{"255 and transparent", hide(many(255), 127), 256, true},
		{"256 and transparent", hide(many(256), 0), 256, false},
		{"2000 and transparent", hide(many(2000), 5), 256, false},
		{"half transparent", hide(many(255), 128), 255, true},
		{"all transparent", image.NewNRGBA(image.Rect(0, 0, 9, 9)), 1, true},
		{"one pixel", many(9).SubImage(image.Rect(3, 3, 4, 4)).(*image.NRGBA), 1, true},
		{"a part", part.SubImage(image.Rect(10, 20, 74, 84)).(*image.NRGBA), 200, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := palette.Paletted(c.img)
			if len(got.Palette) != c.colors {
				t.Errorf("%d colours, want %d", len(got.Palette), c.colors)
			}
			size := c.img.Rect.Size()
			if got.Rect != (image.Rectangle{Max: size}) {
				t.Fatalf("the bounds are %v", got.Rect)
			}
			for i := range got.Pix {
				x, y := i%size.X, i/size.X
				have := color.NRGBAModel.Convert(got.At(x, y)).(color.NRGBA)
				should := want(c.img.NRGBAAt(c.img.Rect.Min.X+x, c.img.Rect.Min.Y+y))
				if have.A != should.A || c.exact && have != should {
					t.Fatalf("at %d, %d: %v, want %v", x, y, have, should)
				}
			}
			if !bytes.Equal(palette.Paletted(c.img).Pix, got.Pix) {
				t.Error("the second result differs")
			}
		})
	}
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
			got := palette.Exact(c.img)
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

// TestGradient checks that dithering keeps the mean of each part of a gradient.
func TestGradient(t *testing.T) {
	t.Parallel()
	img := image.NewNRGBA(image.Rect(0, 0, 512, 64))
	for i := 0; i < len(img.Pix); i += 4 {
		x, y := i/4%512, i/4/512
		copy(img.Pix[i:], []uint8{uint8(x / 2), uint8(255 - x/2), uint8(100 + y/2 + x/8), 255})
	}
	got := palette.Paletted(img)
	for y := 8; y < 56; y += 8 {
		for x := 8; x < 504; x += 8 {
			var sums [3]int
			for i := range 64 {
				p, q := img.NRGBAAt(x+i%8, y+i/8), got.Palette[got.ColorIndexAt(x+i%8, y+i/8)].(color.NRGBA)
				sums[0] += int(p.R) - int(q.R)
				sums[1] += int(p.G) - int(q.G)
				sums[2] += int(p.B) - int(q.B)
			}
			for _, sum := range sums {
				if sum < -3*64 || sum > 3*64 {
					t.Fatalf("at %d, %d the mean is off by %d levels", x, y, sum/64)
				}
			}
		}
	}
}

func FuzzPaletted(f *testing.F) {
	f.Add([]byte("a few bytes of an image"), 3)
	f.Add([]byte{0, 0, 0, 0, 255, 255, 255, 255}, 2)
	f.Fuzz(func(t *testing.T, content []byte, width int) {
		if width < 1 || width > 1000 || len(content) < 4*width {
			return
		}
		img := &image.NRGBA{Pix: content, Stride: 4 * width, Rect: image.Rect(0, 0, width, len(content)/4/width)}
		got := palette.Paletted(img)
		for i, index := range got.Pix {
			if int(index) >= len(got.Palette) {
				t.Fatalf("pixel %d has no colour", i)
			}
			if (got.Palette[index].(color.NRGBA).A == 0) != (content[4*i+3] < 128) {
				t.Fatalf("pixel %d has the wrong transparency", i)
			}
		}
	})
}
