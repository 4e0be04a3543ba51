package palette

import "image"

// Errors are counted in parts of a level. An eighth of each is dropped. Spreading all of it would let
// errors grow until even colours of the palette are replaced by others.
const (
	partBits = 7
	part     = 1 << partBits
	kept     = part / 16 * 7 / 8 // of each sixteenth of an error
)

// dither sets the pixels of out to indices of colours, which follow a transparent one in the palette
// if there is one. The error of a pixel goes to the next one and to three in the row below. Rows
// alternate in direction, which leaves fewer patterns.
func dither(out *image.Paletted, img *image.NRGBA, colors []rgb, transparent bool) {
	width := out.Rect.Dx()
	d := ditherer{colors: colors, finder: newFinder(colors)}
	if transparent {
		d.first = 1
	}
	d.here, d.below = make([][3]int, width+2), make([][3]int, width+2)
	for y := range out.Rect.Dy() {
		d.row(out.Pix[y*out.Stride:][:width], row(img, y), y%2 == 1)
		d.here, d.below = d.below, d.here
		clear(d.below)
	}
}

// ditherer is the state of dithering. Errors are in parts, with one more pixel at both ends.
type ditherer struct {
	colors      []rgb
	finder      *finder
	first       int // index of the first colour; the transparent one is 0
	here, below [][3]int
}

func (d *ditherer) row(to []uint8, pixels []byte, backwards bool) {
	x, step := 0, 1
	if backwards {
		x, step = len(to)-1, -1
	}
	for range to {
		p := pixels[4*x : 4*x+4]
		if p[3] < visible {
			to[x] = 0
			x += step
			continue
		}
		var want [3]int
		for c := range want {
			want[c] = min(max((int(p[c])*part+d.here[x+1][c]+part/2)>>partBits, 0), 255)
		}
		index := d.finder.nearest(want[0], want[1], want[2])
		to[x] = uint8(index + d.first)
		for c, have := range d.colors[index] {
			e := kept * (want[c] - int(have))
			d.here[x+1+step][c] += 7 * e
			d.below[x+1-step][c] += 3 * e
			d.below[x+1][c] += 5 * e
			d.below[x+1+step][c] += e
		}
		x += step
	}
}
