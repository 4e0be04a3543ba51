package imaging

import (
	"bytes"
	"errors"
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
	info.scans, info.HDR = j.scans, j.claimsGainMap()
	j.describeProfile()
	return j.finish(s)
}

// walk goes over an image, from the marker that begins it to the one that ends it.
func (j *jpegSegments) walk(s *source) error {
	if err := startJPEG(s); err != nil {
		return err
	}
	j.info.keep(s.offset()-2, s.offset())
	for range maxBlocks {
		done, err := j.next(s)
		if err != nil {
			return err
		}
		if done {
			if len(j.undrawn) > 0 {
				return contentErrorf("the JPEG image is damaged: a scan is missing")
			}
			j.info.End = s.offset()
			return nil
		}
	}
	return tooLargef("the JPEG image has too many segments")
}

// startJPEG reads the marker that begins the file.
func startJPEG(s *source) error {
	start, err := s.next(2)
	if err != nil {
		return err
	}
	if start[0] != 0xFF || start[1] != jpegSOI {
		return errJPEG
	}
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
	second  bool // this image is not the first of its file
	gainMap bool // it is a gain map
	// Parts whose fate depends on the whole file.
	xmp, mpf    heldSegment
	iso         []int // of a gain map in the first image
	credentials []int
}

// describeProfile sets the profile of the segments read so far.
func (j *jpegSegments) describeProfile() {
	space := map[int]string{1: spaceGrey, 3: spaceRGB, 4: spaceCMYK}[j.info.Components]
	j.info.setProfile(j.icc.join(), space)
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
