package icc

// lut is a table from device colours to the connection space: curves, a grid, curves, a matrix, and
// curves. All but the last are optional.
type lut struct {
	a      []curve
	grid   *grid
	m      []curve
	matrix []float64 // three rows, and what is added to each
	b      []curve
	// decode returns the colour for three values from 0 to 1.
	decode func([3]float64) xyz
}

// maxEntries is the largest number of values of a grid. Common ones have 33 points for each of
// three channels or 17 for each of four, which is 107,811 or 250,563 values.
const maxEntries = 1 << 20

// parseLUT returns the table in a tag, or nil. pcs is the connection space.
func parseLUT(b []byte, channels int, pcs string) *lut {
	if len(b) < 32 || int(b[8]) != channels || b[9] != 3 || pcs != "Lab " && pcs != "XYZ " {
		return nil
	}
	var l *lut
	kind := string(b[:4])
	switch kind {
	case "mft1", "mft2":
		l = parseTables(b, channels, kind == "mft2")
	case "mAB ":
		l = parseElements(b, channels)
	}
	switch {
	case l == nil:
	case pcs == "XYZ ":
		l.decode = func(v [3]float64) xyz {
			const most = 1 + 32767.0/32768 // 6.3.4.2
			return xyz{most * v[0], most * v[1], most * v[2]}
		}
	case kind == "mft2":
		l.decode = func(v [3]float64) xyz { // 10.10, table 42
			return fromLab(v[0]*100*65535/65280, v[1]*65535/256-128, v[2]*65535/256-128)
		}
	default:
		l.decode = func(v [3]float64) xyz { return fromLab(v[0]*100, v[1]*255-128, v[2]*255-128) }
	}
	return l
}

// parseTables reads a lut8Type or lut16Type (10.10 and 10.11). Its matrix is only for XYZ colours.
func parseTables(b []byte, channels int, wide bool) *lut {
	at, width, in, out := 48, 1, 256, 256
	if wide {
		if len(b) < 52 {
			return nil
		}
		at, width, in, out = 52, 2, be16(b[48:]), be16(b[50:])
	}
	if in < 2 || out < 2 {
		return nil
	}
	take := func(count int) samples {
		s := samples{part(b, at, width*count), wide}
		at += len(s.b)
		return s
	}
	curves := func(count, size int) []curve {
		var list []curve
		for range count {
			if s := take(size); s.b != nil {
				list = append(list, s.curve())
			}
		}
		return list
	}
	var l lut
	l.a = curves(channels, in)
	sides := make([]int, channels)
	for i := range sides {
		sides[i] = int(b[10])
	}
	if l.grid = newGrid(sides); l.grid == nil || !l.grid.fill(take(len(l.grid.values))) {
		return nil
	}
	if l.b = curves(3, out); len(l.a) < channels || len(l.b) < 3 {
		return nil
	}
	return &l
}

// parseElements reads a lutAToBType (10.12).
func parseElements(b []byte, channels int) *lut {
	var l lut
	ok := true
	curves := func(offset, count int) []curve {
		at := be32(b[offset:])
		if at == 0 {
			return nil
		}
		list := make([]curve, count)
		for i := range list {
			rest := part(b, min(at, len(b)), max(0, len(b)-at))
			c, size := parseCurve(rest)
			ok = ok && c != nil
			list[i], at = c, at+(size+3)&^3
		}
		return list
	}
	l.b, l.m, l.a = curves(12, 3), curves(20, 3), curves(28, channels)
	if at := be32(b[16:]); at != 0 {
		numbers := part(b, at, 12*4)
		if numbers == nil {
			return nil
		}
		for i := range 3 { // a row of three, then the number that is added
			for j := range 3 {
				l.matrix = append(l.matrix, fixed(numbers[4*(3*i+j):]))
			}
			l.matrix = append(l.matrix, fixed(numbers[4*(9+i):]))
		}
	}
	if at := be32(b[24:]); at != 0 {
		ok = ok && l.parseGrid(part(b, min(at, len(b)), max(0, len(b)-at)), channels)
	}
	if !ok || l.b == nil || l.grid == nil && channels != 3 {
		return nil
	}
	return &l
}

