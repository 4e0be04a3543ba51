package imaging

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// webpPart is a part of a file that remains: head, if any, followed by the bytes of span.
type webpPart struct {
	head []byte
	span
}

// keep adds a chunk that remains.
func (w *webpChunks) keep(s span) { w.parts = append(w.parts, webpPart{span: s}) }

// replaceFrame adds the ANMF chunk at from, which remains up to the offset to.
func (w *webpChunks) replaceFrame(from, to int64) {
	head := riffHead("ANMF", to-from-riffChunk)
	w.parts = append(w.parts, webpPart{head, span{from + riffChunk, to}})
}

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

// rewrite keeps a chunk with data b if it has nothing but rest. Otherwise a chunk with that, if any,
// replaces it at the end of the file.
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
		i.Alpha = i.Alpha || w.uncovered()
	}
	w.strip(end)
	return nil
}

// uncovered reports whether a canvas of the animation has an area without a frame.
func (w *webpChunks) uncovered() bool {
	first := w.info.frames[0].area
	return first.Size() != w.canvas || slices.ContainsFunc(w.info.frames, func(f webpFrame) bool { return f.dispose })
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

// size returns the length of a file of parts. padded reports that none of them lacks its padding, and
// that no chunk is new.
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
