package imaging

import (
	"errors"
	"math"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
)

// Block introducers of GIF89a, appendix A.
const (
	gifExtension = 0x21
	gifFrame     = 0x2C
	gifTrailer   = 0x3B
)

// Labels of extensions.
const (
	gifText        = 0x01
	gifControl     = 0xF9
	gifComment     = 0xFE
	gifApplication = 0xFF
)

var errGIF = errors.New("not the structure of a GIF")

// walkGIF goes over the blocks of a GIF (GIF89a, sections 17 to 27) to its trailer. It does not
// decompress frames.
func walkGIF(s *source, opts Options, info *Info) error {
	screen, err := s.next(13)
	if err != nil {
		return err
	}
	if v := string(screen[:6]); v != "GIF87a" && v != "GIF89a" {
		return errGIF
	}
	width, height := le16(screen[6:]), le16(screen[8:])
	if err := skipColors(s, screen[10]); err != nil {
		return err
	}
	info.keep(0, s.offset())
	frames := frameSum{opts: opts}
	var credentials []int
	return walkBlocks(GIF, "blocks", func() (done bool, err error) {
		at := s.offset()
		kind, err := s.ReadByte()
		if err != nil {
			return false, err
		}
		kept, most, claims := true, int64(math.MaxInt64), false
		switch kind {
		case gifExtension:
			most = opts.MaxChunk
			claims = opts.Strip == StripLocation && hasCredentials(s)
			kept, err = gifExtensionHeader(s, opts.Strip)
		case gifFrame:
			err = gifFrameHeader(s, width, height, &frames)
		case gifTrailer:
			if frames.count == 0 {
				return false, errGIF
			}
			info.keep(at, s.offset())
			info.End = s.offset()
			frames.describe(info)
			info.release(credentials)
			return true, nil
		default:
			return false, errGIF
		}
		if err == nil {
			err = skipSubBlocks(s, most)
		}
		switch {
		case err != nil:
			return false, err
		case claims:
			credentials = append(credentials, info.hold(at, s.offset()))
		case kept:
			info.keep(at, s.offset())
		}
		return false, nil
	})
}

// describe records the frames of a GIF.
func (f *frameSum) describe(info *Info) {
	info.Frames = f.count
	if f.count > 1 {
		info.Animated = true
		info.FramePixels = f.pixels
	}
}

// hasCredentials reports whether an extension has credentials of C2PA.
func hasCredentials(s *source) bool {
	b, _ := s.Peek(10) // shorter at the end of the file
	return string(b) == "\xFF\x0BC2PA_GIF"
}

// gifExtensionHeader reads the label of an extension and reports whether it remains. Graphic
// control, animation loops and colour profiles do, and comments in the mode [StripLocation]. XMP
// and unknown extensions are dropped. So is plain text, which no browser renders. The control
// before it stays, because decoders that skip the text apply it to the next frame.
func gifExtensionHeader(s *source, mode StripMode) (kept bool, err error) {
	label, err := s.ReadByte()
	if err != nil {
		return false, err
	}
	head, err := s.Peek(1)
	if err != nil {
		return false, err
	}
	// Go's decoder assumes these two sizes. With other sizes it would see other blocks than the
	// walk, and frames that were not counted.
	if label == gifText && head[0] != 12 || label == gifApplication && head[0] == 0 {
		return false, errGIF
	}
	switch label {
	case gifControl:
		return true, nil
	case gifComment:
		return mode == StripLocation, nil
	}
	return label == gifApplication && keptApplication(s), nil
}

// keptApplication reports whether an application extension is a loop with nothing more in it, or a
// colour profile.
func keptApplication(s *source) bool {
	b, _ := s.Peek(17) // shorter at the end of the file
	if len(b) < 17 {
		return false
	}
	switch string(b[:12]) {
	case "\x0BNETSCAPE2.0", "\x0BANIMEXTS1.0":
		return b[12] == 3 && b[13] == 1 && b[16] == 0
	case "\x0BICCRGBG1012":
		return true
	}
	return false
}

// gifFrameHeader reads an image descriptor up to the compressed data. A frame must lie within the
// screen: GIF89a section 20 demands it, and Go's decoder refuses other frames.
func gifFrameHeader(s *source, width, height int, frames *frameSum) error {
	d, err := s.next(9)
	if err != nil {
		return err
	}
	left, top, w, h, flags := le16(d), le16(d[2:]), le16(d[4:]), le16(d[6:]), d[8]
	if left+w > width || top+h > height {
		return contentErrorf("the GIF image is damaged: a frame is larger than the image")
	}
	if err := frames.add(int64(w), int64(h)); err != nil {
		return err
	}
	if err := skipColors(s, flags); err != nil {
		return err
	}
	_, err = s.ReadByte() // the LZW code size
	return err
}

// skipColors skips the colour table that flags announce: 3 bytes for each of 2 to 256 colours.
func skipColors(s *source, flags byte) error {
	if flags&0x80 == 0 {
		return nil
	}
	_, err := s.Discard(3 << (1 + flags&7))
	return err
}

// skipSubBlocks skips data sub-blocks (section 15) and the empty one that ends them. It works on
// buffered bytes because a hostile file may hold millions of sub-blocks of one byte. It refuses
// more than most bytes, length bytes included.
func skipSubBlocks(s *source, most int64) error {
	for left := most; ; {
		w, err := s.window(1)
		if err != nil {
			return err
		}
		i := 0
		for i < len(w) && w[i] != 0 {
			i += 1 + int(w[i])
		}
		last := i < len(w)
		if last {
			i++
		}
		if _, err := s.Discard(i); err != nil {
			return err
		}
		if left -= int64(i); left < 0 {
			return tooLargef("an extension of the GIF image is larger than %s", bytesize.Format(most))
		}
		if last {
			return nil
		}
	}
}
