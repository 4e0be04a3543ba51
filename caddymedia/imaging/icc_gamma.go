package imaging

import (
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf16"
)

// chromaticities are the x and y of white, red, green and blue, as in a cHRM chunk but unscaled.
type chromaticities [4][2]float64

// srgbChromaticities are those of IEC 61966-2-1.
var srgbChromaticities = chromaticities{{0.3127, 0.3290}, {0.64, 0.33}, {0.30, 0.60}, {0.15, 0.06}}

type (
	vector [3]float64
	matrix [3]vector // of rows
)

// Bradford's cone responses, and the white of a profile (ICC.1:2022, 7.2.16 and E.3).
var (
	bradford = matrix{{0.8951, 0.2664, -0.1614}, {-0.7502, 1.7135, 0.0367}, {0.0389, -0.0685, 1.0296}}
	whiteD50 = vector{0.9642, 1, 0.8249}
)

// gammaProfile returns an ICC profile of RGB colours whose samples, raised to the exponent, are
// proportional to light. It returns nil if the numbers describe no colours.
func gammaProfile(exponent float64, c chromaticities) []byte {
	for _, xy := range c {
		if xy[0] < 0 || xy[1] <= 0 || xy[0]+xy[1] > 1 {
			return nil
		}
	}
	white, primaries := c.xyz(0), matrix{c.xyz(1), c.xyz(2), c.xyz(3)}.transposed()
	toPrimaries, ok := primaries.inverse()
	if !ok {
		return nil
	}
	toCones, back := bradford, mustInverse(bradford)
	from, to := toCones.of(white), toCones.of(whiteD50)
	adapt := back.times(matrix{{to[0] / from[0]}, {0, to[1] / from[1]}, {0, 0, to[2] / from[2]}}).times(toCones)
	share := toPrimaries.of(white)
	colorants := adapt.times(primaries).times(matrix{{share[0]}, {0, share[1]}, {0, 0, share[2]}}).transposed()

	curve, ok := appendFixed([]byte("para\x00\x00\x00\x00\x00\x00\x00\x00"), exponent)
	if !ok {
		return nil
	}
	p := profileWriter{tags: []iccTag{
		{"desc", iccText("Gamma of a PNG")},
		{"cprt", iccText("No copyright")},
		{"rTRC", curve},
		{"gTRC", curve},
		{"bTRC", curve},
	}}
	for i, v := range []vector{whiteD50, colorants[0], colorants[1], colorants[2]} {
		data, ok := appendFixed([]byte("XYZ \x00\x00\x00\x00"), v[:]...)
		if !ok {
			return nil
		}
		p.tags = append(p.tags, iccTag{[]string{"wtpt", "rXYZ", "gXYZ", "bXYZ"}[i], data})
	}
	return p.bytes()
}

// xyz returns a colour of luminance 1.
func (c chromaticities) xyz(i int) vector {
	x, y := c[i][0], c[i][1]
	return vector{x / y, 1, (1 - x - y) / y}
}

func (m matrix) of(v vector) (out vector) {
	for i, row := range m {
		out[i] = row[0]*v[0] + row[1]*v[1] + row[2]*v[2]
	}
	return out
}

func (m matrix) transposed() (out matrix) {
	for i := range m {
		for j := range m {
			out[j][i] = m[i][j]
		}
	}
	return out
}

func (m matrix) times(n matrix) matrix {
	columns := n.transposed()
	for i, column := range columns {
		columns[i] = m.of(column)
	}
	return columns.transposed()
}

// inverse returns the inverse matrix, if there is one.
func (m matrix) inverse() (out matrix, ok bool) {
	for i := range 3 {
		a, b := m[(i+1)%3], m[(i+2)%3]
		out[i] = vector{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
	}
	det := m[0][0]*out[0][0] + m[0][1]*out[0][1] + m[0][2]*out[0][2]
	out = out.transposed()
	for i := range out {
		for j := range out {
			out[i][j] /= det
		}
	}
	return out, math.Abs(det) > 1e-6
}

func mustInverse(m matrix) matrix {
	out, _ := m.inverse()
	return out
}

// appendFixed appends numbers as s15Fixed16 (ICC.1:2022, 4.6). It reports whether all fit.
func appendFixed(b []byte, numbers ...float64) ([]byte, bool) {
	for _, n := range numbers {
		fixed := math.Round(n * 65536)
		if !(math.Abs(fixed) <= math.MaxInt32) {
			return nil, false
		}
		b = binary.BigEndian.AppendUint32(b, uint32(int32(fixed)))
	}
	return b, true
}

// iccText returns a multiLocalizedUnicodeType of one language (ICC.1:2022, 10.15).
func iccText(s string) []byte {
	letters := utf16.Encode([]rune(s))
	b := append([]byte("mluc\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0cenUS\x00\x00\x00"), byte(2*len(letters)))
	b = append(b, 0, 0, 0, 28)
	for _, letter := range letters {
		b = binary.BigEndian.AppendUint16(b, letter)
	}
	return b
}

// iccTag is an element of a profile.
type iccTag struct {
	name string
	data []byte
}

// profileWriter makes a display profile of RGB colours (ICC.1:2022, 7.2 and 7.3).
type profileWriter struct{ tags []iccTag }

func (p profileWriter) bytes() []byte {
	const header = 128
	b := make([]byte, header)
	copy(b[8:], "\x04\x30\x00\x00mntrRGB XYZ ")
	copy(b[36:], "acsp")
	white, _ := appendFixed(nil, whiteD50[:]...)
	copy(b[68:], white)
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.tags)))
	at := len(b) + 12*len(p.tags)
	var data []byte
	for _, tag := range p.tags {
		b = append(b, tag.name...)
		b = binary.BigEndian.AppendUint32(b, uint32(at+len(data)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(tag.data)))
		data = append(data, tag.data...)
		data = append(data, make([]byte, -len(data)&3)...)
	}
	b = slices.Concat(b, data)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}
