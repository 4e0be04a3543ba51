package imaging

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"slices"
	"sync"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/icc"
)

// Markers of ITU-T T.81, table B.1.
const (
	jpegSOF0  = 0xC0
	jpegSOF2  = 0xC2
	jpegDHT   = 0xC4
	jpegJPG   = 0xC8
	jpegDAC   = 0xCC
	jpegSOF15 = 0xCF
	jpegRST0  = 0xD0
	jpegRST7  = 0xD7
	jpegSOI   = 0xD8
	jpegEOI   = 0xD9
	jpegSOS   = 0xDA
	jpegDQT   = 0xDB
	jpegDNL   = 0xDC
	jpegDRI   = 0xDD
	jpegEXP   = 0xDF
	jpegAPP0  = 0xE0
	jpegAPP15 = 0xEF
	jpegCOM   = 0xFE
)

const (
	// maxStray limits the stray bytes between segments. Some are allowed, because decoders skip
	// them with a warning.
	maxStray = 64 << 10
	// maxScans limits the scans. A progressive image has about ten. A decoder visits the whole
	// image for every scan, even for one of a few bytes.
	maxScans = 200
	// maxVisits limits how often the pixels of the largest allowed image are visited.
	maxVisits = 20
)

var errJPEG = errors.New("not the structure of a JPEG")

// walkJPEG goes from marker to marker (ITU-T T.81, annex B) to the end of the image.
func walkJPEG(s *source, opts Options, info *Info) error {
	j := jpegSegments{info: info, strip: opts.Strip}
	if err := j.walk(s); err != nil || info.header {
		return err
	}
	return j.finish(s)
}

// walk goes over an image, from the marker that begins it to the one that ends it, or over its
// header.
func (j *jpegSegments) walk(s *source) error {
	start, err := s.next(2)
	if err != nil {
		return err
	}
	if start[0] != 0xFF || start[1] != jpegSOI {
		return errJPEG
	}
	j.info.keep(s.offset()-2, s.offset())
	j.info.view.keep(s.offset()-2, s.offset())
	err = walkBlocks(JPEG, "segments", func() (done bool, err error) {
		done, err = j.next(s)
		return done || j.info.header && j.framed, err
	})
	if err != nil {
		return err
	}
	j.info.scans, j.info.HDR = j.scans, j.claimsGainMap()
	space := map[int]string{1: icc.Grey, 3: icc.RGB, 4: icc.CMYK}[j.info.Components]
	j.info.setProfile(j.icc.join(), space)
	if j.info.header {
		return nil
	}
	if !j.framed {
		return errJPEG
	}
	if !j.drawn() {
		return contentErrorf("the JPEG image is damaged: a scan is missing")
	}
	j.info.End = s.offset()
	return nil
}

// jpegSegments is the state of a walk over segments.
type jpegSegments struct {
	info   *Info
	stray  int64
	scans  int
	inScan bool
	framed bool
	// components are those of the frame header.
	components []jpegComponent
	renamed    bool   // a decoder sees other names of the components
	tables     uint16 // the quantization tables so far, one bit each
	huffman    bool   // there are Huffman tables
	restarts   bool   // scans have restart markers
	adobe      bool
	exif       bool
	jfif       bool
	icc        iccParts
	hidden     bool // a decoder does not see the segment

	strip   StripMode
	second  bool // this image is not the first of its file
	gainMap bool // it is a gain map
	// Parts whose fate depends on the whole file.
	xmp, mpf    heldSegment
	iso         []int // of a gain map in the first image
	credentials []int
}

// jpegComponent is a component of the image.
type jpegComponent struct {
	name, sampling, table byte
	begun                 bool // a scan has coefficients of it
	drawn                 bool // a scan has its first coefficient
}

// drawn reports whether no component is without a scan that begins at the first coefficient.
func (j *jpegSegments) drawn() bool {
	return !slices.ContainsFunc(j.components, func(c jpegComponent) bool { return !c.drawn })
}

// show lets a decoder see data, in the place of the segment that is next if hidden is set.
func (j *jpegSegments) show(data []byte) { j.info.view.insert(j.info.view.mark(), data) }

// next reads the bytes before the next marker, and its segment. done reports whether it was the
// last.
func (j *jpegSegments) next(s *source) (done bool, err error) {
	from := s.offset()
	marker, skipped, err := nextMarker(s)
	if err != nil {
		return false, err
	}
	at := from + skipped
	j.info.view.keep(from, at)
	if j.inScan {
		j.info.keep(from, at)
	} else {
		j.stray += skipped
	}
	if j.stray > maxStray || marker == jpegSOI || marker == jpegEOI && j.scans == 0 {
		return false, errJPEG
	}
	kept := true
	if marker != jpegEOI {
		if kept, err = j.segment(s, marker); err != nil {
			return false, err
		}
	}
	if kept {
		j.info.keep(at, s.offset())
	}
	if !j.hidden {
		j.info.view.keep(at, s.offset())
	}
	j.hidden = false
	return marker == jpegEOI, nil
}

