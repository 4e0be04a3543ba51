package scale

import "image"

// Turn is how the stored image becomes upright: its rows (FlipX) and columns (FlipY) are read
// backwards, then both are exchanged.
type Turn struct {
	FlipX, FlipY, Transpose bool
}

// Scale returns a copy of what v shows of the upright image. Its type is that of the image;
// planes have the ratio 4:2:0. Its bounds begin at 0, 0, and its rows are contiguous. A view at full
// size copies luma, grey and colours exactly.
func (s *Source) Scale(v View, t Turn) image.Image {
	width, height := s.width, s.height
	if t.Transpose {
		width, height = height, width
	}
	g := geometry{view: v.clipped(width, height), turn: t}
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

// on returns the axis on a plane whose samples cover planeSub pixels, for a copy whose samples cover
// sub of its count pixels. The offset is that of the image within the first sample of the plane.
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
	p, across, down := l.reduced(across, down)
	to = to.turned(g.turn)
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
