package render

import (
	"image"
	"image/color"
)

// maxColors is the largest number of colours of a palette. For images of so few colours, such as
// drawings and screenshots, lossless WebP is tried as well. It is often both smaller and exact.
const maxColors = 256

// hasFewColors reports whether an image has at most maxColors colours. Invisible ones count as one.
func hasFewColors(img *image.NRGBA) bool {
	seen := make(map[[4]byte]struct{}, maxColors+1)
	var last [4]byte
	for y := range img.Rect.Dy() {
		for p := row(img, y); len(p) > 0; p = p[4:] {
			c := [4]byte(p)
			if c[3] == 0 {
				c = [4]byte{}
			}
			if c == last && len(seen) > 0 {
				continue
			}
			last = c
			if seen[c] = struct{}{}; len(seen) > maxColors {
				return false
			}
		}
	}
	return true
}

// exactPalette returns an image of at most 256 colours without loss, alpha included; nil for
// others. All invisible pixels have the same colour. The bounds of the result begin at 0, 0.
func exactPalette(img *image.NRGBA) *image.Paletted {
	out := image.NewPaletted(image.Rectangle{Max: img.Rect.Size()}, nil)
	known := make(map[[4]byte]uint8, maxColors)
	for y := range img.Rect.Dy() {
		p := row(img, y)
		to := out.Pix[y*out.Stride:][:out.Rect.Dx()]
		for x := range to {
			c := [4]byte(p[4*x:])
			if c[3] == 0 {
				c = [4]byte{}
			}
			index, found := known[c]
			if !found {
				if len(out.Palette) == maxColors {
					return nil
				}
				index = uint8(len(out.Palette))
				known[c] = index
				out.Palette = append(out.Palette, color.NRGBA{c[0], c[1], c[2], c[3]})
			}
			to[x] = index
		}
	}
	return out
}

// row returns the samples of a row of pixels.
func row(img *image.NRGBA, y int) []byte { return img.Pix[y*img.Stride:][:4*img.Rect.Dx()] }
