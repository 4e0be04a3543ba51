package imaging

import (
	"encoding/binary"
	"errors"
	"image"
	"slices"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
)

// Flags of the VP8X chunk (https://developers.google.com/speed/webp/docs/riff_container).
const (
	webpAnimation = 0x02
	webpXMP       = 0x04
	webpEXIF      = 0x08
	webpAlpha     = 0x10
)

const (
	riffHeader  = 12 // "RIFF", a size, "WEBP"
	riffChunk   = 8  // an identifier and a size
	frameHeader = 16 // of an ANMF chunk, before the chunks of the frame
)

var errWebP = errors.New("not the structure of a WebP image")

// walkWebP goes over the chunks of a WebP file to the end of its RIFF form. It decodes no pixels.
func walkWebP(s *source, opts Options, info *Info) error {
	head, err := s.next(riffHeader)
	if err != nil {
		return err
	}
	if string(head[:4]) != "RIFF" || string(head[8:]) != "WEBP" {
		return errWebP
	}
	w := webpChunks{info: info, frames: frameSum{opts: opts}, end: riffChunk + le32(head[4:])}
	for {
		if w.end-s.offset() < riffChunk { // a few bytes at the end are no chunk
			if err := skip(s, w.end-s.offset()); err != nil {
				return err
			}
			return w.finish(s.offset())
		}
		if w.blocks >= maxBlocks {
			return tooLargef("the WebP image has too many chunks")
		}
		if err := w.next(s); err != nil {
			return err
		}
	}
}

// webpChunks is the state of a walk over chunks.
type webpChunks struct {
	info     *Info
	frames   frameSum
	end      int64 // of the RIFF form
	blocks   int
	extended bool // the first chunk is VP8X
	flags    byte
	canvas   image.Point // of a VP8X chunk
	header   [10]byte    // its data

	alpha       span // the ALPH chunk of the still image
	anim, iccp  bool
	exif, xmp   bool
	parts       []webpPart
	credentials []webpPart // that remain only if all does
	kept        byte       // the flags of metadata that remains
	tail        []byte     // chunks to append
}

// next reads one chunk.
func (w *webpChunks) next(s *source) error {
	c, err := w.chunk(s, w.end)
	if err != nil {
		return err
	}
	if w.blocks == 1 {
		if err := w.first(s, c); err != nil {
			return err
		}
	}
	switch {
	case w.blocks == 1 && w.extended:
	case c.id == "VP8 " || c.id == "VP8L":
		err = w.still(s, c)
	case !w.extended: // a reader of a simple file looks at its first chunk only
	case c.id == "ANMF" && w.flags&webpAnimation != 0:
		return w.frame(s, c)
	default:
		err = w.other(s, c)
	}
	if err != nil {
		return err
	}
	if most := w.frames.opts.MaxChunk; c.size > most && c.id != "VP8 " && c.id != "VP8L" && c.id != "ALPH" {
		return tooLargef("a chunk of the WebP image that holds no pixels is larger than %s", bytesize.Format(most))
	}
	return skip(s, c.to-s.offset())
}

// webpChunk is the header of a chunk.
type webpChunk struct {
	id   string
	size int64 // of the data
	span       // of the whole chunk, with its padding
}

// chunk reads the header of a chunk that ends at most at end. The padding of the last chunk may be
// missing.
func (w *webpChunks) chunk(s *source, end int64) (webpChunk, error) {
	w.blocks++
	at := s.offset()
	head, err := s.next(riffChunk)
	if err != nil {
		return webpChunk{}, err
	}
	c := webpChunk{id: string(head[:4]), size: le32(head[4:])}
	if c.size > end-at-riffChunk {
		return webpChunk{}, errWebP
	}
	c.span = span{at, min(at+riffChunk+c.size+c.size&1, end)}
	return c, nil
}

// first reads the chunk that decides between a simple and an extended file.
func (w *webpChunks) first(s *source, c webpChunk) error {
	switch c.id {
	case "VP8 ", "VP8L":
		return nil
	case "VP8X":
	default:
		return errWebP
	}
	if c.size != int64(len(w.header)) {
		return errWebP
	}
	b, err := s.Peek(len(w.header))
	if err != nil {
		return err
	}
	w.extended, w.header, w.flags = true, [10]byte(b), b[0]
	w.canvas = image.Pt(le24(b[4:])+1, le24(b[7:])+1)
	return nil
}

// other reads a chunk that is no image, and keeps it if the image needs it.
func (w *webpChunks) other(s *source, c webpChunk) error {
	switch c.id {
	case "ALPH":
		if w.alpha == (span{}) && len(w.info.frames) == 0 {
			w.alpha = c.span
		}
	case "ANIM":
		return w.loop(s, c)
	case "ICCP":
		if w.iccp {
			return nil
		}
		w.iccp = true
		w.keep(c.span)
		b, err := s.Peek(int(min(c.size, maxProfile)))
		if err != nil {
			return err
		}
		p := newProfile(slices.Clone(b))
		if c.size > maxProfile {
			p.data = nil
		}
		w.info.setProfile(p, spaceRGB)
	case "EXIF":
		return w.keepEXIF(s, c)
	case "XMP ":
		if w.frames.opts.Strip == StripLocation {
			return w.keepXMP(s, c)
		}
	case "C2PA":
		if w.frames.opts.Strip == StripLocation {
			w.credentials = append(w.credentials, webpPart{span: c.span})
		}
	}
	return nil
}

// loop reads the ANIM chunk of an animation: a background, which no viewer uses, and the number of
// plays.
func (w *webpChunks) loop(s *source, c webpChunk) error {
	if w.anim || w.flags&webpAnimation == 0 {
		return nil
	}
	const size = 6
	if c.size != size {
		return errWebP
	}
	b, err := s.Peek(size)
	if err != nil {
		return err
	}
	w.anim, w.info.Loops = true, le16(b[4:])
	w.keep(c.span)
	return nil
}

// skip discards n bytes.
func skip(s *source, n int64) error {
	for n > 0 {
		part := int(min(n, 1<<30))
		if _, err := s.Discard(part); err != nil {
			return err
		}
		n -= int64(part)
	}
	return nil
}

func le24(b []byte) int   { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
func le32(b []byte) int64 { return int64(binary.LittleEndian.Uint32(b)) }
