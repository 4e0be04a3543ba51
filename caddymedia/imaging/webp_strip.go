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
// of JPEG. The chunk remains if it holds nothing else. Otherwise a chunk with only the orientation
// replaces it at the end of the file.
func (w *webpChunks) keepEXIF(s *source, c webpChunk) error {
	if w.exif {
		return nil
	}
	w.exif = true
	b, err := s.Peek(int(min(c.size, bufferSize)))
	if err != nil {
		return err
	}
	o := parseOrientation(bytes.TrimPrefix(b, []byte(exifPrefix)))
	w.info.Orientation = o
	if w.own = o != Upright && bytes.Equal(b, o.tiff()); w.own {
		w.keep(c.span)
	}
	return nil
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
	flags := w.flags &^ (webpEXIF | webpXMP)
	if w.info.Orientation != Upright {
		flags |= webpEXIF
	}
	size := int64(riffHeader)
	if w.extended {
		size += riffChunk + int64(len(w.header))
	}
	padded := true
	for _, p := range w.parts {
		n := p.to - p.from
		size += int64(len(p.head)) + n + n&1
		padded = padded && n%2 == 0
	}
	i := w.info
	if size == end && flags == w.flags && padded {
		i.keep(0, end)
		return
	}
	turned := i.Orientation != Upright && !w.own
	if turned {
		size += riffChunk + int64(len(i.Orientation.tiff()))
	}
	head := append(riffHead("RIFF", size-riffChunk), "WEBP"...)
	if w.extended {
		w.header[0] = flags
		head = append(append(head, riffHead("VP8X", int64(len(w.header)))...), w.header[:]...)
	}
	// An ALPH chunk is added only with its picture.
	slices.SortFunc(w.parts, func(a, b webpPart) int { return cmp.Compare(a.from, b.from) })
	for _, p := range w.parts {
		if head = append(head, p.head...); len(head) > 0 {
			i.insert(i.mark(), head)
		}
		i.keep(p.from, p.to)
		head = make([]byte, (p.to-p.from)%2) // the missing padding
	}
	if turned {
		tiff := i.Orientation.tiff()
		head = append(append(head, riffHead("EXIF", int64(len(tiff)))...), tiff...)
	}
	if len(head) > 0 {
		i.insert(i.mark(), head)
	}
}

// riffHead returns the header of a chunk.
func riffHead(id string, size int64) []byte {
	return binary.LittleEndian.AppendUint32([]byte(id), uint32(size))
}
