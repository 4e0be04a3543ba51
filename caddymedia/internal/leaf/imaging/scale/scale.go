// Package scale makes smaller copies of decoded images. It neither decodes nor encodes, and never
// enlarges. Begin with [Box], the configured size of a copy: [Box.View] computes from it which part
// of an image is shown at which size, and a [Source] holds a decoded image and makes a copy for
// each view.
//
// The filter is Lanczos3, widened by the factor of the reduction, so that fine patterns vanish
// instead of turning into coarse ones. Reductions by four and more first halve the image, until
// the filter has a factor of two to four left. The halved images are shared by all copies of a
// source.
//
// Planes of luma and chroma are filtered as they are, without a conversion to RGB. Colours with
// alpha are weighted by it, so that the colour of an invisible pixel has no effect.
package scale

import (
	"image"
	"math"
)

// Turn is how the stored image becomes upright: its rows (FlipX) and columns (FlipY) are read
// backwards, then both are exchanged.
type Turn struct {
	FlipX, FlipY, Transpose bool
}

// Scale returns a copy of the part of the upright image that v shows. Its type is that of the
// image; planes have the ratio 4:2:0. Its bounds begin at 0, 0, and its rows are contiguous. A view
// at full size copies luma, grey and colours exactly.
func (s *Source) Scale(v View, t Turn) image.Image {
	width, height := s.width, s.height
	if t.Transpose {
		width, height = height, width
	}
	return s.show(geometry{view: v.clipped(width, height), turn: t})
}

// Turned returns the upright image in its full size, of the type that [New] accepts. Planes must
// have the ratio 4:2:0 and even sides where they are read backwards.
func Turned(img image.Image, t Turn) image.Image {
	s := New(img)
	size := image.Pt(s.width, s.height)
	if t.Transpose {
		size = image.Pt(s.height, s.width)
	}
	return s.show(geometry{View{Area{Width: float64(size.X), Height: float64(size.Y)}, size}, t})
}

func (s *Source) show(g geometry) image.Image {
	bounds := image.Rectangle{Max: g.view.Size}
	switch {
	case len(s.layers) > 1:
		out := image.NewYCbCr(bounds, image.YCbCrSubsampleRatio420)
		s.scaleSamples(0, g, target{out.Y, 1, out.YStride, 1})
		s.scaleSamples(1, g, target{out.Cb, 1, out.CStride, 2})
		s.scaleSamples(2, g, target{out.Cr, 1, out.CStride, 2})
		return out
	case s.layers[0].levels[0].size == 1:
		out := image.NewGray(bounds)
		s.scaleSamples(0, g, target{out.Pix, 1, out.Stride, 1})
		return out
	default:
		out := image.NewNRGBA(bounds)
		s.scalePixels(g, target{out.Pix, 4, out.Stride, 1})
		return out
	}
}

// target is a plane of the upright copy.
type target struct {
	pix         []byte
	right, down int // bytes from pixel to pixel and from row to row
	sub         int // pixels of the copy that a sample covers, in both directions
}

// geometry is a view of the upright image, and its turn.
type geometry struct {
	view View
	turn Turn
}

// axes returns the axes of a copy on a plane, as the plane is stored.
func (g geometry) axes(s *Source, l *layer, sub int) (across, down axis) {
	f := g.view.From
	x, width, columns := f.X, f.Width, g.view.Size.X
	y, height, rows := f.Y, f.Height, g.view.Size.Y
	if g.turn.Transpose {
		x, width, columns, y, height, rows = y, height, rows, x, width, columns
	}
	p := l.levels[0]
	across = axisOf(x, width/float64(columns), s.width, g.turn.FlipX).on(columns, sub, l.sub.X, l.offset.X, p.width)
	down = axisOf(y, height/float64(rows), s.height, g.turn.FlipY).on(rows, sub, l.sub.Y, l.offset.Y, p.height)
	return across, down
}

// axisOf returns the axis on the pixels of a side.
func axisOf(start, step float64, side int, flip bool) axis {
	if flip {
		return axis{start: float64(side) - start, step: -step}
	}
	return axis{start: start, step: step}
}

// on returns the axis on a plane whose samples cover planeSub pixels, for a copy whose samples
// cover sub of its count pixels. The offset is that of the image within the first sample of the
// plane.
func (a axis) on(count, sub, planeSub, offset, samples int) axis {
	return axis{
		start:   (a.start + float64(offset)) / float64(planeSub),
		step:    a.step * float64(sub) / float64(planeSub),
		count:   (count + sub - 1) / sub,
		samples: samples,
	}
}