// parseGrid reads the grid of a lutAToBType (10.12.3): the points of each dimension, the bytes of a
// number, the values.
func (l *lut) parseGrid(b []byte, channels int) bool {
	const header = 20
	if len(b) < header || b[16] != 1 && b[16] != 2 {
		return false
	}
	sides := make([]int, channels)
	for i := range sides {
		sides[i] = int(b[i])
	}
	if l.grid = newGrid(sides); l.grid == nil {
		return false
	}
	width := int(b[16])
	return l.grid.fill(samples{part(b, header, width*len(l.grid.values)), width == 2})
}

// convert returns a colour as seen.
func (l *lut) convert(in device) xyz {
	for i, c := range l.a {
		in[i] = c(in[i])
	}
	v := [3]float64{in[0], in[1], in[2]}
	if l.grid != nil {
		var at [4]float32
		for i, x := range in {
			at[i] = float32(unit(x))
		}
		for i, x := range l.grid.value(at) {
			v[i] = float64(x)
		}
	}
	for i, c := range l.m {
		v[i] = c(v[i])
	}
	if m := l.matrix; m != nil {
		old := v
		for i := range v {
			v[i] = m[4*i]*old[0] + m[4*i+1]*old[1] + m[4*i+2]*old[2] + m[4*i+3]
		}
	}
	for i, c := range l.b {
		v[i] = unit(c(v[i]))
	}
	return l.decode(v)
}

// fromLab returns the colour for CIELAB coordinates.
func fromLab(l, a, b float64) xyz {
	inverse := func(t float64) float64 {
		const delta = 6.0 / 29
		if t > delta {
			return t * t * t
		}
		return 3 * delta * delta * (t - 4.0/29)
	}
	y := (l + 16) / 116
	return xyz{whiteD50[0] * inverse(y+a/500), whiteD50[1] * inverse(y), whiteD50[2] * inverse(y-b/200)}
}

// grid has three values at each point of a grid of one to four dimensions. The last dimension
// varies fastest.
type grid struct {
	sides  []int // the points of each dimension, at least 2
	steps  []int // between neighbours in values
	values []float32
}

// newGrid returns a grid of zeros, or nil if a side has fewer than two points, or all together have
// too many.
func newGrid(sides []int) *grid {
	g, size := grid{sides: sides, steps: make([]int, len(sides))}, 3
	for i := len(sides) - 1; i >= 0; i-- {
		g.steps[i] = size
		if size *= sides[i]; sides[i] < 2 || size > maxEntries {
			return nil
		}
	}
	g.values = make([]float32, size)
	return &g
}

// fill sets the values, and reports whether there are enough.
func (g *grid) fill(s samples) bool {
	if s.b == nil {
		return false
	}
	for i := range g.values {
		g.values[i] = float32(s.at(i))
	}
	return true
}

// value interpolates between the points around a position, each coordinate from 0 to 1. It goes
// from the lowest corner of a cell to the highest one, first in the dimension in which the position
// is the farthest. So it needs n+1 of the 2^n corners.
func (g *grid) value(at [4]float32) [3]float32 {
	var rest [4]float32
	var order [4]int
	corner := 0
	for i, side := range g.sides {
		x := at[i] * float32(side-1)
		cell := min(int(x), side-2)
		corner += cell * g.steps[i]
		rest[i] = x - float32(cell)
		j := i
		for ; j > 0 && rest[order[j-1]] < rest[i]; j-- {
			order[j] = order[j-1]
		}
		order[j] = i
	}
	var out [3]float32
	before := float32(1)
	for n := range len(g.sides) + 1 {
		after := float32(0)
		if n < len(g.sides) {
			after = rest[order[n]]
		}
		weight := before - after
		point := g.values[corner : corner+3 : corner+3]
		out[0] += weight * point[0]
		out[1] += weight * point[1]
		out[2] += weight * point[2]
		if n < len(g.sides) {
			corner += g.steps[order[n]]
		}
		before = after
	}
	return out
}
