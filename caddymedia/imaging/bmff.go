package imaging

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
)

// maxMeta is the largest meta box. It is held in memory. That of a photograph of 48 megapixels has
// some 10 KiB.
const maxMeta = 1 << 20

var (
	errBMFF        = errors.New("not the structure of an AVIF or HEIC image")
	errUnsupported = errors.New("a feature that is not supported")
)

// mismatchError reports content that is an image of another format.
type mismatchError struct{ found Format }

// Error implements error.
func (e *mismatchError) Error() string { return "content is " + string(e.found) }

// bmffBrands are the brands of a file with images of a codec (AVIF 1.1, section 6; ISO/IEC
// 23008-12, annex B). Those of HEIF in general, such as mif1, name no codec.
var bmffBrands = map[Format]string{
	AVIF: "avif avis",
	HEIC: "heic heix hevc hevx heim heis hevm hevs",
}

// bmffFormat returns the format that the brands of a file name, or "" if they name none. head is
// the start of the file.
func bmffFormat(head []byte) Format {
	if len(head) < 16 || string(head[4:8]) != "ftyp" {
		return ""
	}
	brands := head[8:min(int64(len(head)), max(be32(head), 16))]
	for len(brands) >= 4 {
		for format, known := range bmffBrands {
			if brand := string(brands[:4]); !strings.ContainsAny(brand, " \x00") && strings.Contains(known, brand) {
				return format
			}
		}
		brands = brands[4:]
	}
	return ""
}

// box is the header of a box (ISO/IEC 14496-12, section 4.2).
type box struct {
	kind string
	span       // of the whole box
	body int64 // offset of the content
}

// parseBox reads the header of a box at an offset, which ends at most at end. b are the bytes from
// there on, at least 16 unless the file ends.
func parseBox(b []byte, at, end int64) (box, error) {
	if len(b) < 8 {
		return box{}, errBMFF
	}
	size, head := uint64(be32(b)), int64(8)
	switch {
	case size == 0: // up to the end
		size = uint64(end - at)
	case size == 1 && len(b) >= 16:
		size, head = binary.BigEndian.Uint64(b[8:]), 16
	}
	if size < uint64(head) || size > uint64(end-at) {
		return box{}, errBMFF
	}
	return box{string(b[4:8]), span{at, at + int64(size)}, at + head}, nil
}

// walkBMFF goes over the boxes of an AVIF or HEIC file. It reads the list of items, but decodes no
// pixels. Of an image sequence it checks only the primary image.
func walkBMFF(s *source, opts Options, info *Info) error {
	w := bmffFile{info: info, opts: opts}
	for i := 0; ; i++ {
		b, done, err := w.next(s, i == 0)
		switch {
		case err != nil:
			return err
		case done:
			return w.finish(s)
		case i == maxBlocks:
			return tooLargef("the %s image has too many boxes", info.Format)
		}
		w.end = b.to
		switch b.kind {
		case "ftyp":
		case "meta":
			err = w.meta(s, b)
		case "moov":
			w.moov = true
			err = w.movie(s, b)
		default:
			w.data = append(w.data, b)
		}
		if err == nil {
			err = skip(s, b.to-s.offset())
		}
		if err != nil {
			return err
		}
	}
}

// bmffFile is the state of a walk over boxes.
type bmffFile struct {
	info  *Info
	opts  Options
	data  []box // with the content of items
	moov  bool  // there is an image sequence
	inner int   // number of its boxes
	spare []box // of these, those that no decoder needs
	end   int64 // of the last box
	items *itemList
}

// topBoxes are the boxes that an image may have besides those for data. An incomplete one means
// that the end of the file is missing.
const topBoxes = "ftyp meta mdat moov moof free skip uuid idat sidx styp mfra"