// turned returns the target as the plane is stored.
func (t target) turned(turn Turn) target {
	if turn.Transpose {
		t.right, t.down = t.down, t.right
	}
	return t
}

// scaleSamples makes one plane of a copy.
func (s *Source) scaleSamples(n int, g geometry, to target) {
	l := &s.layers[n]
	across, down := g.axes(s, l, to.sub)
	to = to.turned(g.turn)
	if across.identical() && down.identical() {
		l.levels[0].copy(across, down, to)
		return
	}
	p, across, down := l.reduced(across, down)
	open := func(left, right, _ int) func(int) []byte {
		return func(y int) []byte { return p.row(y)[left:right] }
	}
	resample(raster[uint8]{1, open}, across, down, func(y int, sums []uint64) {
		two := y+1 < down.count
		for x, sum := range sums {
			i := x*to.right + y*to.down
			to.pix[i] = narrow(uint32(sum))
			if two {
				to.pix[i+to.down] = narrow(uint32(sum >> lane))
			}
		}
	})
}

// Source is a decoded image of which copies are made. It must not be used by several goroutines at
// the same time.
type Source struct {
	width, height int
	layers        []layer // luma and two of chroma, or one
	opaque        bool    // pixels only
}

// layer is a plane of a source and its halves, of which each is made when it is first needed.
type layer struct {
	levels []plane
	sub    image.Point // pixels of the image that a sample covers, in both directions
	offset image.Point // of the image within the first sample
}

// New returns a source for an image of the type *image.YCbCr, *image.Gray or *image.NRGBA, which
// must not be empty. It returns nil for another one. The image must not be changed while the
// source is in use.
func New(img image.Image) *Source {
	b := img.Bounds()
	if b.Empty() {
		return nil
	}
	s := &Source{width: b.Dx(), height: b.Dy()}
	one := image.Pt(1, 1)
	switch img := img.(type) {
	case *image.YCbCr:
		return s.planes(img)
	case *image.Gray:
		s.layers = []layer{{levels: []plane{{img.Pix, img.Stride, s.width, s.height, 1}}, sub: one}}
	case *image.NRGBA:
		s.layers = []layer{{levels: []plane{{img.Pix, img.Stride, s.width, s.height, 4}}, sub: one}}
		s.opaque = img.Opaque()
	default:
		return nil
	}
	return s
}

func (s *Source) planes(img *image.YCbCr) *Source {
	sub, known := subsamplings[img.SubsampleRatio]
	if !known {
		return nil
	}
	corner := img.Rect.Min
	y := plane{img.Y[img.YOffset(corner.X, corner.Y):], img.YStride, s.width, s.height, 1}
	offset := image.Pt(corner.X%sub.X, corner.Y%sub.Y)
	start := img.COffset(corner.X, corner.Y)
	width, height := (s.width+offset.X+sub.X-1)/sub.X, (s.height+offset.Y+sub.Y-1)/sub.Y
	s.layers = []layer{{levels: []plane{y}, sub: image.Pt(1, 1)}}
	for _, pix := range [][]byte{img.Cb, img.Cr} {
		chroma := plane{pix[start:], img.CStride, width, height, 1}
		s.layers = append(s.layers, layer{levels: []plane{chroma}, sub: sub, offset: offset})
	}
	return s
}

// subsamplings are the pixels that a sample of chroma covers.
var subsamplings = map[image.YCbCrSubsampleRatio]image.Point{
	image.YCbCrSubsampleRatio444: {X: 1, Y: 1},
	image.YCbCrSubsampleRatio422: {X: 2, Y: 1},
	image.YCbCrSubsampleRatio420: {X: 2, Y: 2},
	image.YCbCrSubsampleRatio440: {X: 1, Y: 2},
	image.YCbCrSubsampleRatio411: {X: 4, Y: 1},
	image.YCbCrSubsampleRatio410: {X: 4, Y: 2},
}

// reduced returns the smallest plane that still has at least two samples, in both directions, for
// each sample of the copy. The axes are on the plane itself, and returned on the smaller one.
func (l *layer) reduced(across, down axis) (plane, axis, axis) {
	n := 0
	for least := min(math.Abs(across.step), math.Abs(down.step)); least >= 4; least /= 2 {
		n++
	}
	for len(l.levels) <= n {
		l.levels = append(l.levels, l.levels[len(l.levels)-1].halved())
	}
	p := l.levels[n]
	return p, across.halved(n, p.width), down.halved(n, p.height)
}

