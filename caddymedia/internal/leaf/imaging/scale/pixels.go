package scale

import "encoding/binary"

// scalePixels makes a copy of pixels.
func (s *Source) scalePixels(g geometry, to target) {
	l := &s.layers[0]
	across, down := g.axes(s, l, 1)
	to = to.turned(g.turn)
	if across.identical() && down.identical() {
		l.levels[0].copy(across, down, to)
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

// tile is the side of the squares in which a plane is copied. Reading down a column then stays
// within the processor's cache.
const tile = 32

// copy makes a copy at full size.
func (p plane) copy(across, down axis, to target) {
	first, step := across.at(0)*p.size, int(across.step)*p.size
	for top := 0; top < down.count; top += tile {
		for left := 0; left < across.count; left += tile {
			for j := top; j < min(top+tile, down.count); j++ {
				row := p.row(down.at(j))
				from, at := first+left*step, left*to.right+j*to.down
				for range min(tile, across.count-left) {
					if p.size == 1 {
						to.pix[at] = row[from]
					} else {
						*(*[4]byte)(to.pix[at:]) = [4]byte(row[from:])
					}
					from, at = from+step, at+to.right
				}
			}
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

// setStraight sets a row of a copy to the lower lanes of four channels, of which the first three
// were multiplied by the last.
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

// plane is samples of 8 bits in rows. A pixel is 1 sample, or 4 with straight alpha.
type plane struct {
	pix           []byte
	stride        int // bytes from row to row
	width, height int // in pixels
	size          int // bytes of a pixel
}

// row returns the samples of a row.
func (p plane) row(y int) []byte { return p.pix[y*p.stride:][:p.width*p.size] }

// halved returns p at half the size, as the means of squares of four pixels. A pixel missing beyond
// an odd side repeats the one before it.
func (p plane) halved() plane {
	out := plane{width: (p.width + 1) / 2, height: (p.height + 1) / 2, size: p.size}
	out.stride = out.width * out.size
	out.pix = make([]byte, out.stride*out.height)
	for y := range out.height {
		above, below := p.row(2*y), p.row(min(2*y+1, p.height-1))
		if p.size == 4 {
			halvePixels(out.row(y), above, below, y&1)
		} else {
			halveSamples(out.row(y), above, below, y&1)
		}
	}
	return out
}

// Sums of four samples are rounded by adding 1 or 2, in turn along rows and columns. Always adding
// 2 would make images lighter.
const (
	evenBytes = 0x00ff00ff00ff00ff
	rounding  = 0x0002000100020001
	swapped   = 0x0001000200010002
)

func halveSamples(to, above, below []byte, odd int) {
	round := uint64(rounding)
	if odd > 0 {
		round = swapped
	}
	n := len(above) / 8
	for i := range n {
		a, b := binary.LittleEndian.Uint64(above[8*i:]), binary.LittleEndian.Uint64(below[8*i:])
		s := a&evenBytes + a>>8&evenBytes + b&evenBytes + b>>8&evenBytes + round
		s = s >> 2 & evenBytes
		s |= s >> 8
		binary.LittleEndian.PutUint32(to[4*i:], uint32(s&0xffff|s>>16&0xffff0000))
	}
	last := len(above) - 1
	for i := 4 * n; i < len(to); i++ {
		l, r := 2*i, min(2*i+1, last)
		sum := int(above[l]) + int(above[r]) + int(below[l]) + int(below[r])
		to[i] = byte((sum + 1 + (i+odd)&1) / 4)
	}
}

func halvePixels(to, above, below []byte, odd int) {
	const opaque = 0xff000000ff000000
	round := uint32(0x00010001) << odd
	for i := 0; i < len(to); i += 4 {
		a, b := twoPixels(above[2*i:]), twoPixels(below[2*i:])
		if a&b&opaque == opaque {
			s, t := a&evenBytes+b&evenBytes, a>>8&evenBytes+b>>8&evenBytes
			low, high := uint32(s+s>>32)+round, uint32(t+t>>32)+round
			binary.LittleEndian.PutUint32(to[i:], low>>2&0x00ff00ff|high>>2&0x00ff00ff<<8)
		} else if (a|b)&opaque != 0 {
			weighted((*[4]byte)(to[i:]), a, b)
		}
		round ^= 0x00030003
	}
}

// twoPixels returns the first two pixels of a row, or the only one twice.
func twoPixels(row []byte) uint64 {
	if len(row) < 8 {
		return uint64(binary.LittleEndian.Uint32(row)) * pairs
	}
	return binary.LittleEndian.Uint64(row)
}

// weighted sets a pixel to the mean of two in a row above and two below, in which each counts as
// far as it is visible.
func weighted(to *[4]byte, above, below uint64) {
	rb, ga := products(uint32(above))
	for _, p := range [3]uint32{uint32(above >> 32), uint32(below), uint32(below >> 32)} {
		moreRB, moreGA := products(p)
		rb, ga = rb+moreRB, ga+moreGA
	}
	alpha := ga >> lane
	half, inverse := alpha/2, inverses[alpha]
	to[0] = byte((rb&0xffffffff + half) * inverse >> 32)
	to[1] = byte((ga&0xffffffff + half) * inverse >> 32)
	to[2] = byte((rb>>lane + half) * inverse >> 32)
	to[3] = byte((alpha + 2) / 4)
}

// products returns the channels of a pixel times its alpha, in lanes: red and blue, and green and
// alpha itself.
func products(pixel uint32) (rb, ga uint64) {
	p, a := uint64(pixel), uint64(pixel>>24)
	return (p&0xff | p&0xff0000<<16) * a, (p>>8&0xff | 1<<lane) * a
}

// inverses are 2^32 divided by each sum of four alphas, rounded up. The quotients are exact, as the
// dividends are less than 2^32 divided by a sum.
var inverses = func() (inverses [4*255 + 1]uint64) {
	for i := range inverses[1:] {
		inverses[i+1] = 1<<32/uint64(i+1) + 1
	}
	return inverses
}()
