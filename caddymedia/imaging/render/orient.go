package render

import (
	"image"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
)

// raster is an array of samples of size bytes each, row by row.
type raster struct {
	pix           []byte
	stride        int // bytes from row to row
	width, height int // in samples
	size          int // 1 or 4
}

// tile is the side of the squares in which images are turned. Reading down a column then stays
// within the processor's cache.
const tile = 32

// oriented returns r as viewed under an EXIF orientation. The rows of the result are contiguous.
// Its sample at x, y is the sample of r at start + x*right + y*down.
func (r raster) oriented(o imaging.Orientation) raster {
	out := raster{width: r.width, height: r.height, size: r.size}
	left, top := 0, 0
	right, down := r.size, r.stride
	if flipsX(o) {
		left, right = (r.width-1)*r.size, -right
	}
	if flipsY(o) {
		top, down = (r.height-1)*r.stride, -down
	}
	if o >= 5 {
		out.width, out.height = r.height, r.width
		right, down = down, right
	}
	out.stride = out.width * r.size
	out.pix = make([]byte, out.stride*out.height)
	for y := 0; y < out.height; y += tile {
		for x := 0; x < out.width; x += tile {
			square := image.Rect(x, y, min(x+tile, out.width), min(y+tile, out.height))
			r.orientTile(out, square, left+top, right, down)
		}
	}
	return out
}

func (r raster) orientTile(out raster, square image.Rectangle, start, right, down int) {
	for y := square.Min.Y; y < square.Max.Y; y++ {
		from := start + y*down + square.Min.X*right
		to := out.pix[y*out.stride+square.Min.X*r.size : y*out.stride+square.Max.X*r.size]
		if r.size == 1 {
			for i := range to {
				to[i] = r.pix[from]
				from += right
			}
			continue
		}
		for i := 0; i < len(to); i += 4 {
			*(*[4]byte)(to[i:]) = [4]byte(r.pix[from:])
			from += right
		}
	}
}

// flipsX and flipsY report whether an orientation reads the stored rows, or columns, backwards
// (Exif 3.0, tag 0x0112).
func flipsX(o imaging.Orientation) bool { return o == 2 || o == 3 || o == 7 || o == 8 }
func flipsY(o imaging.Orientation) bool { return o == 3 || o == 4 || o == 6 || o == 7 }

// turn returns how to turn a scaled image for viewing.
func turn(o imaging.Orientation) scale.Turn {
	return scale.Turn{FlipX: flipsX(o), FlipY: flipsY(o), Transpose: o >= 5}
}
