package scale

// scalePixels makes a copy of pixels.
func (s *Source) scalePixels(g geometry, to target) {
	l := &s.layers[0]
	across, down := g.axes(s, l, 1)
	to = to.turned(g.turn)
	if across.identical() && down.identical() {
		copyPixels(l.levels[0], across, down, to)
		return
	}
	p, across, down := l.reduced(across, down)
	if s.opaque {
		resample(raster[uint8]{3, ring(p, 3, separated)}, across, down, func(y int, sums []uint64) {
			setOpaque(to, y, sums)
			if y+1 < down.count {
				setOpaque(to, y+1, upper(sums))
			}
		})
		return
	}
	resample(raster[uint16]{4, ring(p, 4, multiplied)}, across, down, func(y int, sums []uint64) {
		setStraight(to, y, sums)
		if y+1 < down.count {
			setStraight(to, y+1, upper(sums))
		}
	})
}

// copyPixels makes a copy at full size.
func copyPixels(p plane, across, down axis, to target) {
	for j := range down.count {
		row := p.row(down.at(j))
		for i := range across.count {
			copy(to.pix[i*to.right+j*to.down:][:4], row[4*across.at(i):])
		}
	}
}

// upper moves the upper lanes down.
func upper(sums []uint64) []uint64 {
	for i := range sums {
		sums[i] >>= lane
	}
	return sums
}

// setOpaque sets a row of a copy to the lower lanes of three channels.
func setOpaque(to target, y int, sums []uint64) {
	n := len(sums) / 3
	r, g, b := sums[:n], sums[n:2*n], sums[2*n:]
	for x := range r {
		p := to.pix[x*to.right+y*to.down:][:4]
		p[0], p[1], p[2], p[3] = narrow(uint32(r[x])), narrow(uint32(g[x])), narrow(uint32(b[x])), 255
	}
}

// setStraight sets a row of a copy to the lower lanes of four channels, of which the first three were
// multiplied by the last.
func setStraight(to target, y int, sums []uint64) {
	n := len(sums) / 4
	r, g, b, a := sums[:n], sums[n:2*n], sums[2*n:3*n], sums[3*n:]
	for x := range r {
		p := to.pix[x*to.right+y*to.down:][:4]
		alpha := wide(uint32(a[x])) // may overshoot, as the products do
		p[3] = uint8(min((alpha+127)/255, 255))
		if p[3] == 0 {
			p[0], p[1], p[2] = 0, 0, 0
			continue
		}
		// The quotients are exact, as the dividends are less than 2^42 / alpha.
		inverse := (1<<42)/uint64(alpha) + 1
		for c, sum := range [3]uint64{r[x], g[x], b[x]} {
			product := min(wide(uint32(sum)), alpha)
			p[c] = uint8(uint64(product*255+alpha/2) * inverse >> 42)
		}
	}
}

// ring returns the open function of a raster of pixels, which are taken apart into channels. The
// last rows are kept, as windows overlap.
func ring[T sample](p plane, channels int, split func(to []T, row []byte)) func(left, right, depth int) func(y int) []T {
	return func(left, right, depth int) func(y int) []T {
		rows := make([][]T, depth)
		held := make([]int, depth) // which row, plus 1
		return func(y int) []T {
			i := y % depth
			if held[i] != y+1 {
				if rows[i] == nil {
					rows[i] = make([]T, channels*(right-left))
				}
				split(rows[i], p.row(y)[4*left:4*right])
				held[i] = y + 1
			}
			return rows[i]
		}
	}
}

// separated takes opaque pixels apart.
func separated(to []uint8, row []byte) {
	n := len(row) / 4
	r, g, b := to[:n], to[n:2*n], to[2*n:3*n]
	for x := range r {
		p := (*[4]byte)(row[4*x:])
		r[x], g[x], b[x] = p[0], p[1], p[2]
	}
}

// multiplied takes pixels apart and multiplies the channels, also that of alpha itself as if its
// colour were 255.
func multiplied(to []uint16, row []byte) {
	n := len(row) / 4
	r, g, b, a := to[:n], to[n:2*n], to[2*n:3*n], to[3*n:4*n]
	for x := range r {
		p := (*[4]byte)(row[4*x:])
		alpha := uint16(p[3])
		r[x], g[x], b[x], a[x] = uint16(p[0])*alpha, uint16(p[1])*alpha, uint16(p[2])*alpha, 255*alpha
	}
}
