package imaging

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"image"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/icc"
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
		if info.header && w.known {
			info.Width, info.Height = w.canvas.X, w.canvas.Y
			return nil
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
	known       bool // size and orientation are
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
	case w.info.header && w.extended && w.flags&webpEXIF == 0 && (c.id == "ANMF" || c.id == "ALPH"):
		w.known, w.info.Alpha = true, true
	case c.id == "VP8 " || c.id == "VP8L":
		err = w.still(s, c)
	case !w.extended: // a reader of a simple file looks at its first chunk only
	case c.id == "ANMF" && w.flags&webpAnimation != 0:
		return w.frame(s, c)
	default:
		err = w.other(s, c)
	}
	// The orientation is behind the image.
	w.known = w.known || w.exif || len(w.info.frames) > 0 && w.flags&webpEXIF == 0
	if err != nil || w.info.header && w.known {
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
		part := span{s.offset(), s.offset() + c.size}
		w.info.setProfile(newProfile(slices.Clone(b), c.size > maxProfile, part), icc.RGB)
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

// webpFrame is a frame of a WebP image: the position of its parts in the file, and its use.
type webpFrame struct {
	alpha    span // the ALPH chunk with its header; empty if there is none
	image    span // the VP8 or VP8L chunk with its header
	lossless bool
	opaque   bool // the alpha in the pixels of a lossless image does not count
	area     image.Rectangle
	shown    time.Duration
	blend    bool // over the canvas; otherwise the frame replaces it
	dispose  bool // clears the area afterwards
}

// still reads the image of a file that is no animation. Only the first counts.
func (w *webpChunks) still(s *source, c webpChunk) error {
	if len(w.info.frames) > 0 {
		return nil
	}
	f, err := w.image(s, c, w.alpha)
	if err != nil {
		return err
	}
	size := f.area.Size()
	if w.extended && (w.flags&webpAnimation != 0 || size != w.canvas) {
		return errWebP // libwebp refuses both
	}
	w.canvas = size
	if f.alpha != (span{}) {
		w.keep(f.alpha)
	}
	w.keep(f.image)
	return nil
}

// image reads the header of a VP8 or VP8L chunk and records it as a frame at 0, 0. The alpha of
// a lossless image is in its pixels, so that an ALPH chunk before it is ignored.
func (w *webpChunks) image(s *source, c webpChunk, alpha span) (*webpFrame, error) {
	f := webpFrame{image: c.span, lossless: c.id == "VP8L"}
	n := 10
	if f.lossless {
		n = 5
	} else {
		f.alpha = alpha
	}
	if c.size < int64(n) {
		return nil, errWebP
	}
	b, err := s.Peek(n)
	if err != nil {
		return nil, err
	}
	var size image.Point
	transparent := false
	if f.lossless { // RFC 9649, section 3.4: a signature, two sides less 1, the alpha flag, the version 0
		bits := le32(b[1:])
		if b[0] != 0x2F || bits>>29 != 0 {
			return nil, errWebP
		}
		size, transparent = image.Pt(int(bits&0x3FFF)+1, int(bits>>14&0x3FFF)+1), bits>>28 != 0
	} else { // RFC 6386, section 9.1: a tag of 3 bytes, a start code, two sides with 2 bits of scale each
		size = image.Pt(le16(b[6:])&0x3FFF, le16(b[8:])&0x3FFF)
		if b[0]&1 != 0 || string(b[3:6]) != "\x9d\x01\x2a" || size.X == 0 || size.Y == 0 {
			return nil, errWebP
		}
	}
	f.area.Max, f.opaque = size, f.lossless && !transparent
	w.info.Lossless = w.info.Lossless || f.lossless
	w.info.Alpha = w.info.Alpha || transparent || f.alpha != (span{})
	w.info.frames = append(w.info.frames, f)
	return &w.info.frames[len(w.info.frames)-1], nil
}

// frame reads an ANMF chunk: the frame header, then an ALPH chunk if there is alpha, and the
// image. Chunks behind the image are dropped.
func (w *webpChunks) frame(s *source, c webpChunk) error {
	end := c.from + riffChunk + c.size
	if !w.anim || c.size < frameHeader+riffChunk {
		return errWebP
	}
	h, err := s.next(frameHeader)
	if err != nil {
		return err
	}
	corner := image.Pt(2*le24(h), 2*le24(h[3:]))
	area := image.Rectangle{Min: corner, Max: corner.Add(image.Pt(le24(h[6:])+1, le24(h[9:])+1))}
	shown, flags := time.Duration(le24(h[12:]))*time.Millisecond, h[15]
	if !area.In(image.Rectangle{Max: w.canvas}) {
		return contentErrorf("the WebP image is damaged: a frame is larger than the image")
	}
	if err := w.frames.add(int64(area.Dx()), int64(area.Dy())); err != nil {
		return err
	}
	inner, err := w.chunk(s, end)
	if err != nil {
		return err
	}
	var alpha span
	if inner.id == "ALPH" {
		alpha = inner.span
		if err := skip(s, inner.to-s.offset()); err != nil {
			return err
		}
		if inner, err = w.chunk(s, end); err != nil {
			return err
		}
		if inner.id == "VP8L" {
			return errWebP // libwebp refuses it
		}
	}
	if inner.id != "VP8 " && inner.id != "VP8L" || (inner.to-inner.from)%2 != 0 {
		return errWebP
	}
	f, err := w.image(s, inner, alpha)
	if err != nil {
		return err
	}
	if f.area.Size() != area.Size() {
		return errWebP
	}
	f.area, f.shown, f.blend, f.dispose = area, shown, flags&2 == 0, flags&1 != 0
	if inner.to == end {
		w.keep(c.span)
	} else {
		head := riffHead("ANMF", inner.to-c.from-riffChunk)
		w.parts = append(w.parts, webpPart{head, span{c.from + riffChunk, inner.to}})
	}
	return skip(s, c.to-s.offset())
}

// webpPart is a part of a file that remains: head, if any, followed by the bytes of span.
type webpPart struct {
	head []byte
	span
}

// keep adds a chunk that remains.
func (w *webpChunks) keep(s span) { w.parts = append(w.parts, webpPart{span: s}) }

// keepEXIF reads the orientation from the first EXIF chunk. Some programs begin it with the prefix
// of JPEG.
func (w *webpChunks) keepEXIF(s *source, c webpChunk) error {
	if w.exif {
		return nil
	}
	w.exif = true
	b, err := s.Peek(int(min(c.size, bufferSize)))
	if err != nil {
		return err
	}
	tiff := bytes.TrimPrefix(b, []byte(exifPrefix))
	o := parseOrientation(tiff)
	w.info.Orientation = o
	mode := w.frames.opts.Strip
	if int64(len(b)) < c.size {
		mode = StripOn
	}
	w.rewrite(c, b, mode.exif(tiff, o))
	return nil
}

// keepXMP keeps the part of the first XMP chunk that describes the image.
func (w *webpChunks) keepXMP(s *source, c webpChunk) error {
	if w.xmp || c.size > bufferSize {
		return nil
	}
	w.xmp = true
	b, err := s.Peek(int(c.size))
	if err != nil {
		return err
	}
	w.rewrite(c, b, xmpFilter{describe: true}.apply(b))
	return nil
}

// rewrite keeps a chunk with data b if it has nothing but rest. Otherwise a chunk with that, if
// any, replaces it at the end of the file.
func (w *webpChunks) rewrite(c webpChunk, b, rest []byte) {
	if rest == nil {
		return
	}
	w.kept |= map[string]byte{"EXIF": webpEXIF, "XMP ": webpXMP}[c.id]
	if bytes.Equal(b, rest) {
		w.keep(c.span)
		return
	}
	w.tail = append(append(w.tail, riffHead(c.id, int64(len(rest)))...), rest...)
	w.tail = append(w.tail, make([]byte, len(rest)%2)...)
}

// finish sets the fields that depend on all chunks.
func (w *webpChunks) finish(end int64) error {
	i := w.info
	if len(i.frames) == 0 {
		return errWebP
	}
	i.Width, i.Height, i.End = w.canvas.X, w.canvas.Y, end
	if w.frames.count > 0 {
		w.frames.describe(i)
		// A canvas with an area without a frame is transparent there.
		i.Alpha = i.Alpha || i.frames[0].area.Size() != w.canvas ||
			slices.ContainsFunc(i.frames, func(f webpFrame) bool { return f.dispose })
	}
	w.strip(end)
	return nil
}

// strip sets the layout. The sizes and flags at the start of a file depend on all its chunks, so
// that they are replaced, unless all remain.
func (w *webpChunks) strip(end int64) {
	i := w.info
	flags := w.flags&^(webpEXIF|webpXMP) | w.kept
	size, padded := w.size(w.parts, w.credentials)
	if size == end && flags == w.flags && padded && (len(w.credentials) == 0 || end == i.size) {
		i.keep(0, end)
		return
	}
	size, _ = w.size(w.parts)
	head := append(riffHead("RIFF", size-riffChunk), "WEBP"...)
	if w.extended {
		w.header[0] = flags
		head = append(append(head, riffHead("VP8X", int64(len(w.header)))...), w.header[:]...)
	}
	// An ALPH chunk is added only with its image.
	slices.SortFunc(w.parts, func(a, b webpPart) int { return cmp.Compare(a.from, b.from) })
	for _, p := range w.parts {
		if head = append(head, p.head...); len(head) > 0 {
			i.insert(i.mark(), head)
		}
		i.keep(p.from, p.to)
		head = make([]byte, (p.to-p.from)%2) // the missing padding
	}
	if head = append(head, w.tail...); len(head) > 0 {
		i.insert(i.mark(), head)
	}
}

// size returns the length of a file of parts. padded reports that none of them lacks its padding,
// and that no chunk is new.
func (w *webpChunks) size(parts ...[]webpPart) (n int64, padded bool) {
	n = riffHeader + int64(len(w.tail))
	if w.extended {
		n += riffChunk + int64(len(w.header))
	}
	padded = len(w.tail) == 0
	for _, p := range slices.Concat(parts...) {
		size := p.to - p.from
		n += int64(len(p.head)) + size + size&1
		padded = padded && size%2 == 0
	}
	return n, padded
}

// riffHead returns the header of a chunk.
func riffHead(id string, size int64) []byte {
	return binary.LittleEndian.AppendUint32([]byte(id), uint32(size))
}
