package render

import (
	"bytes"
	"image"
	"image/color"
	plan9 "image/color/palette"
	"image/draw"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging/imagingtest"
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
			got := paletted(c.img)
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
			if !bytes.Equal(paletted(c.img).Pix, got.Pix) {
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

// TestGradient checks that dithering keeps the mean of each part of a gradient.
func TestGradient(t *testing.T) {
	t.Parallel()
	img := image.NewNRGBA(image.Rect(0, 0, 512, 64))
	for i := 0; i < len(img.Pix); i += 4 {
		x, y := i/4%512, i/4/512
		copy(img.Pix[i:], []uint8{uint8(x / 2), uint8(255 - x/2), uint8(100 + y/2 + x/8), 255})
	}
	got := paletted(img)
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
		got := paletted(img)
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

// TestNearest compares the distances with those of a search through all colours.
func TestNearest(t *testing.T) {
	t.Parallel()
	seed := uint32(1)
	random := func() int {
		seed = seed*1664525 + 1013904223
		return int(seed >> 24)
	}
	for count := 1; count <= 256; count += 51 {
		colors := make([]rgb, count)
		for i := range colors {
			colors[i] = rgb{uint8(random()), uint8(random()), uint8(random())}
		}
		f := newFinder(colors)
		for range 5000 {
			r, g, b := random(), random(), random()
			distance := func(c rgb) int {
				x, y, z := int(c[0])-r, int(c[1])-g, int(c[2])-b
				return x*x + y*y + z*z
			}
			least := 1 << 30
			for _, c := range colors {
				least = min(least, distance(c))
			}
			if got := distance(colors[f.nearest(r, g, b)]); got != least {
				t.Fatalf("the distance of %d, %d, %d is %d, want %d", r, g, b, got, least)
			}
		}
	}
}

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
			got := paletted(img)
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
