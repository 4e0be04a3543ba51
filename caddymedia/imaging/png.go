package imaging

import (
	"errors"
	"hash/crc32"
	"image/png"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

var (
	errPNG = errors.New("not the structure of a PNG")
	// errPNGOverflow is the error of image/png for a size whose pixels would overflow its
	// arithmetic.
	errPNGOverflow error = png.UnsupportedError("dimension overflow")
)

// walkPNG goes over the chunks of a PNG (W3C PNG, section 5) to IEND and verifies the checksums of
// critical chunks.
func walkPNG(s *source, opts Options, info *Info) error {
	sig, err := s.next(len(pngSignature))
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
	return tooLargef("the PNG image has too many chunks")
}

// pngChunks is the state of a walk over chunks.
type pngChunks struct {
	info                  *Info
	frames                frameSum
	header, palette, data bool
	grey                  bool
	exif, iccp            bool
	colors                pngColors
	firstData             int    // mark before the first IDAT
	late                  []byte // an EXIF chunk to insert there
	credentials           []int
}

// next reads one chunk and reports whether it was the last.
func (c *pngChunks) next(s *source) (done bool, err error) {
	at := s.offset()
	head, err := s.next(8)
	if err != nil {
		return false, err
	}
	size, kind := be32(head), [4]byte(head[4:])
	if size > 1<<31-1 {
		return false, errPNG
	}
	// W3C PNG 5.4: a decoder that does not know a critical chunk cannot show the image.
	if _, known := keptChunks[string(kind[:])]; isCritical(kind) && !known {
		return false, png.UnsupportedError("critical chunk")
	}
	kept, err := c.inspect(s, kind, size)
	if err != nil {
		return false, err
	}
	if !c.header {
		return false, errPNG
	}
	if most := c.frames.opts.MaxChunk; size > most && !holdsPixels(kind) {
		return false, tooLargef("a chunk of the PNG image that holds no pixels is larger than %s", bytesize.Format(most))
	}
	if err := skipChunk(s, kind, size); err != nil {
		return false, err
	}
	if kept {
		c.info.keep(at, s.offset())
	}
	return string(kind[:]) == "IEND", nil
}

// finish sets the fields that depend on all chunks.
func (c *pngChunks) finish(end int64) {
	c.info.End = end
	c.info.Frames = max(1, c.frames.count)
	c.info.FramePixels = c.frames.pixels
	c.colors.describe(c.info, c.grey)
	if c.late != nil {
		c.info.insert(c.firstData, c.late)
	}
	c.info.release(c.credentials)
}

// isCritical reports whether every decoder must know the chunk: its first letter is upper case (W3C
// PNG 5.4).
func isCritical(kind [4]byte) bool { return kind[0]&0x20 == 0 }

// holdsPixels reports whether the chunk is a part of the compressed pixels, whose size depends on
// the image.
func holdsPixels(kind [4]byte) bool { return string(kind[:]) == "IDAT" || string(kind[:]) == "fdAT" }

// skipChunk skips the data of a chunk and verifies the checksum of a critical one. A wrong checksum
// of another chunk is left to the decoder: browsers and libpng ignore the chunk, Go's decoder
// refuses the image.
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
	stored, err := s.next(4)
	if err != nil {
		return err
	}
	if critical && be32(stored) != int64(sum) {
		return errPNG
	}
	return nil
}