// segment reads one segment and reports whether it remains without metadata.
func (j *jpegSegments) segment(s *source, marker byte) (kept bool, err error) {
	b, err := s.next(2)
	if err != nil {
		return false, err
	}
	n := be16(b) - 2
	if n < 0 && marker >= jpegAPP0 { // libjpeg ignores such a segment of metadata
		n, j.hidden = 0, true
	}
	if n < 0 {
		return false, errJPEG
	}
	if kept, err = j.inspect(s, marker, n); err != nil {
		return false, err
	}
	if _, err = s.Discard(n); err != nil {
		return false, err
	}
	if j.inScan = marker == jpegSOS; j.inScan {
		j.scans++
	}
	if j.scans > maxScans {
		return false, tooLargef("the JPEG image has more than %d scans", maxScans)
	}
	return kept, nil
}

// nextMarker consumes the next marker. skipped is the number of bytes before it: scan data or stray
// bytes. Escaped bytes (FF 00), fill bytes (FF FF) and restart markers do not count as markers
// here.
func nextMarker(s *source) (marker byte, skipped int64, err error) {
	for {
		w, err := s.window(2)
		if err != nil {
			return 0, skipped, err
		}
		i := 0
		for i < len(w)-1 {
			if w[i] != 0xFF {
				j := bytes.IndexByte(w[i:len(w)-1], 0xFF)
				if j < 0 {
					i = len(w) - 1
					break
				}
				i += j
			}
			switch m := w[i+1]; {
			case m == 0xFF:
				i++
			case m == 0, jpegRST0 <= m && m <= jpegRST7:
				i += 2
			default:
				_, err = s.Discard(i + 2)
				return m, skipped + int64(i), err
			}
		}
		skipped += int64(i)
		if _, err := s.Discard(i); err != nil {
			return 0, skipped, err
		}
	}
}

// jfifSize is the length of a JFIF segment without a thumbnail (JFIF 1.02), without the length
// field.
const jfifSize = 14

// inspect records the properties in a segment of n bytes and reports whether the image needs it.
// It consumes nothing. Segments that no standard requires for decoding are dropped, since they may
// contain anything.
func (j *jpegSegments) inspect(s *source, marker byte, n int) (kept bool, err error) {
	switch {
	case marker >= jpegAPP0:
		return j.application(s, marker, n)
	case marker == jpegSOS:
		return true, j.scan(s, n)
	case marker == jpegDQT:
		return true, j.quantization(s, n)
	case marker == jpegDRI && n == 2:
		b, err := s.Peek(n)
		j.restarts = err == nil && be16(b) > 0
		return true, err
	case marker == jpegDNL: // browsers and libjpeg ignore it
		j.hidden = true
		return true, nil
	case marker == jpegDHT:
		j.huffman = true
		return true, nil
	case marker == jpegJPG, marker == jpegDAC, jpegSOF15 < marker && marker <= jpegEXP:
		return true, nil
	case jpegSOF0 <= marker && marker <= jpegSOF15:
		return true, j.frame(s, marker, n)
	}
	return false, nil
}

// frame reads the first frame header (ITU-T T.81, B.2.2): six bytes, and three for each component,
// with its name, its sampling factors and its quantization table. Go's decoder checks it. A larger
// factor makes a larger plane.
func (j *jpegSegments) frame(s *source, marker byte, n int) error {
	if j.framed {
		return nil
	}
	b, err := s.Peek(min(n, 6+3*4))
	if err != nil {
		return err
	}
	j.framed, b = true, bytes.Clone(b)
	for i := 6; i+3 <= len(b); i += 3 {
		j.renamed = j.renamed || j.component(b[i], nil) >= 0
		j.components = append(j.components, jpegComponent{name: b[i], sampling: b[i+1], table: b[i+2]})
	}
	if j.renamed {
		for i := range j.components {
			b[6+3*i] = byte(i + 1)
		}
		j.hidden = true
		j.show(jpegSegment(marker, "", b))
	}
	cfg, err := jpegConfig(marker, b)
	if err != nil {
		return refuseFrame(marker, b, err)
	}
	i := j.info
	i.Width, i.Height = cfg.Width, cfg.Height
	i.Progressive, i.Components = marker == jpegSOF2, len(j.components)
	i.Samples = jpegSamples(b[6:])
	i.RGB = i.RGB || cfg.ColorModel == color.RGBAModel
	return nil
}

