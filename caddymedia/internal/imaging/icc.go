package imaging

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf16"
)

// The colour spaces of ICC profiles that matter here.
const (
	spaceRGB  = "RGB "
	spaceGrey = "GRAY"
	spaceCMYK = "CMYK"
)

// colorProfile is an ICC profile of an image. The zero value is none.
type colorProfile struct {
	space string // as in the header of the profile
	data  []byte // nil if it is larger than maxProfile
}

// newProfile returns the profile in data, or the zero value if it has no ICC header (ICC.1:2022,
// 7.2).
func newProfile(data []byte) colorProfile {
	if len(data) < 128 || string(data[36:40]) != "acsp" {
		return colorProfile{}
	}
	p := colorProfile{space: string(data[16:20]), data: data}
	if len(data) > maxProfile {
		p.data = nil
	}
	return p
}

// setProfile sets the profile of pixels of a colour space. As in browsers, a profile of another
// space is ignored, except that grey pixels may have an RGB profile. One of grey becomes one of
// RGB, since a WebP image has colours.
func (i *Info) setProfile(p colorProfile, pixels string) {
	switch {
	case p.space == spaceRGB && pixels != spaceCMYK:
		if i.Profile = p.data; p.data == nil {
			i.ColorLoss = "its colour profile is larger than 64 KiB"
		}
	case p.space == pixels && pixels == spaceGrey:
		if i.Profile = greyProfile(p.data); i.Profile == nil {
			i.ColorLoss = "it has a colour profile of grey that describes no curve"
		}
	case p.space == pixels && pixels == spaceCMYK:
		i.ColorLoss = "it has a colour profile of CMYK"
	}
}

// pngColors are the colour chunks of a PNG, nil where there is none (W3C PNG, 11.3.2).
type pngColors struct {
	cicp, gamma, chroma []byte
	srgb                bool
	profile             colorProfile
}

// Browsers take a lone gAMA for the curve of sRGB if its exponent is close to that of sRGB.
const (
	srgbGamma = 1 / 2.2
	nearGamma = 0.05
)

// describe sets the colours. Of the chunks present, only the one that comes first in the order of
// W3C PNG, 4.3, counts. gAMA and cHRM are converted to a profile, which a variant can carry.
func (c *pngColors) describe(i *Info, grey bool) {
	pixels := spaceRGB
	if grey {
		pixels = spaceGrey
	}
	switch {
	case c.cicp != nil:
		if string(c.cicp) != "\x01\x0d\x00\x01" { // the primaries and the curve of sRGB, full range
			i.ColorLoss = "it has colours of video (cICP)"
		}
	case c.profile.space != "":
		i.setProfile(c.profile, pixels)
	case c.srgb, c.gamma == nil:
	default:
		c.applyGamma(i)
	}
}

// applyGamma sets the profile that gAMA and cHRM describe. cHRM alone is ignored.
func (c *pngColors) applyGamma(i *Info) {
	const factor = 100_000
	gamma := float64(be32(c.gamma)) / factor
	if gamma == 0 {
		return
	}
	chroma := srgbChromaticities
	if c.chroma != nil {
		for n := range chroma {
			x, y := be32(c.chroma[8*n:]), be32(c.chroma[8*n+4:])
			chroma[n] = [2]float64{float64(x) / factor, float64(y) / factor}
		}
	} else if math.Abs(gamma/srgbGamma-1) < nearGamma {
		return
	}
	if i.Profile = gammaProfile(1/gamma, chroma); i.Profile == nil {
		i.ColorLoss = "its gAMA and cHRM chunks describe no colours"
	}
}

// maxProfile is the largest ICC profile that is copied into another file. It is held for the whole
// request, so 200 images of a request hold 12.5 MiB. Real ones have 0.5 to 4 KiB. Those of
// printers have megabytes, but describe CMYK.
const maxProfile = 64 << 10

// iccPrefix begins the APP2 segments of a JPEG that hold a profile (ICC.1:2022, annex B.4).
const iccPrefix = "ICC_PROFILE\x00"

