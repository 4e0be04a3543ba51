package imaging

import (
	"bytes"
	"errors"
	"io"
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
	jpegEXP   = 0xDF
	jpegAPP0  = 0xE0
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
	if err := j.walk(s); err != nil {
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
	err = walkBlocks(JPEG, "segments", func() (done bool, err error) {
		done, err = j.next(s)
		return done || j.header && j.framed, err
	})
	if err != nil {
		return err
	}
	j.info.scans, j.info.HDR = j.scans, j.claimsGainMap()
	space := map[int]string{1: spaceGrey, 3: spaceRGB, 4: spaceCMYK}[j.info.Components]
	j.info.setProfile(j.icc.join(), space)
	if j.header {
		return nil
	}
	if len(j.undrawn) > 0 {
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
	// undrawn are the names of the components without a scan that begins at the first coefficient.
	undrawn []byte
	exif    bool
	jfif    bool
	icc     iccParts

	strip   StripMode
	header  bool // only the part up to the first frame header is read, which has the properties
	second  bool // this image is not the first of its file
	gainMap bool // it is a gain map
	// Parts whose fate depends on the whole file.
	xmp, mpf    heldSegment
	iso         []int // of a gain map in the first image
	credentials []int
}

// next reads the bytes before the next marker, and its segment. done reports whether it was the
// last.
func (j *jpegSegments) next(s *source) (done bool, err error) {
	from := s.offset()
	marker, skipped, err := nextMarker(s)
	if err != nil {
		return false, err
	}
	at := from + skipped
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
	return marker == jpegEOI, nil
}

// segment reads one segment and reports whether it remains without metadata.
func (j *jpegSegments) segment(s *source, marker byte) (kept bool, err error) {
	b, err := s.next(2)
	if err != nil {
		return false, err
	}
	n := be16(b) - 2
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
	case marker == jpegDHT, marker == jpegJPG, marker == jpegDAC, jpegSOF15 < marker && marker <= jpegEXP:
		return true, nil
	case jpegSOF0 <= marker && marker <= jpegSOF15:
		return true, j.frame(s, marker, n)
	}
	return false, nil
}

// frame reads the first frame header (ITU-T T.81, B.2.2): six bytes, and three for each component,
// with its name and its sampling factors. A larger factor makes a larger plane.
func (j *jpegSegments) frame(s *source, marker byte, n int) error {
	if j.framed || n < 6 {
		return nil
	}
	j.framed = true
	b, err := s.Peek(min(n, 18))
	if err != nil {
		return err
	}
	j.info.Progressive = marker == jpegSOF2
	j.info.Components = int(b[5])
	sum, across, down := 0, 1, 1
	for b = b[6:]; len(b) >= 3; b = b[3:] {
		j.undrawn = append(j.undrawn, b[0])
		h, v := int(b[1]>>4), int(b[1]&15)
		sum, across, down = sum+h*v, max(across, h), max(down, v)
	}
	j.info.Samples = (2*sum + across*down - 1) / (across * down)
	j.info.RGB = j.info.RGB || string(j.undrawn) == "RGB"
	return nil
}

// scan records the components of a scan header that begins at the first coefficient (ITU-T T.81,
// B.2.3). A component without such a scan is flat, however many scans refine it: a decoder visits
// the whole image for a few bytes. In a sequential image each scan is complete.
func (j *jpegSegments) scan(s *source, n int) error {
	if n < 1 {
		return nil
	}
	b, err := s.Peek(n)
	if err != nil {
		return err
	}
	if components := int(b[0]); n > 1+2*components && (!j.info.Progressive || b[1+2*components] == 0) {
		for i := range components {
			j.undrawn = bytes.ReplaceAll(j.undrawn, b[1+2*i:][:1], nil)
		}
	}
	return nil
}

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
		j.icc.add(b[len(iccPrefix):])
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
	tiff, ok := bytes.CutPrefix(b, []byte(exifPrefix))
	if !ok || j.exif || j.scans > 0 || j.second {
		return false
	}
	j.exif = true
	j.info.Orientation = parseOrientation(tiff)
	return j.rewrite(jpegAPP0+1, b, exifPrefix, j.strip.exif(tiff, j.info.Orientation))
}

// ReadHeader is [CheckImage] for an image that passed it before: it reads only the header of a
// JPEG, and does not check the rest. The result has no Profile and cannot be stripped.
func ReadHeader(r io.ReadSeeker, size int64, ext string, opts Options) (Info, error) {
	read := CheckImage
	if FormatOf(ext) == JPEG {
		read = readJPEGHeader
	}
	info, err := read(r, size, ext, opts)
	info.Profile, info.layout, info.frames = nil, layout{}, nil
	return info, err
}

func readJPEGHeader(r io.ReadSeeker, size int64, ext string, opts Options) (Info, error) {
	s, err := newSource(r)
	if err != nil {
		return Info{}, err
	}
	defer s.release()
	info := Info{Format: JPEG, Frames: 1, Orientation: Upright, End: size}
	j := jpegSegments{info: &info, header: true}
	if err := j.walk(s); err != nil {
		return Info{}, refuseRaster(s, JPEG, ext, err)
	}
	if err := info.readSize(s, ext, opts); err != nil {
		return Info{}, err
	}
	return info, nil
}