// jpegConfig returns what Go's decoder reads in a frame header, after all its checks of it.
func jpegConfig(marker byte, frame []byte) (image.Config, error) {
	header := append([]byte{0xFF, jpegSOI}, jpegSegment(marker, "", frame)...)
	return jpeg.DecodeConfig(bytes.NewReader(append(header, 0xFF, jpegSOS, 0, 2)))
}

// component returns the number of the first component of that name that is not one of others, or
// -1.
func (j *jpegSegments) component(name byte, others []int) int {
	for i, c := range j.components {
		if c.name == name && !slices.Contains(others, i) {
			return i
		}
	}
	return -1
}

// jpegSamples returns [Info.Samples] for the components of a frame header. For sampling factors
// that no form of image.YCbCr has, Go's decoder returns full chroma, from Go 1.27 on.
func jpegSamples(components []byte) int {
	sum, across, down := 0, 1, 1
	for b := range slices.Chunk(components, 3) {
		h, v := int(b[1]>>4), int(b[1]&15)
		sum, across, down = sum+h*v, max(across, h), max(down, v)
	}
	samples := (2*sum + across*down - 1) / (across * down)
	if len(components) == 3*3 {
		luma, chroma := components[1], components[4]
		ratio := [2]int{across / int(chroma>>4), down / int(chroma&15)}
		forms := [][2]int{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {4, 1}, {4, 2}}
		if chroma != components[7] || luma != byte(across<<4|down) || !slices.Contains(forms, ratio) {
			return max(samples, 6)
		}
	}
	return samples
}

// refuseFrame returns the error for a frame header that Go's decoder refuses. b is its data.
func refuseFrame(marker byte, b []byte, cause error) error {
	if _, unknown := errors.AsType[jpeg.UnsupportedError](cause); !unknown {
		return cause
	}
	feature := "an unusual sampling of its colours"
	switch {
	case marker&3 == 3:
		feature = "lossless coding"
	case marker > jpegJPG:
		feature = "arithmetic coding"
	case marker > jpegSOF2:
		feature = "hierarchical coding"
	case len(b) > 0 && b[0] != 8:
		feature = fmt.Sprintf("%d bits for a sample", b[0])
	case len(b) < 6 || b[5] != 1 && b[5] != 3 && b[5] != 4:
		feature = "an unusual number of colours"
	}
	return contentErrorf("the JPEG image has %s: save it again as an ordinary JPEG", feature)
}

// quantization records the tables that a segment defines (ITU-T T.81, B.2.4.1): precision and
// number, 64 values of one or two bytes.
func (j *jpegSegments) quantization(s *source, n int) error {
	b, err := s.Peek(n)
	// libjpeg keeps the tables of the first scans, Go's decoder would use the last ones.
	j.hidden = j.framed && !slices.ContainsFunc(j.components, func(c jpegComponent) bool { return !c.begun })
	for len(b) > 0 {
		size := 1 + 64<<min(b[0]>>4, 1)
		if len(b) < size {
			break // refused later, by the decoder
		}
		j.tables |= 1 << (b[0] & 15)
		b = b[size:]
	}
	return err
}

// scan records the components of a scan header (ITU-T T.81, B.2.3). A component without a scan that
// begins at the first coefficient is flat, however many scans refine it: a decoder visits the whole
// image for a few bytes. In a sequential image each scan is complete. The quantization table of a
// component must precede its first scan, as in libjpeg.
func (j *jpegSegments) scan(s *source, n int) error {
	b, err := s.Peek(n)
	if err != nil || n < 1 || n <= 1+2*int(b[0]) {
		return err
	}
	if j.scans == 0 {
		j.complete()
	}
	first := !j.info.Progressive || b[1+2*int(b[0])] == 0
	shown, found := bytes.Clone(b), []int(nil)
	for i := 1; i <= 2*int(b[0]); i += 2 {
		n := j.component(b[i], found) // as in libjpeg, if several components have one name
		if n < 0 {
			return nil // refused later, by the decoder
		}
		c := &j.components[n]
		if !c.begun && j.tables&(1<<c.table) == 0 {
			return contentErrorf("the JPEG image is damaged: a quantization table is missing")
		}
		c.begun, c.drawn = true, c.drawn || first
		found, shown[i] = append(found, n), byte(n+1)
	}
	if j.renamed {
		j.hidden = true
		j.show(jpegSegment(jpegSOS, "", shown))
	}
	single := len(found) == 1 && j.components[found[0]].sampling != 0x11 && len(j.components) > 1
	j.info.restarts = j.info.restarts || j.restarts && single
	return nil
}

