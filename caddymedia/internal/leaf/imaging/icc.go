package imaging

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/icc"
)

// colorProfile is an ICC profile of an image. The zero value is none.
type colorProfile struct {
	space string // as in the header of the profile
	data  []byte // nil if it is larger than maxProfile
	parts []span // of the file, which hold it
}

// newProfile returns the profile that data begins, or the zero value if it has no ICC header. data
// is the whole profile unless large is set.
func newProfile(data []byte, large bool, parts ...span) colorProfile {
	p := colorProfile{space: icc.Space(data), parts: parts}
	if p.space == "" {
		return colorProfile{}
	}
	if !large {
		p.data = data
	}
	return p
}

// setProfile sets the profile of pixels of a colour space, and reports whether it is one of them.
// As in browsers, a profile of another space is ignored, except that grey pixels may have an RGB
// profile. Other files get a profile only if it is a small one of RGB. Otherwise the pixels become
// those of sRGB. So do grey ones, since a grey JPEG with an RGB profile is not read by all
// programs.
func (i *Info) setProfile(p colorProfile, pixels string) bool {
	suits := p.space != "" && (p.space == pixels || p.space == icc.RGB && pixels == icc.Grey)
	switch {
	case suits && pixels == icc.RGB && p.data != nil:
		i.Profile = p.data
	case suits:
		i.colors.profile = p.parts
	}
	return suits
}

// foreignColors describes colours that other files do not get. The zero value describes none.
type foreignColors struct {
	profile []span // parts of the file, which hold an ICC profile
	display *icc.Display
}

// Converts reports whether the pixels have colours that another file cannot have, so that
// [Info.ToSRGB] converts them.
func (i Info) Converts() bool { return i.colors.profile != nil || i.colors.display != nil }

// ColorMemory returns about the most bytes needed by [Info.ToSRGB] and its conversion.
func (i Info) ColorMemory() int64 {
	if i.colors.profile == nil {
		return 0
	}
	return icc.Memory
}

// ToSRGB returns the conversion of the decoded pixels to sRGB. It returns nil if none is needed, or
// if the description of the colours is damaged: browsers then ignore it. r must be the file that
// Info describes. The error is a failure of r.
func (i Info) ToSRGB(r io.ReadSeeker) (*icc.Transform, error) {
	switch {
	case i.colors.display != nil:
		t, _ := i.colors.display.Transform()
		return t, nil
	case i.colors.profile == nil:
		return nil, nil
	}
	parts := &stripReader{in: r, layout: layout{spans: i.colors.profile}}
	profile := readProfile(parts, i.Format == PNG)
	if parts.err != nil && !errors.Is(parts.err, io.EOF) {
		return nil, parts.err
	}
	t, _ := icc.Parse(profile)
	return t, nil
}

// readProfile reads a profile, which is compressed in a PNG. It returns nil for a damaged one.
func readProfile(in io.Reader, compressed bool) []byte {
	if compressed {
		z, err := zlib.NewReader(in)
		if err != nil {
			return nil
		}
		in = z
	}
	profile, err := io.ReadAll(io.LimitReader(in, icc.MaxSize+1))
	if err != nil {
		return nil
	}
	return profile
}

// pngColors are the colour chunks of a PNG (W3C PNG, 11.3.2). Without them its colours are those of
// sRGB.
type pngColors struct {
	cicp    []byte // nil if there is none
	profile colorProfile
	srgb    bool
	gamma   []byte
	chroma  []byte
}

// describe sets the colours. cICP comes before a profile, a profile before sRGB, and sRGB before
// gAMA and cHRM (W3C PNG, 4.3).
func (c *pngColors) describe(i *Info, grey bool) {
	pixels := icc.RGB
	if grey {
		pixels = icc.Grey
	}
	switch {
	case c.cicp == nil:
		if !i.setProfile(c.profile, pixels) && !c.srgb {
			i.colors.display = c.display()
		}
	case string(c.cicp) != cicpSRGB:
		if i.colors.display = videoColors(c.cicp); i.colors.display == nil {
			i.ColorLoss = "it has colours of video (cICP)"
		}
	}
}

// cicpSRGB are the primaries and the curve of sRGB as RGB in the full range (ITU-T H.273).
const cicpSRGB = "\x01\x0d\x00\x01"

