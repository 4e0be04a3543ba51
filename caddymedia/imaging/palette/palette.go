// Package palette chooses the colours of images in formats of at most 256 colours, such as GIF.
//
// Colours are chosen by cutting the colour space: the box whose pixels vary most is cut in two,
// until there are as many boxes as colours. The means of the boxes are then moved to the means of
// the pixels nearest to them (Heckbert, 1982; Lloyd, 1982).
//
// All results depend on the pixels alone.
package palette

import (
	"image"
	"image/color"
)

// most is the largest number of colours.
const most = 256

// visible is the least alpha of a pixel that is not transparent.
const visible = 128

// Exact returns an image of at most 256 colours without loss, alpha included; nil for others. All
// invisible pixels have the same colour. The bounds of the result begin at 0, 0.
func Exact(img *image.NRGBA) *image.Paletted {
	out := image.NewPaletted(image.Rectangle{Max: img.Rect.Size()}, nil)
	known := make(map[[4]byte]uint8, most)
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
				if len(out.Palette) == most {
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

// Paletted returns an image with at most 256 colours. One of more colours is dithered: the errors
// of each pixel are spread to its neighbours (Floyd and Steinberg, 1976). Pixels with an alpha below
// 128 become transparent, and the others opaque. The bounds of the result begin at 0, 0.
func Paletted(img *image.NRGBA) *image.Paletted {
	img = visibleOrNot(img)
	if out := Exact(img); out != nil {
		return out
	}
	out := image.NewPaletted(image.Rectangle{Max: img.Rect.Size()}, nil)
	pixels, transparent := visiblePixels(img)
	n := most
	if transparent {
		out.Palette = append(out.Palette, color.NRGBA{})
		n--
	}
	colors := chosen(pixels, n)
	for _, c := range colors {
		out.Palette = append(out.Palette, c.opaque())
	}
	dither(out, img, colors, transparent)
	return out
}

// rgb is the samples of an opaque pixel.
type rgb [3]uint8

func (c rgb) opaque() color.NRGBA { return color.NRGBA{c[0], c[1], c[2], 255} }

// visibleOrNot returns a copy of an image in which every pixel is opaque or transparent.
func visibleOrNot(img *image.NRGBA) *image.NRGBA {
	out := image.NewNRGBA(image.Rectangle{Max: img.Rect.Size()})
	for y := range out.Rect.Dy() {
		to := row(out, y)
		copy(to, row(img, y))
		for ; len(to) > 0; to = to[4:] {
			if to[3] < visible {
				*(*[4]byte)(to) = [4]byte{}
			} else {
				to[3] = 255
			}
		}
	}
	return out
}

// row returns the samples of a row of pixels.
func row(img *image.NRGBA, y int) []byte { return img.Pix[y*img.Stride:][:4*img.Rect.Dx()] }

// visiblePixels returns the pixels that are not transparent, and whether there are others.
func visiblePixels(img *image.NRGBA) (pixels []rgb, transparent bool) {
	pixels = make([]rgb, 0, img.Rect.Dx()*img.Rect.Dy())
	for y := range img.Rect.Dy() {
		for p := row(img, y); len(p) > 0; p = p[4:] {
			if p[3] < visible {
				transparent = true
				continue
			}
			pixels = append(pixels, rgb(p))
		}
	}
	return pixels, transparent
}
