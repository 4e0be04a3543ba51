package render

import (
	"cmp"
	"image"
	"image/color"
	"slices"
)

// maxColors is the largest number of colours of a palette. For images of so few colours, such as
// drawings and screenshots, lossless WebP is tried as well. It is often both smaller and exact.
const maxColors = 256

// minVisible is the least alpha of a pixel that is not transparent in a GIF.
const minVisible = 128

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

// paletted returns an image with at most 256 colours, as GIF needs. One of more colours is
// dithered: the errors of each pixel are spread to its neighbours (Floyd and Steinberg, 1976).
// Pixels with an alpha below 128 become transparent, and the others opaque. The bounds of the
// result begin at 0, 0, and it depends on the pixels alone.
func paletted(img *image.NRGBA) *image.Paletted {
	img = visibleOrNot(img)
	if out := exactPalette(img); out != nil {
		return out
	}
	out := image.NewPaletted(image.Rectangle{Max: img.Rect.Size()}, nil)
	pixels := make([]rgb, 0, len(img.Pix)/4)
	for p := img.Pix; len(p) > 0; p = p[4:] {
		if p[3] >= minVisible {
			pixels = append(pixels, rgb(p))
		}
	}
	n := maxColors
	if len(pixels) < cap(pixels) {
		out.Palette = append(out.Palette, color.NRGBA{}) // the transparent one
		n--
	}
	colors := bestColors(pixels, n)
	for _, c := range colors {
		out.Palette = append(out.Palette, color.NRGBA{c[0], c[1], c[2], 255})
	}
	dither(out, img, colors)
	return out
}

// rgb is the samples of an opaque pixel.
type rgb [3]uint8

