package icc

import "math"

// Point is a chromaticity: the coordinates x and y of CIE 1931.
type Point struct{ X, Y float64 }

// Display describes colours without a profile.
type Display struct {
	// Gamma is the power that turns codes into light. 0 means the curve of sRGB.
	Gamma float64
	// White and the primaries.
	White, Red, Green, Blue Point
}

// SRGB describes the colours of sRGB.
var SRGB = Display{
	White: Point{0.3127, 0.3290}, Red: Point{0.64, 0.33}, Green: Point{0.30, 0.60}, Blue: Point{0.15, 0.06},
}

// Transform returns the conversion to sRGB.
func (d Display) Transform() (*Transform, error) {
	primaries := columns(d.Red.color(), d.Green.color(), d.Blue.color())
	inverse := primaries.inverse()
	white := d.White.color()
	amounts := inverse.apply(white)
	scaled := primaries.times(diagonal(amounts))
	toXYZ := adaptation(white)
	toXYZ = toXYZ.times(&scaled)
	for _, row := range toXYZ {
		for _, n := range row {
			if math.IsNaN(n) || math.IsInf(n, 0) {
				return nil, ErrProfile
			}
		}
	}
	c := curve(sRGBLight)
	if d.Gamma > 0 {
		c = gamma(d.Gamma)
	}
	return newMatrix(&matrix{curves: [3]curve{c, c, c}, toXYZ: toXYZ}), nil
}

// sRGBLight returns the amount of light for a value of sRGB.
func sRGBLight(code float64) float64 {
	if code <= 0.04045 {
		return code / 12.92
	}
	return math.Pow((code+0.055)/1.055, 2.4)
}

// color returns the colour of a chromaticity with a Y of 1.
func (p Point) color() xyz { return xyz{p.X / p.Y, 1, (1 - p.X - p.Y) / p.Y} }

// adaptation returns the matrix from colours under a white to those under D50, by Bradford's cone
// responses (annex E).
func adaptation(white xyz) square {
	cones := square{{0.8951, 0.2664, -0.1614}, {-0.7502, 1.7135, 0.0367}, {0.0389, -0.0685, 1.0296}}
	from, to := cones.apply(white), cones.apply(whiteD50)
	adapted := diagonal(xyz{to[0] / from[0], to[1] / from[1], to[2] / from[2]}).times(&cones)
	inverse := cones.inverse()
	return inverse.times(&adapted)
}

func columns(a, b, c xyz) (m square) {
	for i := range m {
		m[i] = [3]float64{a[i], b[i], c[i]}
	}
	return m
}

func diagonal(c xyz) *square { return &square{{c[0], 0, 0}, {0, c[1], 0}, {0, 0, c[2]}} }

// inverse returns the inverse, with infinite numbers if there is none.
func (m *square) inverse() (out square) {
	minor := func(i, j int) float64 {
		a, b, c, d := (i+1)%3, (i+2)%3, (j+1)%3, (j+2)%3
		return m[a][c]*m[b][d] - m[a][d]*m[b][c]
	}
	determinant := m[0][0]*minor(0, 0) + m[0][1]*minor(0, 1) + m[0][2]*minor(0, 2)
	for i := range out {
		for j := range out {
			out[j][i] = minor(i, j) / determinant
		}
	}
	return out
}
