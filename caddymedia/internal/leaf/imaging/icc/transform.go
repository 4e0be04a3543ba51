package icc

import (
	"math"
	"sync"
)

// Transform converts pixels to sRGB. It is safe for concurrent use.
type Transform struct {
	grey   [256]byte // of each grey, or of equal red, green and blue
	grid   *grid     // of codes of sRGB; nil for grey and for a matrix
	matrix *shaper   // nil for others
	cmyk   bool
}

// points are the points of each dimension of a grid, by the number of channels. Codes of sRGB
// change slowly between them.
var points = map[int]int{3: 33, 4: 17}

// newTransform returns the conversion of colours of one, three or four channels.
func newTransform(channels int, convert func(device) xyz) *Transform {
	t := Transform{cmyk: channels == 4}
	for i := range t.grey {
		x := float64(i) / math.MaxUint8
		t.grey[i] = encodeLight(convert(device{x, x, x})[1])
	}
	if channels == 1 {
		return &t
	}
	sides := make([]int, channels)
	for i := range sides {
		sides[i] = points[channels]
	}
	t.grid = newGrid(sides)
	for i := 0; i < len(t.grid.values); i += 3 {
		var in device
		for j, side := range sides {
			in[j] = float64(i/t.grid.steps[j]%side) / float64(side-1)
		}
		for j, light := range toSRGB.apply(convert(in)) {
			t.grid.values[i+j] = float32(255 * sRGBCode(unit(light)))
		}
	}
	return &t
}

// Grey converts grey samples in place. Those of a profile of RGB count as equal red, green and
// blue.
func (t *Transform) Grey(pix []byte) {
	for i, v := range pix {
		pix[i] = t.grey[v]
	}
}

// Pixels converts pixels of four bytes in place. They are red, green, blue and alpha, except that a
// profile of CMYK makes opaque ones of cyan, magenta, yellow and black. Alpha is not premultiplied.
func (t *Transform) Pixels(pix []byte) {
	switch {
	case t.matrix != nil:
		t.matrix.pixels(pix)
	case t.grid != nil:
		t.grid.pixels(pix, t.cmyk)
	default:
		for p := pix; len(p) >= 4; p = p[4:] {
			p[0], p[1], p[2] = t.grey[p[0]], t.grey[p[1]], t.grey[p[2]]
		}
	}
}

// pixels converts pixels to the codes in the grid.
func (g *grid) pixels(pix []byte, cmyk bool) {
	var last, made [4]byte // neighbours are often equal
	for p, first := pix, true; len(p) >= 4; p, first = p[4:], false {
		now := [4]byte(p)
		if !cmyk {
			now[3] = 0
		}
		if first || now != last {
			v := g.value([4]float32{float32(now[0]) / 255, float32(now[1]) / 255, float32(now[2]) / 255, float32(now[3]) / 255})
			last, made = now, [4]byte{byte(v[0] + 0.5), byte(v[1] + 0.5), byte(v[2] + 0.5)}
		}
		if copy(p, made[:3]); cmyk {
			p[3] = 255
		}
	}
}

// matrix describes the colours of a display: curves to light, and the primaries.
type matrix struct {
	curves [3]curve
	toXYZ  square
}

// square is a matrix of three rows.
type square [3][3]float64

func (m *square) apply(c xyz) (out xyz) {
	for i, row := range m {
		out[i] = row[0]*c[0] + row[1]*c[1] + row[2]*c[2]
	}
	return out
}

// times returns the matrix that applies n first.
func (m *square) times(n *square) (out square) {
	for i := range out {
		for j := range out {
			out[i][j] = m[i][0]*n[0][j] + m[i][1]*n[1][j] + m[i][2]*n[2][j]
		}
	}
	return out
}

// toSRGB converts colours to the light of the primaries of sRGB, whose white is adapted to D50 by
// Bradford's matrix.
var toSRGB = square{
	{3.1338561, -1.6168667, -0.4906146},
	{-0.9787684, 1.9161415, 0.0334540},
	{0.0719453, -0.2289914, 1.4052427},
}

// shaper is a matrix between tables.
type shaper struct {
	light [3][256]float64
	mix   square
	codes *[3][256]byte // nil unless the primaries are those of sRGB
}

// newMatrix returns the conversion of colours of a display.
func newMatrix(m *matrix) *Transform {
	t := Transform{matrix: &shaper{mix: toSRGB.times(&m.toXYZ)}}
	for i, c := range m.curves {
		for v := range 256 {
			t.matrix.light[i][v] = unit(c(float64(v) / math.MaxUint8))
		}
	}
	for v := range t.grey {
		light := xyz{t.matrix.light[0][v], t.matrix.light[1][v], t.matrix.light[2][v]}
		t.grey[v] = encodeLight(m.toXYZ.apply(light)[1])
	}
	if t.matrix.mix.isIdentity() {
		t.matrix.codes = new([3][256]byte)
		for i, light := range t.matrix.light {
			for v := range light {
				t.matrix.codes[i][v] = encodeLight(light[v])
			}
		}
	}
	return &t
}

// isIdentity reports whether the matrix changes no code, but for the rounding of numbers in
// profiles. So greys stay grey.
func (m *square) isIdentity() bool {
	for i, row := range m {
		for j, n := range row {
			if i == j {
				n--
			}
			if math.Abs(n) > 0.002 {
				return false
			}
		}
	}
	return true
}

func (s *shaper) pixels(pix []byte) {
	if c := s.codes; c != nil {
		for p := pix; len(p) >= 4; p = p[4:] {
			p[0], p[1], p[2] = c[0][p[0]], c[1][p[1]], c[2][p[2]]
		}
		return
	}
	codes := lightCodes()
	for p := pix; len(p) >= 4; p = p[4:] {
		light := s.mix.apply(xyz{s.light[0][p[0]], s.light[1][p[1]], s.light[2][p[2]]})
		for i, v := range light {
			p[i] = codes[uint16(math.MaxUint16*unit(v)+0.5)]
		}
	}
}

// lightCodes returns the code of sRGB for each of 65,536 amounts of light.
var lightCodes = sync.OnceValue(func() *[1 << 16]byte {
	var codes [1 << 16]byte
	for i := range codes {
		codes[i] = encodeLight(float64(i) / math.MaxUint16)
	}
	return &codes
})

// encodeLight returns the code of sRGB for an amount of light.
func encodeLight(light float64) byte { return byte(255*sRGBCode(unit(light)) + 0.5) }

// sRGBCode returns the value of sRGB for an amount of light, both from 0 to 1 (IEC 61966-2-1).
func sRGBCode(light float64) float64 {
	if light <= 0.0031308 {
		return 12.92 * light
	}
	return 1.055*math.Pow(light, 1/2.4) - 0.055
}
