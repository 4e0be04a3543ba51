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
func walkPNG(s *source, opts Options, info *Info) error {
	sig, err := s.take(len(pngSignature))
	if err != nil {
		return err
	}
	if string(sig) != pngSignature {
		return errPNG
	}
	info.keep(0, int64(len(pngSignature)))
	c := pngChunks{info: info, frames: frameSum{opts: opts}}
	for range maxBlocks {
		done, err := c.next(s)
		if err != nil {
			return err
		}
		if done {
			c.finish(s.offset())
			return nil
		}
	}
	return tooLargef("the PNG picture has too many chunks")
}

// pngChunks is what is known of the chunks read so far.
type pngChunks struct {
	info                  *Info
	frames                frameSum
	header, palette, data bool
	grey                  bool
	exif, iccp            bool
	colors                pngColors
	firstData             int    // the place before the first IDAT
	late                  []byte // a chunk to go there
}

// next reads one chunk and tells whether it was the last.
func (c *pngChunks) next(s *source) (done bool, err error) {
	at := s.offset()
	head, err := s.take(8)
	if err != nil {
		return false, err
	}
	size, kind := be32(head), [4]byte(head[4:])
	if size > 1<<31-1 {
		return false, errPNG
	}
	if _, known := keptChunks[string(kind[:])]; isCritical(kind) && !known { // W3C PNG 5.4: who does not know it cannot show the picture
		return false, png.UnsupportedError("critical chunk")
	}
	kept, err := c.look(s, kind, size)
	if err != nil {
		return false, err
	}
	if !c.header {
		return false, errPNG
	}
	if most := c.frames.opts.MaxChunk; size > most && !holdsPixels(kind) {
		return false, tooLargef("a chunk of the PNG picture that holds no pixels has %s bytes, at most %s are allowed",
			thousands(size), thousands(most))
	}
	if err := skipChunk(s, kind, size); err != nil {
		return false, err
	}
	if kept {
		c.info.keep(at, s.offset())
	}
	return string(kind[:]) == "IEND", nil
}

// finish notes what only the last chunk completes.
func (c *pngChunks) finish(end int64) {
	c.info.End = end
	c.info.Frames = max(1, c.frames.count)
	c.info.FramePixels = c.frames.pixels
	c.colors.describe(c.info, c.grey)
	if c.late != nil {
		c.info.insert(c.firstData, c.late)
	}
}

// isCritical tells whether no decoder can do without the chunk: its first letter is upper case (W3C PNG 5.4).
func isCritical(kind [4]byte) bool { return kind[0]&0x20 == 0 }

// holdsPixels tells whether the chunk is a part of the compressed pixels, whose size the picture decides.
func holdsPixels(kind [4]byte) bool { return string(kind[:]) == "IDAT" || string(kind[:]) == "fdAT" }

// skipChunk skips the data of a chunk and checks the checksum of a critical one (upper case first letter). A wrong
// checksum of another chunk is left to the decoder: browsers and libpng ignore the chunk, Go's decoder refuses the
// picture.
func skipChunk(s *source, kind [4]byte, size int64) error {
	critical := isCritical(kind)
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