// iccParts joins a profile that is split over the segments of a JPEG.
type iccParts struct {
	parts  [][]byte // by number, from 0; nil where one is missing
	size   int
	space  string // of the first part
	large  bool
	broken bool
}

// add adds the data of a segment after the prefix: the number of the part (from 1), the number of
// parts, the part.
func (c *iccParts) add(b []byte) {
	if c.broken {
		return
	}
	if c.broken = !c.fits(b); c.broken {
		c.parts = nil
		return
	}
	if c.parts == nil {
		c.parts = make([][]byte, b[1])
	}
	at, part := b[0]-1, b[2:]
	if at == 0 {
		c.space = newProfile(part).space
	}
	if c.size += len(part); c.size > maxProfile {
		c.large = true
	}
	if c.large {
		part = nil // only its presence is kept
	}
	c.parts[at] = append([]byte{}, part...)
}

func (c *iccParts) fits(b []byte) bool {
	if len(b) < 2 || b[0] < 1 || b[0] > b[1] {
		return false
	}
	return c.parts == nil || len(c.parts) == int(b[1]) && c.parts[b[0]-1] == nil
}

// join returns the profile, or the zero value if a part is missing.
func (c *iccParts) join() colorProfile {
	for _, part := range c.parts {
		if part == nil {
			return colorProfile{}
		}
	}
	if c.large {
		return colorProfile{space: c.space}
	}
	return newProfile(slices.Concat(c.parts...))
}

// inflateProfile returns the profile in the data of an iCCP chunk (W3C PNG, section 11.3.2.3). The
// data is a name, a zero byte, the compression method (always 0) and the compressed profile. cut
// reports that data is only the start of the chunk.
func inflateProfile(data []byte, cut bool) colorProfile {
	_, rest, ok := bytes.Cut(data, []byte{0})
	if !ok || len(rest) == 0 || rest[0] != 0 {
		return colorProfile{}
	}
	z, err := zlib.NewReader(bytes.NewReader(rest[1:]))
	if err != nil {
		return colorProfile{}
	}
	profile, err := io.ReadAll(io.LimitReader(z, maxProfile+1))
	switch {
	case cut && errors.Is(err, io.ErrUnexpectedEOF):
		return colorProfile{space: newProfile(profile).space}
	case err != nil:
		return colorProfile{}
	}
	return newProfile(profile)
}

// maxICCPart is the most of a profile in one segment of a JPEG: 65,535 bytes less the length of the
// segment, the prefix, and the two numbers of the part.
const maxICCPart = 65_535 - 2 - len(iccPrefix) - 2

// WithProfile returns a JPEG or PNG file without a profile, as the encoders of the standard library
// write it, with an ICC profile of at most 64 KiB. Without a profile it returns the file itself.
func WithProfile(file []byte, format Format, profile []byte) ([]byte, error) {
	if len(profile) == 0 {
		return file, nil
	}
	const pngHeader = len(pngSignature) + 8 + 13 + 4 // the signature and the IHDR chunk
	switch {
	case format == JPEG && len(file) > 2: // APP2 segments after SOI (ICC.1:2022, annex B.4)
		parts := slices.Collect(slices.Chunk(profile, maxICCPart))
		var b []byte
		for i, part := range parts {
			b = append(b, jpegSegment(jpegAPP0+2, iccPrefix+string([]byte{byte(i + 1), byte(len(parts))}), part)...)
		}
		return slices.Insert(file, 2, b...), nil
	case format == PNG && len(file) > pngHeader: // an iCCP chunk (W3C PNG, section 11.3.2.3)
		var data bytes.Buffer
		data.WriteString("icc\x00\x00") // a name, the compression method
		z := zlib.NewWriter(&data)
		_, _ = z.Write(profile) // a bytes.Buffer takes everything
		_ = z.Close()
		return slices.Insert(file, pngHeader, pngChunk("iCCP", data.Bytes())...), nil
	}
	return nil, fmt.Errorf("a %s of %d bytes cannot hold a colour profile", format, len(file))
}

