package imaging

import (
	"image"
	"time"
)

// webpFrame is a frame of a WebP image: the position of its parts in the file, and its use.
type webpFrame struct {
	alpha    span // the ALPH chunk with its header; empty if there is none
	image    span // the VP8 or VP8L chunk with its header
	lossless bool
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
	read, n := lossySize, 10
	if f.lossless {
		read, n = losslessSize, 5
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
	size, transparent := read(b)
	if size.X == 0 || size.Y == 0 {
		return nil, errWebP
	}
	f.area.Max = size
	w.info.Lossless = w.info.Lossless || f.lossless
	w.info.Alpha = w.info.Alpha || transparent || f.alpha != (span{})
	w.info.frames = append(w.info.frames, f)
	return &w.info.frames[len(w.info.frames)-1], nil
}

// lossySize reads the header of a key frame (RFC 6386, section 9.1): a tag of 3 bytes, a start
// code, then two sides of 14 bits, each with 2 bits of scale. The size is 0 if it is none.
func lossySize(b []byte) (size image.Point, transparent bool) {
	if b[0]&1 != 0 || string(b[3:6]) != "\x9d\x01\x2a" {
		return image.Point{}, false
	}
	return image.Pt(le16(b[6:])&0x3FFF, le16(b[8:])&0x3FFF), false
}

// losslessSize reads a lossless header (RFC 9649, section 3.4): a signature, two sides less 1 of 14
// bits each, the alpha flag, and the version, which is 0.
func losslessSize(b []byte) (size image.Point, transparent bool) {
	bits := le32(b[1:])
	if b[0] != 0x2F || bits>>29 != 0 {
		return image.Point{}, false
	}
	return image.Pt(int(bits&0x3FFF)+1, int(bits>>14&0x3FFF)+1), bits>>28 != 0
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
		w.replaceFrame(c.from, inner.to)
	}
	return skip(s, c.to-s.offset())
}