// next reads the header of a box. done reports that there is none: the file ends, or other bytes
// follow.
func (w *bmffFile) next(s *source, first bool) (b box, done bool, err error) {
	at := s.offset()
	head, _ := s.Peek(16) // fewer at the end
	if err := s.ioError(); err != nil {
		return box{}, false, err
	}
	if first {
		if len(head) < 8 || string(head[4:8]) != "ftyp" {
			return box{}, false, errBMFF
		}
		start, _ := s.Peek(sniffSize)
		if found := bmffFormat(start); found != "" && found != w.info.Format {
			return box{}, false, &mismatchError{found}
		}
	}
	b, err = parseBox(head, at, w.info.size)
	switch {
	case err == nil:
		return b, false, nil
	case len(head) >= 8 && strings.Contains(topBoxes, string(head[4:8])):
		return box{}, false, endMissing(w.info.Format)
	case first:
		return box{}, false, err
	}
	return box{}, true, nil
}

// movie goes over the boxes of an image sequence, and of its tracks.
func (w *bmffFile) movie(s *source, outer box) error {
	if err := skip(s, outer.body-s.offset()); err != nil {
		return err
	}
	for at := s.offset(); at < outer.to; at = s.offset() {
		if w.inner++; w.inner > maxBlocks {
			return tooLargef("the %s image has too many boxes", w.info.Format)
		}
		head, err := s.Peek(int(min(16, outer.to-at)))
		if err != nil {
			return err
		}
		b, err := parseBox(head, at, outer.to)
		if err != nil {
			return err
		}
		switch {
		case b.kind == "trak" && outer.kind == "moov":
			err = w.movie(s, b)
		case strings.Contains("udta meta uuid free skip", b.kind):
			w.spare = append(w.spare, b)
		}
		if err == nil {
			err = skip(s, b.to-s.offset())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// meta reads the box with the list of items.
func (w *bmffFile) meta(s *source, b box) error {
	if w.items != nil {
		return errBMFF
	}
	if most := min(w.opts.MaxChunk, maxMeta); b.to-b.from > most {
		return tooLargef("the list of items of the %s image is larger than %s", w.info.Format, bytesize.Format(most))
	}
	content := make([]byte, b.to-b.from)
	if err := s.read(content); err != nil {
		return err
	}
	w.items = &itemList{at: b.from, items: map[uint32]*item{}}
	return w.items.parse(content, int(b.body-b.from))
}

// finish checks the items, and sets the size of the image.
func (w *bmffFile) finish(s *source) error {
	if w.items == nil {
		return errBMFF
	}
	primary, err := w.items.image()
	if err != nil {
		return err
	}
	if found := w.items.codec(primary); found != w.info.Format {
		if found == "" {
			return errUnsupported
		}
		return &mismatchError{found}
	}
	w.info.End = w.end
	if err := w.locate(); err != nil {
		return err
	}
	for _, it := range w.items.items {
		if err := w.checkSize(it); err != nil {
			return err
		}
	}
	if primary.kind == "grid" {
		if err := w.checkGrid(s, primary); err != nil {
			return err
		}
	}
	w.info.Width, w.info.Height = primary.viewed()
	if w.opts.Strip == StripOff {
		return nil
	}
	return w.strip(s)
}

// checkSize checks the size of an item. Every one may be decoded, also a thumbnail.
func (w *bmffFile) checkSize(it *item) error {
	if it.width == 0 && it.height == 0 {
		return nil
	}
	size := Info{Format: w.info.Format, Width: it.width, Height: it.height}
	return size.checkSize(w.opts)
}

// checkGrid checks the size of an image of tiles (ISO/IEC 23008-12, section 6.6.2.3).
func (w *bmffFile) checkGrid(s *source, it *item) error {
	const most = 12
	var b []byte
	for _, part := range it.parts {
		n := min(part.to-part.from, most-int64(len(b)))
		more, err := s.readAt(part.from, n)
		if err != nil {
			return err
		}
		b = append(b, more...)
	}
	if len(b) < 8 || b[1]&1 != 0 && len(b) < most {
		return errBMFF
	}
	width, height := int64(be16(b[4:])), int64(be16(b[6:]))
	if b[1]&1 != 0 {
		width, height = be32(b[4:]), be32(b[8:])
	}
	tiles := (int(b[2]) + 1) * (int(b[3]) + 1)
	if width != int64(it.width) || height != int64(it.height) || tiles != len(it.inputs) {
		return errBMFF
	}
	return nil
}
