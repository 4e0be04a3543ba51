package imaging

import (
	"errors"
	"hash/crc32"
	"image/png"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

var (
	errPNG = errors.New("not the structure of a PNG")
	// errPNGOverflow is how image/png refuses a size whose pixels would not fit its arithmetic.
	errPNGOverflow error = png.UnsupportedError("dimension overflow")
)

// walkPNG goes over the chunks of a PNG (W3C PNG, section 5) to IEND and checks the checksum of those that every
// decoder needs.
func walkPNG(s *source, opts Options) (int, error) {
	sig, err := s.take(len(pngSignature))
	if err != nil {
		return 0, err
	}
	if string(sig) != pngSignature {
		return 0, errPNG
	}
	c := pngChunks{frames: frameSum{opts: opts}}
	for range maxBlocks {
		done, err := c.next(s)
		if err != nil {
			return 0, err
		}
		if done {
			return max(1, c.frames.count), nil
		}
	}
	return 0, tooLargef("the PNG picture has too many chunks")
}

// pngChunks is what is known of the chunks read so far.
type pngChunks struct {
	frames                 frameSum
	header, data, animated bool
}

// next reads one chunk and tells whether it was the last.
func (c *pngChunks) next(s *source) (done bool, err error) {
	head, err := s.take(8)
	if err != nil {
		return false, err
	}
	size, kind := be32(head), [4]byte(head[4:])
	if size > 1<<31-1 {
		return false, errPNG
	}
	switch string(kind[:]) {
	case "IHDR":
		if c.header {
			return false, errPNG
		}
		c.header = true
	case "IDAT":
		c.data = true
	case "acTL":
		c.animated = c.animated || !c.data // W3C PNG 11.3.6.1: it counts before the first IDAT only
	case "fcTL":
		err = c.frame(s, size)
	case "IEND":
		if !c.data {
			return false, errPNG
		}
		done = true
	}
	if err != nil {
		return false, err
	}
	if !c.header {
		return false, errPNG
	}
	return done, skipChunk(s, kind, size)
}

// frame counts the frame that an fcTL chunk announces (W3C PNG, section 11.3.6.2).
func (c *pngChunks) frame(s *source, size int64) error {
	if !c.animated || size < 12 {
		return nil
	}
	b, err := s.Peek(12)
	if err != nil {
		return err
	}
	return c.frames.add(be32(b[4:])&(1<<31-1), be32(b[8:])&(1<<31-1))
}

// skipChunk skips the data of a chunk and checks the checksum of a critical one (upper case first letter). A wrong
// checksum of another chunk harms nobody: browsers and libpng ignore it.
func skipChunk(s *source, kind [4]byte, size int64) error {
	critical := kind[0]&0x20 == 0
	sum := crc32.ChecksumIEEE(kind[:])
	for size > 0 {
		w, err := s.window(1)
		if err != nil {
			return err
		}
		w = w[:min(int64(len(w)), size)]
		if critical {
			sum = crc32.Update(sum, crc32.IEEETable, w)
		}
		size -= int64(len(w))
		if _, err := s.Discard(len(w)); err != nil {
			return err
		}
	}
	stored, err := s.take(4)
	if err != nil {
		return err
	}
	if critical && be32(stored) != int64(sum) {
		return errPNG
	}
	return nil
}
