package imaging

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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

// pngColors are the colour chunks of a PNG that count (W3C PNG, 11.3.2). Without them its colours
// are those of sRGB, whatever gAMA and cHRM say.
type pngColors struct {
	cicp    []byte // nil if there is none
	profile colorProfile
}

// describe sets the colours. cICP comes before a profile (W3C PNG, 4.3).
func (c *pngColors) describe(i *Info, grey bool) {
	pixels := spaceRGB
	if grey {
		pixels = spaceGrey
	}
	switch {
	case c.cicp == nil:
		i.setProfile(c.profile, pixels)
	case string(c.cicp) != "\x01\x0d\x00\x01": // the primaries and the curve of sRGB, full range
		i.ColorLoss = "it has colours of video (cICP)"
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

// whiteD50 is the white of a profile (s15Fixed16; ICC.1:2022, 7.2.16).
const whiteD50 = "\x00\x00\xF6\xD6\x00\x01\x00\x00\x00\x00\xD3\x2D"

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
			{"wtpt", xyzOf(whiteD50)},
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
	copy(b[68:], whiteD50)
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