// complete adds, for the decoder, what other decoders assume in an image without: the standard
// Huffman tables, as in frames of Motion JPEG, and that four colours are CMYK.
func (j *jpegSegments) complete() {
	if !j.huffman && !j.info.Progressive {
		j.show(standardTables())
	}
	if !j.adobe && j.info.Components == 4 {
		adobe := "Adobe\x00\x64\x00\x00\x00\x00\x00"
		j.show(jpegSegment(jpegAPP0+14, adobe, []byte{}))
	}
}

// standardTables returns the segment with the Huffman tables of ITU-T T.81, K.3. Go's encoder
// writes them.
var standardTables = sync.OnceValue(func() []byte {
	var file bytes.Buffer
	_ = jpeg.Encode(&file, image.NewRGBA(image.Rect(0, 0, 1, 1)), nil) // a bytes.Buffer takes everything
	b := file.Bytes()
	b = b[bytes.Index(b, []byte{0xFF, jpegDHT}):]
	return b[:2+be16(b[2:])]
})

// application inspects an application segment or a comment. Readers use only those before the first
// scan, except that Go's decoder obeys JFIF and Adobe segments anywhere.
func (j *jpegSegments) application(s *source, marker byte, n int) (kept bool, err error) {
	number := marker - jpegAPP0
	switch number {
	case 0, 1, 2, 11, 13, 14:
	default:
		return marker == jpegCOM && j.describes(), nil
	}
	b, err := s.Peek(n)
	if err != nil {
		return false, err
	}
	switch number {
	case 0:
		return j.keepJFIF(b), nil
	case 1:
		return j.keepEXIF(b) || j.keepXMP(s, b), nil
	case 2:
		return j.keepColors(s, b), nil
	case 11:
		if j.describes() && bytes.HasPrefix(b, []byte(credentialsPrefix)) {
			j.credentials = append(j.credentials, j.hold(s, b))
		}
		return false, nil
	case 13:
		resources, ok := bytes.CutPrefix(b, []byte(photoshopPrefix))
		return ok && j.describes() && j.rewrite(marker, b, photoshopPrefix, withoutPlaces(resources)), nil
	}
	return j.keepAdobe(b), nil
}

// keepColors inspects an APP2 segment: a part of a profile, or of the description of a gain map.
func (j *jpegSegments) keepColors(s *source, b []byte) (kept bool) {
	switch {
	case j.scans > 0:
	case bytes.HasPrefix(b, []byte(iccPrefix)):
		j.icc.add(b[len(iccPrefix):], s.offset()+int64(len(b)))
		return true
	case bytes.HasPrefix(b, []byte(isoPrefix)) && len(b) <= maxISO:
		if j.second {
			j.gainMap = true
			return true
		}
		j.iso = append(j.iso, j.hold(s, b))
	case bytes.HasPrefix(b, []byte(mpfPrefix)) && j.mpf.data == nil && !j.second:
		j.mpf = heldSegment{j.hold(s, b), s.offset(), bytes.Clone(b)}
	}
	return false
}

// keepAdobe reports whether an APP14 segment remains. It states how the components encode colours
// (0: no transform). A segment with more than its twelve bytes is replaced by one without the rest.
func (j *jpegSegments) keepAdobe(b []byte) bool {
	const size = 12
	if !bytes.HasPrefix(b, []byte("Adobe")) || len(b) < size {
		return false
	}
	j.adobe = true
	j.info.RGB = j.info.RGB || b[size-1] == 0 && j.info.Components != 4
	if len(b) > size {
		j.info.insert(j.info.mark(), append([]byte{0xFF, jpegAPP0 + 14, 0, 2 + size}, b[:size]...))
	}
	return len(b) == size
}

// keepJFIF reports whether an APP0 segment remains. One with a thumbnail is replaced by one
// without.
func (j *jpegSegments) keepJFIF(b []byte) bool {
	if !bytes.HasPrefix(b, []byte("JFIF\x00")) {
		return false
	}
	first := !j.jfif
	j.jfif = true
	if first && len(b) > jfifSize {
		own := append([]byte{0xFF, jpegAPP0, 0, 2 + jfifSize}, b[:jfifSize-2]...)
		j.info.insert(j.info.mark(), append(own, 0, 0)) // the sides of the thumbnail
	}
	return len(b) <= jfifSize
}

// keepEXIF reads the orientation from the first EXIF segment. It reports whether the segment
// remains. Otherwise one with the rest of it replaces it at the same position, so that readers find
// the orientation where they did.
func (j *jpegSegments) keepEXIF(b []byte) bool {
	if !bytes.HasPrefix(b, []byte(exifPrefix[:5])) || len(b) < len(exifPrefix) || j.exif || j.scans > 0 || j.second {
		return false
	}
	tiff := b[len(exifPrefix):]
	j.exif = true
	j.info.Orientation = parseOrientation(tiff)
	return j.rewrite(jpegAPP0+1, b, exifPrefix, j.strip.exif(tiff, j.info.Orientation))
}