// maxSide is the longest side of a copy in pixels, the limit of WebP
// (https://developers.google.com/speed/webp/docs/riff_container).
const maxSide = 16383

// Box is the configured size of a copy in pixels. A side of 0 is free.
type Box struct {
	Width, Height int

	// Cover fills the box and crops the image at its centre. Otherwise the whole image is shown
	// inside the box. A box with a free side cannot be filled, and Cover has no effect.
	Cover bool
}

// Area is a rectangle of an image in pixels. The pixel in column x covers x to x+1.
type Area struct {
	X, Y, Width, Height float64
}

// View is which part of an image is shown, and at which size.
type View struct {
	From Area
	Size image.Point
}

// View returns the view of an image in a box. Width and height are those of the upright image,
// at least 1. An image is never enlarged: a smaller one is cropped, on each side, to the smaller of
// box and image. No side of a view is longer than 16383 pixels.
func (b Box) View(width, height int) View {
	limit := image.Pt(maxSide, maxSide)
	if b.Width > 0 {
		limit.X = min(b.Width, maxSide)
	}
	if b.Height > 0 {
		limit.Y = min(b.Height, maxSide)
	}
	if b.Cover && b.Width > 0 && b.Height > 0 {
		return cover(limit, width, height)
	}
	return contain(limit, width, height)
}

func contain(limit image.Point, width, height int) View {
	size := image.Pt(width, height)
	if width > limit.X || height > limit.Y {
		if wider(limit, width, height) {
			size = image.Pt(limit.X, scaled(height, limit.X, width))
		} else {
			size = image.Pt(scaled(width, limit.Y, height), limit.Y)
		}
	}
	return View{From: Area{Width: float64(width), Height: float64(height)}, Size: size}
}

// wider reports whether an image is at least as wide as the box, in proportion to its height.
func wider(box image.Point, width, height int) bool {
	return int64(box.X)*int64(height) <= int64(box.Y)*int64(width)
}

// scaled returns side*to/from, rounded and at least 1.
func scaled(side, to, from int) int {
	return int(max(1, (2*int64(side)*int64(to)+int64(from))/(2*int64(from))))
}

func cover(limit image.Point, width, height int) View {
	size := image.Pt(min(limit.X, width), min(limit.Y, height))
	if size.X == width || size.Y == height { // a whole pixel as the corner keeps all pixels as they are
		return View{From: Area{
			X: float64((width - size.X) / 2), Y: float64((height - size.Y) / 2),
			Width: float64(size.X), Height: float64(size.Y),
		}, Size: size}
	}
	from := Area{Width: float64(width), Height: float64(height)}
	if wider(size, width, height) {
		from.Width = from.Height * float64(size.X) / float64(size.Y)
		from.X = (float64(width) - from.Width) / 2
	} else {
		from.Height = from.Width * float64(size.Y) / float64(size.X)
		from.Y = (float64(height) - from.Height) / 2
	}
	return View{From: from, Size: size}
}

// clipped returns v within an image. A part outside is replaced by the whole image.
func (v View) clipped(width, height int) View {
	w, h := float64(width), float64(height)
	f := v.From
	const rounding = 1.0 / 1024
	inside := f.X >= 0 && f.Y >= 0 && f.Width > 0 && f.Height > 0 &&
		f.X+f.Width <= w+rounding && f.Y+f.Height <= h+rounding
	if !inside {
		v.From = Area{Width: w, Height: h}
	}
	v.Size.X = min(max(v.Size.X, 1), maxSide)
	v.Size.Y = min(max(v.Size.Y, 1), maxSide)
	return v
}

// Memory returns about the most bytes that a source and the making of one copy need, without the
// image and the copy. Samples is the number of 8-bit samples of two pixels: 2 for grey, 3 to 6
// for planes (3 with the ratio 4:2:0), and 8 for pixels.
func Memory(width, height, samples int) int64 {
	const (
		weights = 72  // for a sample on a side: 8 weights, and the first sample
		sums    = 16  // for each channel of a column
		kept    = 240 // for a column: 30 rows of four channels of 16 bits
	)
	halves := int64(width) * int64(height) * int64(samples) / 2 / 3 // 1/4 + 1/16 + ...
	sides := int64(width) + int64(height)
	if samples == 8 {
		return halves + sides*(weights+4*sums+kept)
	}
	return halves + 2*sides*(weights+sums) // the planes of chroma have half the columns
}