// visibleOrNot returns a copy of an image in which every pixel is opaque or transparent. Its rows
// are contiguous.
func visibleOrNot(img *image.NRGBA) *image.NRGBA {
	out := image.NewNRGBA(image.Rectangle{Max: img.Rect.Size()})
	for y := range out.Rect.Dy() {
		to := row(out, y)
		copy(to, row(img, y))
		for ; len(to) > 0; to = to[4:] {
			if to[3] < minVisible {
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

// bestColors returns at most n colours for pixels, whose order it changes. It cuts the colour
// space: the box whose pixels vary most is cut in two, until there are as many boxes as colours.
// The means of the boxes are then moved to the means of the pixels nearest to them (Heckbert, 1982;
// Lloyd, 1982).
func bestColors(pixels []rgb, n int) []rgb {
	boxes := []colorBox{newColorBox(pixels)}
	for len(boxes) < n {
		widest := 0
		for i := range boxes {
			if boxes[i].gain > boxes[widest].gain {
				widest = i
			}
		}
		if boxes[widest].gain == 0 {
			break
		}
		low, high := boxes[widest].cut()
		boxes[widest] = newColorBox(low)
		boxes = append(boxes, newColorBox(high))
	}
	colors := make([]rgb, len(boxes))
	for i, b := range boxes {
		var sums [3]int
		for _, c := range b.pixels {
			addTo(&sums, c)
		}
		colors[i] = average(sums, len(b.pixels))
	}
	return settled(colors, pixels)
}

// colorBox is the pixels within a cuboid of the colour space.
type colorBox struct {
	pixels []rgb
	gain   float64 // how much less the squared errors are after the best cut
	axis   int     // the channel of that cut
	limit  uint8   // the first value behind it
}

// newColorBox returns a box with its best cut.
func newColorBox(pixels []rgb) colorBox {
	b := colorBox{pixels: pixels}
	var counts [3][256]int32 // how many pixels have each value of a channel
	for _, c := range pixels {
		counts[0][c[0]]++
		counts[1][c[1]]++
		counts[2][c[2]]++
	}
	all := float64(len(pixels))
	for axis := range counts {
		total := 0.0
		for value, n := range counts[axis] {
			total += float64(value) * float64(n)
		}
		// A cut lessens the squared errors by the distance between the means of both parts.
		below, sum := 0.0, 0.0
		for value, n := range counts[axis] {
			if n > 0 && below > 0 {
				between := sum/below - (total-sum)/(all-below)
				if gain := below * (all - below) / all * between * between; gain > b.gain {
					b.gain, b.axis, b.limit = gain, axis, uint8(value)
				}
			}
			below += float64(n)
			sum += float64(value) * float64(n)
		}
	}
	return b
}

// cut divides the pixels of a box in two.
func (b colorBox) cut() (low, high []rgb) {
	i, j := 0, len(b.pixels)
	for i < j {
		if b.pixels[i][b.axis] < b.limit {
			i++
		} else {
			j--
			b.pixels[i], b.pixels[j] = b.pixels[j], b.pixels[i]
		}
	}
	return b.pixels[:i], b.pixels[i:]
}

func addTo(sums *[3]int, c rgb) {
	for axis, value := range c {
		sums[axis] += int(value)
	}
}

func average(sums [3]int, n int) rgb {
	return rgb{uint8((sums[0] + n/2) / n), uint8((sums[1] + n/2) / n), uint8((sums[2] + n/2) / n)}
}

// settled moves each colour to the mean of the pixels nearest to it, some times over. The pixels
// are in the order of their boxes, so that regular samples of them are representative.
func settled(colors, pixels []rgb) []rgb {
	const most, rounds = 1 << 16, 6 // bounds of the work
	step := (len(pixels) + most - 1) / most
	for range rounds {
		f := newFinder(colors)
		sums := make([][3]int, len(colors))
		counts := make([]int, len(colors))
		for i := 0; i < len(pixels); i += step {
			c := pixels[i]
			n := f.nearest(int(c[0]), int(c[1]), int(c[2]))
			counts[n]++
			addTo(&sums[n], c)
		}
		moved := false
		for i, n := range counts {
			if n == 0 {
				continue
			}
			if mean := average(sums[i], n); mean != colors[i] {
				colors[i], moved = mean, true
			}
		}
		if !moved {
			break
		}
	}
	return colors
}

// finder finds the nearest of some colours.
type finder struct {
	entries []finderEntry // by their green, in which colours differ most visibly
	above   [256]int      // the first entry with at least that green
}

type finderEntry struct {
	r, g, b int
	index   int
}

func newFinder(colors []rgb) *finder {
	f := &finder{}
	for i, c := range colors {
		f.entries = append(f.entries, finderEntry{int(c[0]), int(c[1]), int(c[2]), i})
	}
	slices.SortStableFunc(f.entries, func(a, b finderEntry) int { return cmp.Compare(a.g, b.g) })
	i := 0
	for g := range f.above {
		for i < len(f.entries) && f.entries[i].g < g {
			i++
		}
		f.above[g] = i
	}
	return f
}

// nearest returns the index of the colour with the least squared distance. The samples must be 0 to
// 255, and there must be a colour. It searches upwards from the colours of that green, then
// downwards, each until the green alone is too far away.
func (f *finder) nearest(r, g, b int) int {
	best, least := 0, 1<<30
	i := f.above[g]
	for step := 1; step >= -1; i, step = f.above[g]-1, step-2 {
		for ; i >= 0 && i < len(f.entries); i += step {
			e := &f.entries[i]
			d := (e.g - g) * (e.g - g)
			if d >= least {
				break
			}
			if d += (e.r-r)*(e.r-r) + (e.b-b)*(e.b-b); d < least {
				best, least = e.index, d
			}
		}
	}
	return best
}

// Errors are counted in parts of a level. An eighth of each is dropped. Spreading all of it would
// let errors grow until even colours of the palette are replaced by others.
const (
	partBits  = 7
	part      = 1 << partBits
	keptError = part / 16 * 7 / 8 // of each sixteenth of an error
)

// dither sets the pixels of out to indices of colours, which are the last of its palette. The error
// of a pixel goes to the next one and to three in the row below. Rows alternate in direction, which
// leaves fewer patterns.
func dither(out *image.Paletted, img *image.NRGBA, colors []rgb) {
	width, f := out.Rect.Dx(), newFinder(colors)
	first := len(out.Palette) - len(colors)
	here, below := make([][3]int, width+2), make([][3]int, width+2) // errors, with one more at both ends
	for y := range out.Rect.Dy() {
		to, pixels := out.Pix[y*out.Stride:][:width], row(img, y)
		x, step := 0, 1
		if y%2 == 1 {
			x, step = width-1, -1
		}
		for ; x >= 0 && x < width; x += step {
			p := pixels[4*x : 4*x+4]
			if p[3] < minVisible {
				to[x] = 0 // the transparent colour
				continue
			}
			var want [3]int
			for c := range want {
				want[c] = min(max((int(p[c])*part+here[x+1][c]+part/2)>>partBits, 0), 255)
			}
			index := f.nearest(want[0], want[1], want[2])
			to[x] = uint8(index + first)
			for c, have := range colors[index] {
				e := keptError * (want[c] - int(have))
				here[x+1+step][c] += 7 * e
				below[x+1-step][c] += 3 * e
				below[x+1][c] += 5 * e
				below[x+1+step][c] += e
			}
		}
		here, below = below, here
		clear(below)
	}
}