// srgbColorants are the red, green and blue of sRGB, adapted to the white of a profile, which is
// their exact sum (s15Fixed16).
var srgbColorants = [3]string{
	"\x00\x00\x6F\xA2\x00\x00\x38\xF5\x00\x00\x03\x90",
	"\x00\x00\x62\x99\x00\x00\xB7\x85\x00\x00\x18\xDA",
	"\x00\x00\x24\x9B\x00\x00\x0F\x86\x00\x00\xB6\xC3",
}

// greyProfile returns a profile of RGB colours for pixels that have a profile of grey: equal red,
// green and blue have the lightness of that grey. It returns nil if the profile has no curve from
// samples to light.
func greyProfile(grey []byte) []byte {
	if len(grey) < 132 || string(grey[20:24]) != "XYZ " {
		return nil
	}
	entries := grey[132:]
	for count := be32(grey[128:]); count > 0 && len(entries) >= 12; count, entries = count-1, entries[12:] {
		if string(entries[:4]) != "kTRC" {
			continue
		}
		from, size := be32(entries[4:]), be32(entries[8:])
		if from+size > int64(len(grey)) || size > maxProfile/2 {
			return nil
		}
		curve := grey[from : from+size]
		tags := []iccTag{
			{"desc", iccText("Grey as sRGB")},
			{"cprt", iccText("No copyright")},
			{"wtpt", xyzOf("\x00\x00\xF6\xD6\x00\x01\x00\x00\x00\x00\xD3\x2D")},
			{"rTRC", curve},
			{"gTRC", curve},
			{"bTRC", curve},
		}
		for n, name := range []string{"rXYZ", "gXYZ", "bXYZ"} {
			tags = append(tags, iccTag{name, xyzOf(srgbColorants[n])})
		}
		return displayProfile(tags)
	}
	return nil
}

// xyzOf returns an XYZType of numbers (ICC.1:2022, 10.31).
func xyzOf(numbers string) []byte { return []byte("XYZ \x00\x00\x00\x00" + numbers) }

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
	toCones := bradford
	back, _ := bradford.inverse()
	from, to := toCones.of(white), toCones.of(whiteD50)
	adapt := back.times(matrix{{to[0] / from[0]}, {0, to[1] / from[1]}, {0, 0, to[2] / from[2]}}).times(toCones)
	share := toPrimaries.of(white)
	colorants := adapt.times(primaries).times(matrix{{share[0]}, {0, share[1]}, {0, 0, share[2]}}).transposed()

	curve, ok := appendFixed([]byte("para\x00\x00\x00\x00\x00\x00\x00\x00"), exponent)
	if !ok {
		return nil
	}
	tags := []iccTag{
		{"desc", iccText("Gamma of a PNG")},
		{"cprt", iccText("No copyright")},
		{"rTRC", curve},
		{"gTRC", curve},
		{"bTRC", curve},
	}
	for i, v := range []vector{whiteD50, colorants[0], colorants[1], colorants[2]} {
		data, ok := appendFixed([]byte("XYZ \x00\x00\x00\x00"), v[:]...)
		if !ok {
			return nil
		}
		tags = append(tags, iccTag{[]string{"wtpt", "rXYZ", "gXYZ", "bXYZ"}[i], data})
	}
	return displayProfile(tags)
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

// displayProfile returns a profile of RGB colours (ICC.1:2022, 7.2 and 7.3). Equal neighbours share
// their data.
func displayProfile(tags []iccTag) []byte {
	const header = 128
	b := make([]byte, header)
	copy(b[8:], "\x04\x30\x00\x00mntrRGB XYZ ")
	copy(b[36:], "acsp")
	white, _ := appendFixed(nil, whiteD50[:]...)
	copy(b[68:], white)
	b = binary.BigEndian.AppendUint32(b, uint32(len(tags)))
	at := len(b) + 12*len(tags)
	var data []byte
	for i, tag := range tags {
		b = append(b, tag.name...)
		if i > 0 && bytes.Equal(tag.data, tags[i-1].data) {
			b = append(b, b[len(b)-12:len(b)-4]...)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(at+len(data)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(tag.data)))
		data = append(data, tag.data...)
		data = append(data, make([]byte, -len(data)&3)...)
	}
	b = slices.Concat(b, data)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}
