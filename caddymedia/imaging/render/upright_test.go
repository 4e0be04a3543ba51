package render_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"testing"
)

// TestOrientations compares the input of the encoder with the expected view. Among the cases are
// odd sides, where a turn could move the chroma by half a sample.
func TestOrientations(t *testing.T) {
	t.Parallel()
	for _, size := range []image.Point{{64, 48}, {65, 49}, {64, 49}, {65, 48}, {1, 1}, {3, 100}} {
		file := asJPEG(t, scene(size.X, size.Y))
		stored, err := jpeg.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		for o := 1; o <= 8; o++ {
			t.Run(fmt.Sprintf("%dx%d as %d", size.X, size.Y, o), func(t *testing.T) {
				t.Parallel()
				got := recorded(t, withOrientation(file, byte(o)), "jpg").still[0]
				if db := psnr(t, got, turned(stored, o), color.Gray{}); db < 50 {
					t.Errorf("it differs by %.1f dB", db)
				}
				if even := size.X%2 == 0 && size.Y%2 == 0; even {
					if _, planes := got.(*image.YCbCr); !planes {
						t.Errorf("it was converted to %T", got)
					}
				}
			})
		}
	}
}

// TestPixels compares the input of the encoder with the decoded image, for every type that the
// decoders return.
func TestPixels(t *testing.T) {
	t.Parallel()
	soft := scene(37, 23)
	for i := 3; i < len(soft.Pix); i += 4 {
		soft.Pix[i] = byte(i)
	}
	deep, opaqueDeep := image.NewNRGBA64(soft.Rect), image.NewRGBA64(soft.Rect)
	grey, deepGrey := image.NewGray(soft.Rect), image.NewGray16(soft.Rect)
	palette := image.NewPaletted(soft.Rect, color.Palette{
		color.NRGBA{}, color.NRGBA{200, 10, 10, 255}, color.NRGBA{10, 200, 10, 100},
	})
	for y := range 23 {
		for x := range 37 {
			c := soft.NRGBAAt(x, y)
			deep.SetNRGBA64(x, y, color.NRGBA64{uint16(c.R) * 257, uint16(c.G) * 257, uint16(c.B) * 257, uint16(c.A) * 257})
			opaqueDeep.Set(x, y, scene(37, 23).At(x, y))
			grey.Set(x, y, c)
			deepGrey.Set(x, y, c)
			palette.SetColorIndex(x, y, uint8((x/5+y/5)%3))
		}
	}
	for name, img := range map[string]image.Image{
		"colours": scene(37, 23), "alpha": soft, "deep": opaqueDeep, "deep alpha": deep,
		"grey": grey, "deep grey": deepGrey, "palette": palette,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, straight := recorded(t, asPNG(t, img), "png").still[0].(*image.NRGBA)
			if !straight {
				t.Fatalf("the encoder got %T", got)
			}
			for y := range 23 {
				for x := range 37 {
					want := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
					if have := got.NRGBAAt(x, y); have.A != want.A || have.A > 0 && !near(have, want) {
						t.Fatalf("at %d, %d: %v, not %v", x, y, have, want)
					}
				}
			}
		})
	}
}

// near allows for the loss of multiplying by alpha and dividing again.
func near(a, b color.NRGBA) bool {
	lost := 1 + 255/int(max(1, a.A))
	within := func(x, y byte) bool { return int(x)-int(y) <= lost && int(y)-int(x) <= lost }
	return within(a.R, b.R) && within(a.G, b.G) && within(a.B, b.B)
}

func TestFewColors(t *testing.T) {
	t.Parallel()
	draw := func(colors int) *image.NRGBA {
		img := image.NewNRGBA(image.Rect(0, 0, 40, 40))
		for i := range 1600 {
			c := i % colors
			img.SetNRGBA(i%40, i/40, color.NRGBA{byte(c), byte(c >> 8), 7, 255})
		}
		return img
	}
	invisible := draw(255)
	for i := range 400 { // of many colours, but all of them invisible
		invisible.SetNRGBA(i%40, i/40, color.NRGBA{byte(i), 99, byte(i >> 4), 0})
	}
	for _, c := range []struct {
		name     string
		img      *image.NRGBA
		lossless bool
	}{
		{"one", draw(1), true},
		{"256", draw(256), true},
		{"257", draw(257), false},
		{"1600", draw(1600), false},
		{"255 and invisible ones", invisible, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := recorded(t, asPNG(t, c.img), "png")
			if got := len(r.still) == 2 && r.lossless[1]; got != c.lossless {
				t.Errorf("tried without loss: %v, want %v", got, c.lossless)
			}
		})
	}
}
