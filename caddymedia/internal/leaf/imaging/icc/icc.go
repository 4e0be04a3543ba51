// Package icc converts pixels with an ICC profile (ICC.1:2022) to sRGB. Profiles are untrusted. All
// of their tables are checked before use, and limited in size. Begin with [Parse].
package icc

import (
	"encoding/binary"
	"errors"
	"math"
)

// The colour spaces of profiles that matter here.
const (
	RGB  = "RGB "
	Grey = "GRAY"
	CMYK = "CMYK"
)

// HeaderSize is the length of the header of a profile.
const HeaderSize = 128

// MaxSize is the largest profile that [Parse] accepts. Those of printers have 0.5 to 3 MiB.
const MaxSize = 4 << 20

// Memory is about the most bytes needed to read a profile and to convert with it.
const Memory = 16 << 20

// ErrProfile means that a profile is damaged or has no supported description of its colours.
var ErrProfile = errors.New("the profile describes no colours")

// Space returns the colour space in the header of a profile, or "" if that is not a header.
func Space(profile []byte) string {
	if len(profile) < HeaderSize || string(profile[36:40]) != "acsp" {
		return ""
	}
	return string(profile[16:20])
}

// device is a colour as stored: one, three or four values from 0 to 1.
type device [4]float64

// xyz is a colour as seen: XYZ relative to a white of D50.
type xyz [3]float64

// whiteD50 is the white of the connection space of profiles (7.2.16).
var whiteD50 = xyz{0.9642, 1, 0.8249}

// Parse returns the conversion from the colours of a profile to sRGB. Like browsers it uses the
// table for photographs (A2B0, else A2B1), and curves and primaries only without one.
func Parse(profile []byte) (*Transform, error) {
	space, p := Space(profile), tags(profile)
	channels := map[string]int{Grey: 1, RGB: 3, CMYK: 4}[space]
	if channels == 0 || len(profile) > MaxSize {
		return nil, ErrProfile
	}
	pcs := string(profile[20:24])
	for _, name := range []string{"A2B0", "A2B1"} {
		if l := parseLUT(p.find(name), channels, pcs); l != nil {
			return newTransform(channels, l.convert), nil
		}
	}
	switch {
	case pcs != "XYZ ":
	case space == RGB:
		if m := p.matrix(); m != nil {
			return newMatrix(m), nil
		}
	case space == Grey:
		if c, _ := parseCurve(p.find("kTRC")); c != nil {
			return newTransform(channels, func(in device) xyz { return whiteD50.scaled(c(in[0])) }), nil
		}
	}
	return nil, ErrProfile
}

func (c xyz) scaled(by float64) xyz { return xyz{by * c[0], by * c[1], by * c[2]} }

// tags is a profile with a valid header.
type tags []byte

// find returns the data of a tag (7.3), or nil if there is none.
func (p tags) find(name string) []byte {
	const count, entry = HeaderSize, 12
	if len(p) < count+4 {
		return nil
	}
	list := p[count+4:]
	for left := be32(p[count:]); left > 0 && len(list) >= entry; left, list = left-1, list[entry:] {
		if string(list[:4]) == name {
			return part(p, be32(list[4:]), be32(list[8:]))
		}
	}
	return nil
}

// part returns size bytes from an offset on, or nil if b is shorter.
func part(b []byte, from, size int) []byte {
	if from > len(b) || size > len(b)-from {
		return nil
	}
	return b[from : from+size]
}

// matrix returns the curves and primaries of a profile of RGB (8.4.3), or nil.
func (p tags) matrix() *matrix {
	var m matrix
	for i, name := range []string{"r", "g", "b"} {
		curve, _ := parseCurve(p.find(name + "TRC"))
		primary := p.find(name + "XYZ")
		if curve == nil || len(primary) < 20 || string(primary[:4]) != "XYZ " {
			return nil
		}
		m.curves[i] = curve
		for j := range 3 {
			m.toXYZ[j][i] = fixed(primary[8+4*j:])
		}
	}
	return &m
}

// curve maps a value. The result may be any number.
type curve func(x float64) float64

// parseCurve returns the curve that b begins with (10.6 and 10.18) and its length in bytes, or nil.
func parseCurve(b []byte) (c curve, size int) {
	if len(b) < 12 {
		return nil, 0
	}
	switch string(b[:4]) {
	case "curv":
		count := be32(b[8:])
		table := part(b, 12, 2*count)
		switch {
		case table == nil:
			return nil, 0
		case count == 0:
			c = func(x float64) float64 { return x }
		case count == 1:
			c = gamma(float64(be16(table)) / 256)
		default:
			c = samples{table, true}.curve()
		}
		return c, 12 + len(table)
	case "para":
		return parametric(be16(b[8:]), b[12:])
	}
	return nil, 0
}

// gamma returns the curve of a power.
func gamma(g float64) curve { return func(x float64) float64 { return math.Pow(x, g) } }

// parametric returns a curve of a type (10.18, table 68) and its length: (ax+b)^g+e from d on,
// below it cx+f.
func parametric(kind int, numbers []byte) (curve, int) {
	counts := []int{1, 3, 4, 5, 7}
	if kind >= len(counts) || len(numbers) < 4*counts[kind] {
		return nil, 0
	}
	var n [7]float64 // g, a, b, c, d, e, f
	for i := range counts[kind] {
		n[i] = fixed(numbers[4*i:])
	}
	g, a, b, c, d, e, f := n[0], n[1], n[2], n[3], n[4], n[5], n[6]
	switch kind {
	case 0:
		a = 1
	case 1:
		d = -b / a
	case 2:
		d, e, f, c = -b/a, c, c, 0
	}
	return func(x float64) float64 {
		if x >= d {
			return math.Pow(a*x+b, g) + e
		}
		return c*x + f
	}, 12 + 4*counts[kind]
}

// samples are numbers from 0 to 1, of one or two bytes.
type samples struct {
	b    []byte
	wide bool
}

func (s samples) at(i int) float64 {
	if s.wide {
		return float64(be16(s.b[2*i:])) / math.MaxUint16
	}
	return float64(s.b[i]) / math.MaxUint8
}

// curve returns the curve through at least two samples.
func (s samples) curve() curve {
	last := len(s.b) - 1
	if s.wide {
		last = len(s.b)/2 - 1
	}
	return func(x float64) float64 {
		x = unit(x) * float64(last)
		i := min(int(x), last-1)
		from, to := s.at(i), s.at(i+1)
		return from + (to-from)*(x-float64(i))
	}
}

// unit returns the nearest number from 0 to 1; 0 for NaN.
func unit(x float64) float64 {
	if x > 0 {
		return min(x, 1)
	}
	return 0
}

func be16(b []byte) int { return int(binary.BigEndian.Uint16(b)) }

// be32 returns a count or an offset, at most one that is outside of every profile.
func be32(b []byte) int { return int(min(binary.BigEndian.Uint32(b), 1<<28)) }

// fixed returns an s15Fixed16Number (4.6).
func fixed(b []byte) float64 { return float64(int32(binary.BigEndian.Uint32(b))) / (1 << 16) }
