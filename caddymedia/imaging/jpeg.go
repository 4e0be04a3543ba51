package imaging

import (
	"bytes"
	"errors"
)

// Markers of ITU-T T.81, table B.1.
const (
	jpegRST0 = 0xD0
	jpegRST7 = 0xD7
	jpegSOI  = 0xD8
	jpegEOI  = 0xD9
	jpegSOS  = 0xDA
)

const (
	// maxStray bounds the bytes between segments that belong to none. Decoders skip them with a warning, so some are
	// tolerated here as well.
	maxStray = 64 << 10
	// maxScans bounds the scans. A progressive picture has about ten; a decoder visits the whole picture for every
	// one of them, however few bytes it has.
	maxScans = 200
)

var errJPEG = errors.New("not the structure of a JPEG")

// walkJPEG goes from marker to marker (ITU-T T.81, annex B) to the end of the image.
func walkJPEG(s *source, _ Options) (int, error) {
	start, err := s.take(2)
	if err != nil {
		return 0, err
	}
	if start[0] != 0xFF || start[1] != jpegSOI {
		return 0, errJPEG
	}
	stray, scans, inScan := int64(0), 0, false
	for range maxBlocks {
		marker, skipped, err := nextMarker(s)
		if err != nil {
			return 0, err
		}
		if !inScan {
			stray += skipped
		}
		if stray > maxStray || marker == jpegSOI {
			return 0, errJPEG
		}
		if marker == jpegEOI {
			if scans == 0 {
				return 0, errJPEG
			}
			return 1, nil
		}
		if err := skipSegment(s); err != nil {
			return 0, err
		}
		if inScan = marker == jpegSOS; inScan {
			scans++
		}
		if scans > maxScans {
			return 0, tooLargef("the JPEG picture has more than %d scans", maxScans)
		}
	}
	return 0, tooLargef("the JPEG picture has too many segments")
}

// skipSegment skips the length of a segment and what it counts.
func skipSegment(s *source) error {
	b, err := s.take(2)
	if err != nil {
		return err
	}
	n := be16(b)
	if n < 2 {
		return errJPEG
	}
	_, err = s.Discard(n - 2)
	return err
}

// nextMarker consumes the next marker and tells how many bytes were before it: the data of a scan, or stray bytes.
// Escaped bytes (FF 00), fill bytes (FF FF) and restart markers are no markers here.
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
