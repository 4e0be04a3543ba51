package imaging

import (
	"errors"
	"image"
	"io"
	"math"

	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
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
	g := gifBlocks{info: info, frames: frameSum{opts: opts}}
	return g.walk(s)
}

// gifBlocks is the state of a walk over blocks.
type gifBlocks struct {
	info        *Info
	frames      frameSum
	loops       bool // it is an animation
	credentials []int
	decoder     *gifDecoder // nil if frames are only counted
}

func (g *gifBlocks) walk(s *source) error {
	screen, err := s.next(13)
	if err != nil {
		return err
	}
	if v := string(screen[:6]); v != "GIF87a" && v != "GIF89a" {
		return errGIF
	}
	g.info.Width, g.info.Height = le16(screen[6:]), le16(screen[8:])
	colors, err := readColors(s, screen[10])
	if err != nil {
		return err
	}
	if g.decoder != nil {
		g.decoder.global = palette(colors)
	}
	g.info.keep(0, s.offset())
	return walkBlocks(GIF, "blocks", func() (done bool, err error) { return g.next(s) })
}

// next reads one block and reports whether it was the last.
func (g *gifBlocks) next(s *source) (done bool, err error) {
	at := s.offset()
	kind, err := s.ReadByte()
	// As in browsers, the trailer may be missing, but not where frames may be missing with it.
	if errors.Is(err, io.EOF) && g.frames.count > 0 && !g.loops {
		g.finish(at)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	kept, claims := true, false
	switch kind {
	case gifExtension:
		claims = g.frames.opts.Strip == StripLocation && hasCredentials(s)
		kept, err = g.extension(s)
	case gifFrame:
		if err = g.frame(s); g.info.header && err == nil {
			return true, nil
		}
	case gifTrailer:
		if g.frames.count == 0 {
			return false, errGIF
		}
		g.info.keep(at, s.offset())
		g.finish(s.offset())
		return true, nil
	case 0: // browsers ignore the end of no block
		kept = false
	default:
		return false, errGIF
	}
	switch {
	case err != nil:
		return false, err
	case claims:
		g.credentials = append(g.credentials, g.info.hold(at, s.offset()))
	case kept:
		g.info.keep(at, s.offset())
	}
	return false, nil
}

// finish sets the fields that depend on all blocks.
func (g *gifBlocks) finish(end int64) {
	g.info.End = end
	g.frames.describe(g.info)
	g.info.release(g.credentials)
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

// extension reads an extension and reports whether it remains. Graphic control, animation loops and
// colour profiles do, and comments in the mode [StripLocation]. XMP and unknown extensions are
// dropped. So is plain text, which no browser renders. The control before it stays, because
// decoders that skip the text apply it to the next frame.
func (g *gifBlocks) extension(s *source) (kept bool, err error) {
	label, err := s.ReadByte()
	if err != nil {
		return false, err
	}
	switch label {
	case gifControl:
		kept = true
		if g.decoder != nil {
			err = g.decoder.setControl(s)
		}
	case gifComment:
		kept = g.frames.opts.Strip == StripLocation
	case gifApplication:
		kept = keptApplication(s)
		b, _ := s.Peek(16) // shorter at the end of the file
		g.loops = g.loops || isLoop(b)
		if g.decoder != nil && isLoop(b) {
			g.decoder.images.LoopCount = le16(b[14:])
		}
	}
	if err != nil {
		return false, err
	}
	return kept, skipSubBlocks(s, g.frames.opts.MaxChunk)
}

// isLoop reports whether an application extension begins with the number of its repetitions.
func isLoop(b []byte) bool {
	return len(b) >= 16 && (string(b[:12]) == "\x0BNETSCAPE2.0" || string(b[:12]) == "\x0BANIMEXTS1.0") &&
		b[12] == 3 && b[13] == 1
}

// keptApplication reports whether an application extension is a loop with nothing more in it, or a
// colour profile.
func keptApplication(s *source) bool {
	b, _ := s.Peek(17) // shorter at the end of the file
	if len(b) < 17 {
		return false
	}
	return isLoop(b) && b[16] == 0 || string(b[:12]) == "\x0BICCRGBG1012"
}

// frame reads a frame. As in browsers, the first one enlarges the screen, and others are clipped.
func (g *gifBlocks) frame(s *source) error {
	d, err := s.next(9)
	if err != nil {
		return err
	}
	left, top, w, h, flags := le16(d), le16(d[2:]), le16(d[4:]), le16(d[6:]), d[8]
	if g.frames.count == 0 {
		g.info.Width, g.info.Height = max(g.info.Width, left+w), max(g.info.Height, top+h)
	}
	if err := g.frames.add(int64(w), int64(h)); err != nil {
		return err
	}
	if g.info.header {
		return nil
	}
	colors, err := readColors(s, flags)
	if err != nil {
		return err
	}
	if g.decoder != nil {
		return g.decoder.frame(s, image.Rect(left, top, left+w, top+h), flags, palette(colors))
	}
	if _, err = s.ReadByte(); err != nil { // the LZW code size
		return err
	}
	return skipSubBlocks(s, math.MaxInt64)
}

// readColors reads the colour table that flags announce: 3 bytes for each of 2 to 256 colours.
func readColors(s *source, flags byte) ([]byte, error) {
	if flags&0x80 == 0 {
		return nil, nil
	}
	return s.next(3 << (1 + flags&7))
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
