package webp_test

import (
	"bytes"
	"image"
	"image/color"
	"math"
	"testing"

	reference "github.com/deepteams/webp"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

func newEncoder(t testing.TB) webp.Encoder {
	t.Helper()
	e, err := webp.New()
	imagingtest.Must(t, err)
	return e
}

func encode(t testing.TB, img image.Image, opts webp.Options) []byte {
	t.Helper()
	file, err := newEncoder(t).Encode(t.Context(), img, opts)
	imagingtest.Must(t, err)
	return file
}

// draw returns an image like a photograph: gradients, edges, and some texture.
func draw(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			u, v := float64(x)/200, float64(y)/200
			r := 128 + 90*math.Sin(2*u+v)
			g := 120 + 80*math.Cos(u-3*v)
			b := 90 + 60*math.Sin(u*v)
			// The edges are a few pixels wide, as in real photographs.
			in := min(max((.3-math.Hypot(math.Mod(u, 1)-.5, math.Mod(v, 1)-.5))*20, 0), 1)
			r, g, b = r+50*in, g-30*in, b+in*(g-b)/2
			if y%160 < 48 {
				n := uint32(x*7919+y*104729) * 2654435761
				b += float64(n>>28) - 8
				g += float64(n>>28) - 8
				r += float64(n>>28) - 8
			}
			img.SetNRGBA(x, y, color.NRGBA{clamp(r), clamp(g), clamp(b), 255})
		}
	}
	return img
}

func clamp(v float64) uint8 { return uint8(min(max(v, 0), 255) + .5) }

// drawAlpha returns an image with a soft edge between opaque and transparent parts.
func drawAlpha(width, height int) *image.NRGBA {
	img := draw(width, height)
	for y := range height {
		for x := range width {
			d := math.Hypot(float64(2*x-width)/float64(width), float64(2*y-height)/float64(height))
			img.Pix[img.PixOffset(x, y)+3] = clamp((1.1 - d) * 500)
		}
	}
	return img
}

// planes converts an image to full-range 4:2:0 planes.
func planes(img *image.NRGBA) *image.YCbCr {
	size := img.Rect.Size()
	out := image.NewYCbCr(img.Rect, image.YCbCrSubsampleRatio420)
	for y := range size.Y {
		for x := range size.X {
			p := img.Pix[img.PixOffset(x, y):]
			out.Y[out.YOffset(x, y)], _, _ = color.RGBToYCbCr(p[0], p[1], p[2])
		}
	}
	for y := 0; y < size.Y; y += 2 {
		for x := 0; x < size.X; x += 2 {
			var sum [3]int
			for _, at := range [4][2]int{{x, y}, {x + 1, y}, {x, y + 1}, {x + 1, y + 1}} {
				p := img.Pix[img.PixOffset(min(at[0], size.X-1), min(at[1], size.Y-1)):]
				for i := range sum {
					sum[i] += int(p[i])
				}
			}
			_, cb, cr := color.RGBToYCbCr(uint8(sum[0]/4), uint8(sum[1]/4), uint8(sum[2]/4))
			out.Cb[out.COffset(x, y)], out.Cr[out.COffset(x, y)] = cb, cr
		}
	}
	return out
}

// padded returns planes like those of a JPEG decoder: a part of larger ones. The other samples have
// another colour.
func padded(p *image.YCbCr) *image.YCbCr {
	size := p.Rect.Size()
	big := image.NewYCbCr(image.Rect(0, 0, size.X+29, size.Y+27), image.YCbCrSubsampleRatio420)
	for i := range big.Y {
		big.Y[i] = byte(i * 89)
	}
	for y := range size.Y {
		copy(big.Y[y*big.YStride:], p.Y[y*p.YStride:][:size.X])
	}
	for y := range (size.Y + 1) / 2 {
		copy(big.Cb[y*big.CStride:], p.Cb[y*p.CStride:][:(size.X+1)/2])
		copy(big.Cr[y*big.CStride:], p.Cr[y*p.CStride:][:(size.X+1)/2])
	}
	return big.SubImage(p.Rect).(*image.YCbCr)
}

func clonePlanes(p *image.YCbCr) *image.YCbCr {
	c := *p
	c.Y, c.Cb, c.Cr = bytes.Clone(p.Y), bytes.Clone(p.Cb), bytes.Clone(p.Cr)
	return &c
}

// pixels converts planes to visible colours.
func pixels(p *image.YCbCr) *image.NRGBA {
	img := image.NewNRGBA(image.Rectangle{Max: p.Rect.Size()})
	for y := range img.Rect.Dy() {
		for x := range img.Rect.Dx() {
			c := p.YCbCrAt(x, y)
			r, g, b := color.YCbCrToRGB(c.Y, c.Cb, c.Cr)
			img.SetNRGBA(x, y, color.NRGBA{r, g, b, 255})
		}
	}
	return img
}

// decode returns the image of a file with straight alpha.
func decode(t testing.TB, file []byte) *image.NRGBA {
	t.Helper()
	img, err := reference.Decode(bytes.NewReader(file))
	imagingtest.Must(t, err)
	switch img := img.(type) {
	case *image.NRGBA:
		return img
	case *image.YCbCr:
		// The decoder returns limited range, although the type means full range.
		for i, v := range img.Y {
			img.Y[i] = clamp((float64(v) - 16) * 255 / 219)
		}
		for _, plane := range [][]byte{img.Cb, img.Cr} {
			for i, v := range plane {
				plane[i] = clamp((float64(v)-128)*255/224 + 128)
			}
		}
		return pixels(img)
	}
	t.Fatalf("decoded to a %T", img)
	return nil
}

// psnr compares two images over a background, in dB.
func psnr(a, b *image.NRGBA, background float64) float64 {
	var sum float64
	over := func(p []byte, i int) float64 {
		alpha := float64(p[3]) / 255
		return float64(p[i])*alpha + background*(1-alpha)
	}
	size := a.Rect.Size()
	for y := range size.Y {
		for x := range size.X {
			p, q := a.Pix[a.PixOffset(x, y):], b.Pix[b.PixOffset(x, y):]
			for i := range 3 {
				d := over(p, i) - over(q, i)
				sum += d * d
			}
		}
	}
	if sum == 0 {
		return 99
	}
	return 10 * math.Log10(255*255*3*float64(size.X*size.Y)/sum)
}

// alike fails if a file does not look like an image over white and black.
func alike(t testing.TB, file []byte, want *image.NRGBA, least float64) {
	t.Helper()
	got := decode(t, file)
	if got.Rect.Size() != want.Rect.Size() {
		t.Fatalf("an image of %v, want %v", got.Rect.Size(), want.Rect.Size())
	}
	for _, background := range []float64{0, 255} {
		if db := psnr(got, want, background); db < least {
			t.Errorf("over %v: %.2f dB, want %v", background, db, least)
		}
	}
}