// videoColors returns the colours of a cICP chunk, or nil for those of a high dynamic range and
// others that no display has.
func videoColors(cicp []byte) *icc.Display {
	d, gamma := icc.SRGB, map[byte]float64{4: 2.2, 5: 2.8, 8: 1, 13: 0}
	switch cicp[0] {
	case 1:
	case 9: // BT.2020
		d.Red, d.Green, d.Blue = icc.Point{X: 0.708, Y: 0.292}, icc.Point{X: 0.17, Y: 0.797}, icc.Point{X: 0.131, Y: 0.046}
	case 12: // Display P3
		d.Red, d.Green = icc.Point{X: 0.68, Y: 0.32}, icc.Point{X: 0.265, Y: 0.69}
	default:
		return nil
	}
	g, known := gamma[cicp[1]]
	if !known || string(cicp[2:]) != cicpSRGB[2:] {
		return nil
	}
	d.Gamma = g
	return &d
}

// display returns the colours that gAMA and cHRM describe, or nil without gAMA. Like browsers it
// ignores cHRM alone, and numbers that libpng refuses.
func (c *pngColors) display() *icc.Display {
	const unit = 100_000
	if c.gamma == nil {
		return nil
	}
	d := icc.SRGB
	d.Gamma = unit / float64(be32(c.gamma))
	if c.chroma != nil {
		for i, p := range []*icc.Point{&d.White, &d.Red, &d.Green, &d.Blue} {
			*p = icc.Point{X: float64(be32(c.chroma[8*i:])) / unit, Y: float64(be32(c.chroma[8*i+4:])) / unit}
		}
	}
	if d.Gamma < 0.01 || d.Gamma > 100 {
		return nil
	}
	return &d
}

// maxProfile is the largest ICC profile that is copied into another file. It is held for the whole
// request, so 200 images of a request hold 12.5 MiB. Most have 0.5 to 4 KiB. Those of scanners and
// printers have up to some megabytes.
const maxProfile = 64 << 10

// iccPrefix begins the APP2 segments of a JPEG that hold a profile (ICC.1:2022, annex B.4).
const iccPrefix = "ICC_PROFILE\x00"

// iccParts joins a profile that is split over the segments of a JPEG.
type iccParts struct {
	parts  [][]byte // by number, from 0; nil where one is missing
	spans  []span   // of the file, by number
	size   int
	large  bool // only the header remains of the parts
	broken bool
}

// add adds the data of a segment after the prefix, which ends at an offset of the file: the number
// of the part (from 1), the number of parts, the part.
func (c *iccParts) add(b []byte, end int64) {
	if c.broken {
		return
	}
	if c.broken = !c.fits(b); c.broken {
		c.parts = nil
		return
	}
	if c.parts == nil {
		c.parts, c.spans = make([][]byte, b[1]), make([]span, b[1])
	}
	at, part := b[0]-1, b[2:]
	c.spans[at] = span{end - int64(len(part)), end}
	if c.size += len(part); c.size > maxProfile {
		c.large = true
	}
	if c.large {
		part = part[:min(len(part), icc.HeaderSize)]
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
	return newProfile(slices.Concat(c.parts...), c.large, c.spans...)
}

// inflateProfile returns the profile in the data of an iCCP chunk (W3C PNG, section 11.3.2.3),
// which is at an offset of the file and has a size. The data is a name, a zero byte, the
// compression method (always 0) and the compressed profile. It may be only the start of the chunk.
func inflateProfile(data []byte, offset, size int64) colorProfile {
	_, rest, ok := bytes.Cut(data, []byte{0})
	if !ok || len(rest) == 0 || rest[0] != 0 {
		return colorProfile{}
	}
	part := span{offset + int64(len(data)-len(rest)) + 1, offset + size}
	z, err := zlib.NewReader(bytes.NewReader(rest[1:]))
	if err != nil {
		return colorProfile{}
	}
	profile, err := io.ReadAll(io.LimitReader(z, maxProfile+1))
	cut := int64(len(data)) < size && errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && !cut {
		return colorProfile{}
	}
	return newProfile(profile, cut || len(profile) > maxProfile, part)
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
