package imagingtest

import (
	"encoding/binary"
	"math"
	"slices"
)

// Tag is an element of an ICC profile.
type Tag struct {
	Name string
	Data []byte
}

// ICC returns a profile (ICC.1:2022, 7) of a colour space and a connection space.
func ICC(space, connection string, list ...Tag) []byte {
	const header = 128
	b := make([]byte, header)
	copy(b[8:], "\x04\x30\x00\x00mntr"+space+connection)
	copy(b[36:], "acsp")
	b = binary.BigEndian.AppendUint32(b, uint32(len(list)))
	at := len(b) + 12*len(list)
	var data []byte
	for _, tag := range list {
		b = append(b, tag.Name...)
		b = binary.BigEndian.AppendUint32(b, uint32(at+len(data)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(tag.Data)))
		data = append(data, tag.Data...)
		data = append(data, make([]byte, -len(data)&3)...)
	}
	b = slices.Concat(b, data)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

// Large returns a profile with a tag that no reader knows, so that it has a size.
func Large(size int, space, connection string, list ...Tag) []byte {
	empty := ICC(space, connection, append(list, Tag{"none", nil})...)
	return ICC(space, connection, append(list, Tag{"none", make([]byte, size-len(empty))})...)
}

// Fixed returns numbers as s15Fixed16.
func Fixed(numbers ...float64) (b []byte) {
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint32(b, uint32(int32(math.Round(n*(1<<16)))))
	}
	return b
}

// Gamma returns a curve of a power.
func Gamma(g float64) []byte {
	return binary.BigEndian.AppendUint16([]byte("curv\x00\x00\x00\x00\x00\x00\x00\x01"), uint16(math.Round(256*g)))
}

// srgbCurve is the curve of sRGB as a function.
var srgbCurve = slices.Concat([]byte("para\x00\x00\x00\x00\x00\x03\x00\x00"),
	Fixed(2.4, 1/1.055, 0.055/1.055, 1/12.92, 0.04045))

// Primaries are those of sRGB and of Display P3, adapted to D50: red, green, blue.
var (
	SRGB = [3][]float64{{0.4360, 0.2225, 0.0139}, {0.3851, 0.7169, 0.0971}, {0.1431, 0.0606, 0.7139}}
	P3   = [3][]float64{{0.5151, 0.2412, -0.0011}, {0.2920, 0.6922, 0.0419}, {0.1571, 0.0666, 0.7841}}
)

// Display returns the tags of a display of primaries with a curve; nil is that of sRGB.
func Display(primaries [3][]float64, curve []byte) []Tag {
	if curve == nil {
		curve = srgbCurve
	}
	list := make([]Tag, 0, 2*len(primaries))
	for i, name := range []string{"r", "g", "b"} {
		list = append(list, Tag{name + "XYZ", append([]byte("XYZ \x00\x00\x00\x00"), Fixed(primaries[i]...)...)},
			Tag{name + "TRC", curve})
	}
	return list
}

// Table returns a tag A2B0 of a type (mft1, mft2 or "mAB ") in which device colours have the codes
// of sRGB that rgb returns. The connection space is that of Lab.
func Table(kind string, channels, side int, rgb func(device []float64) [3]float64) Tag {
	b := make([]byte, 32)
	copy(b, kind)
	b[8], b[9] = byte(channels), 3
	wide := kind != "mft1"
	put := func(v float64) {
		if v = min(max(v, 0), 1); wide {
			b = binary.BigEndian.AppendUint16(b, uint16(math.Round(v*math.MaxUint16)))
		} else {
			b = append(b, byte(math.Round(v*math.MaxUint8)))
		}
	}
	straight := func() {
		if wide {
			put(0)
			put(1)
			return
		}
		for i := range 256 {
			put(float64(i) / 255)
		}
	}
	if kind == "mAB " {
		binary.BigEndian.PutUint32(b[12:], 32) // identity curves
		for range 3 {
			b = append(b, "curv\x00\x00\x00\x00\x00\x00\x00\x00"...)
		}
		binary.BigEndian.PutUint32(b[28:], uint32(len(b)))
		for range channels {
			b = append(b, "curv\x00\x00\x00\x00\x00\x00\x00\x00"...)
		}
		binary.BigEndian.PutUint32(b[24:], uint32(len(b)))
		sides := make([]byte, 16)
		for i := range channels {
			sides[i] = byte(side)
		}
		b = append(append(b, sides...), 2, 0, 0, 0)
	} else {
		b[10] = byte(side)
		b = append(b, make([]byte, 16)...)
		if wide {
			b = append(b, 0, 2, 0, 2)
		}
		for range channels {
			straight()
		}
	}
	for _, lab := range labs(channels, side, rgb) {
		scale := [3]float64{1, 1, 1}
		if kind == "mft2" {
			scale = [3]float64{65280.0 / 65535, 256.0 / 257, 256.0 / 257}
		}
		put(lab[0] / 100 * scale[0])
		put((lab[1] + 128) / 255 * scale[1])
		put((lab[2] + 128) / 255 * scale[2])
	}
	if kind != "mAB " {
		for range 3 {
			straight()
		}
	}
	return Tag{"A2B0", b}
}

// labs returns the CIELAB coordinates at the points of a grid.
func labs(channels, side int, rgb func(device []float64) [3]float64) [][3]float64 {
	device := make([]float64, channels)
	list := make([][3]float64, int(math.Pow(float64(side), float64(channels))))
	for i := range list {
		for j, rest := channels-1, i; j >= 0; j, rest = j-1, rest/side {
			device[j] = float64(rest%side) / float64(side-1)
		}
		list[i] = labOf(rgb(device))
	}
	return list
}

// labOf returns the CIELAB coordinates of a colour of sRGB at D50.
func labOf(rgb [3]float64) [3]float64 {
	var f [3]float64
	for i, white := range []float64{0.9642, 1, 0.8249} {
		sum := 0.0
		for j, code := range rgb {
			light := code / 12.92
			if code > 0.04045 {
				light = math.Pow((code+0.055)/1.055, 2.4)
			}
			sum += SRGB[j][i] * light
		}
		if f[i] = math.Cbrt(sum / white); sum/white <= 216.0/24389 {
			f[i] = (sum/white*24389/27 + 16) / 116
		}
	}
	return [3]float64{116*f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])}
}

// Ink returns the colour of cyan, magenta, yellow and black inks in the plain formula.
func Ink(device []float64) (rgb [3]float64) {
	for i := range rgb {
		rgb[i] = (1 - device[i]) * (1 - device[3])
	}
	return rgb
}

// Code returns three device values as the codes of sRGB.
func Code(device []float64) [3]float64 { return [3]float64(device) }
