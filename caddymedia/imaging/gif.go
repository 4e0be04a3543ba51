package imaging

import "errors"

// Block introducers of GIF89a, appendix A.
const (
	gifExtension = 0x21
	gifFrame     = 0x2C
	gifTrailer   = 0x3B
)

var errGIF = errors.New("not the structure of a GIF")

// walkGIF goes over the blocks of a GIF (GIF89a, section 17 to 27) to its trailer, without decompressing a frame.
func walkGIF(s *source, opts Options) (int, error) {
	screen, err := s.take(13)
	if err != nil {
		return 0, err
	}
	if v := string(screen[:6]); v != "GIF87a" && v != "GIF89a" {
		return 0, errGIF
	}
	width, height := le16(screen[6:]), le16(screen[8:])
	if err := skipColors(s, screen[10]); err != nil {
		return 0, err
	}
	frames := frameSum{opts: opts}
	for range maxBlocks {
		kind, err := s.ReadByte()
		if err != nil {
			return 0, err
		}
		switch kind {
		case gifExtension:
			if _, err := s.ReadByte(); err != nil { // the label
				return 0, err
			}
		case gifFrame:
			if err := gifFrameHeader(s, width, height, &frames); err != nil {
				return 0, err
			}
		case gifTrailer:
			if frames.count == 0 {
				return 0, errGIF
			}
			return frames.count, nil
		default:
			return 0, errGIF
		}
		if err := skipSubBlocks(s); err != nil {
			return 0, err
		}
	}
	return 0, tooLargef("the GIF picture has too many blocks")
}

// gifFrameHeader reads an image descriptor up to the compressed data. A frame must lie within the screen: GIF89a
// section 20 demands it, and Go's decoder refuses anything else.
func gifFrameHeader(s *source, width, height int, frames *frameSum) error {
	d, err := s.take(9)
	if err != nil {
		return err
	}
	left, top, w, h, flags := le16(d), le16(d[2:]), le16(d[4:]), le16(d[6:]), d[8]
	if left+w > width || top+h > height {
		return contentErrorf("the GIF picture is damaged: a frame is larger than the picture")
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

// skipSubBlocks skips data sub-blocks (section 15) and the empty one that ends them. It runs over the buffered bytes
// because a hostile file may hold millions of sub-blocks of one byte.
func skipSubBlocks(s *source) error {
	for {
		w, err := s.window(1)
		if err != nil {
			return err
		}
		i := 0
		for i < len(w) && w[i] != 0 {
			i += 1 + int(w[i])
		}
		if i < len(w) {
			_, err = s.Discard(i + 1)
			return err
		}
		if _, err := s.Discard(i); err != nil {
			return err
		}
	}
}
