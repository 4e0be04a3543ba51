package imaging

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
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
			if err = w.meta(s, b); err == nil && info.header {
				return w.finish(s)
			}
		case "mini":
			return contentErrorf("the %s image has the short form of HEIF (mini): save it in the ordinary form", w.info.Format)
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
	named bool  // the brands are those of images
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
		found := bmffFormat(start)
		if found != "" && found != w.info.Format {
			return box{}, false, &mismatchError{found}
		}
		w.named = found != "" || string(start[8:min(12, len(start))]) == "msf1"
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
	// Browsers show all of an AVIF. Only programs for HEIC obey an aperture.
	w.items = &itemList{at: b.from, items: map[uint32]*item{}, crops: w.info.Format == HEIC}
	return w.items.parse(content, int(b.body-b.from))
}

// finish checks the items, and sets the size of the image.
func (w *bmffFile) finish(s *source) error {
	if w.items == nil {
		w.items = new(itemList)
	}
	primary, err := w.items.image()
	switch {
	case err != nil && w.moov && w.named:
		return contentErrorf("the %s is an image sequence without a still image: save it as a still image", w.info.Format)
	case err != nil:
		return err
	}
	if found := w.items.codec(primary); found != w.info.Format {
		if found == "" {
			return errUnsupported
		}
		return &mismatchError{found}
	}
	size := w.items.shown(primary)
	w.info.Width, w.info.Height = size.X, size.Y
	if w.info.header {
		return nil
	}
	w.info.End = w.end
	if err := w.locate(); err != nil {
		return err
	}
	for _, it := range w.items.sorted() {
		if err := w.checkSize(it); err != nil {
			return err
		}
	}
	if primary.kind == "grid" {
		if err := w.checkGrid(s, primary); err != nil {
			return err
		}
	}
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

// keptItems are the items that decoders show: images, and those derived from others. All others,
// such as Exif and XMP, may contain anything.
const keptItems = "av01 hvc1 hev1 lhv1 jpeg grid iden iovl tmap sato"

func (i *item) kept() bool { return len(i.kind) == 4 && strings.Contains(keptItems, i.kind) }

// locate converts the positions of items to offsets in the file. It checks that they are within the
// file, and that the images are within its data.
func (w *bmffFile) locate() error {
	for _, it := range w.items.sorted() {
		if it.external {
			if it.kept() {
				return errUnsupported
			}
			it.parts = nil
		}
		for i := range it.parts {
			part := &it.parts[i]
			if it.inBox {
				part.from, part.to = part.from+w.items.idat.from, part.to+w.items.idat.from
			}
			limit := w.end
			if it.inBox {
				limit = w.items.idat.to
			}
			switch {
			case part.to > limit && !it.inBox:
				return endMissing(w.info.Format)
			case part.to > limit, it.kept() && !w.holds(*part):
				return errBMFF
			}
		}
	}
	return nil
}

// holds reports whether a part of the file is within the data, and not where the file describes
// itself.
func (w *bmffFile) holds(part span) bool {
	if idat := w.items.idat; idat.from <= part.from && part.to <= idat.to {
		return true
	}
	i, found := slices.BinarySearchFunc(w.data, part.from, func(b box, at int64) int { return cmp.Compare(b.body, at) })
	if !found {
		i--
	}
	return i >= 0 && part.to <= w.data[i].to
}

// strip sets the layout. Metadata is overwritten, so that all positions remain valid. Without an
// image sequence, all data is overwritten that belongs to no image.
func (w *bmffFile) strip(s *source) error {
	var images, blank []span
	for _, it := range w.items.sorted() {
		switch {
		case it.kept():
			images = append(images, it.parts...)
		case w.moov:
			for _, part := range it.parts {
				if w.holds(part) {
					blank = append(blank, part)
				}
			}
		}
	}
	images = merged(images)
	edits, done, err := w.rewriteItems(s, images)
	if err != nil {
		return err
	}
	var credentials []span
	for _, b := range w.data {
		content := span{b.body, b.to}
		claims, err := w.hasCredentials(s, b)
		switch {
		case err != nil:
			return err
		case claims:
			credentials = append(credentials, content)
		case !w.moov || b.kind != "mdat":
			blank = append(blank, content)
		}
	}
	blank = append(blank, w.items.idat)
	for _, b := range slices.Concat(w.spare, w.items.spare) {
		blank = append(blank, span{b.body, b.to})
		if b.kind != "free" {
			edits = append(edits, bmffEdit{span{b.from + 4, b.from + 8}, []byte("free")})
		}
	}
	images, blank = merged(append(images, done...)), merged(blank)
	zeroed, err := filled(s, without(blank, images))
	if err != nil {
		return err
	}
	if changed := len(zeroed)+len(edits) > 0 || w.end < w.info.size; changed && len(credentials) > 0 {
		if zeroed, err = filled(s, without(merged(append(blank, credentials...)), images)); err != nil {
			return err
		}
	}
	for _, part := range zeroed {
		edits = append(edits, bmffEdit{span: part})
	}
	w.lay(edits)
	return nil
}

// bmffEdit is a part of a file that is overwritten: with data, or with zeros if there is none.
type bmffEdit struct {
	span
	data []byte
}

// lay sets the layout.
func (w *bmffFile) lay(edits []bmffEdit) {
	slices.SortFunc(edits, func(a, b bmffEdit) int { return cmp.Compare(a.from, b.from) })
	i, at := w.info, int64(0)
	for _, e := range edits {
		i.keep(at, e.from)
		if e.data != nil {
			i.insert(i.mark(), e.data)
		} else {
			i.blank(i.mark(), e.to-e.from)
		}
		at = e.to
	}
	i.keep(at, w.end)
}

// c2paType is the type of the uuid box with credentials (C2PA 2.1, section A.5).
const c2paType = "\xd8\xfe\xc3\xd6\x1b\x0e\x48\x3c\x92\x97\x58\x28\x87\x7e\xc4\x81"

// hasCredentials reports whether a box has credentials that may remain.
func (w *bmffFile) hasCredentials(s *source, b box) (bool, error) {
	if w.opts.Strip != StripLocation || b.kind != "uuid" || b.to-b.body < int64(len(c2paType)) {
		return false, nil
	}
	id, err := s.readAt(b.body, int64(len(c2paType)))
	return string(id) == c2paType, err
}

// maxRewritten is the largest number of items with metadata of which a part may remain.
const maxRewritten = 16

// rewriteItems returns the new content of the items of which a part remains, and the positions of
// these items. Their content must not be that of another item.
func (w *bmffFile) rewriteItems(s *source, images []span) (edits []bmffEdit, done []span, err error) {
	tried := 0
	for _, it := range w.items.sorted() {
		if it.kind != "Exif" && it.kind != "mime" || len(it.parts) != 1 {
			continue
		}
		if tried++; tried > maxRewritten {
			break
		}
		part := it.parts[0]
		size := part.to - part.from
		if size > bufferSize || !w.holds(part) || total(without([]span{part}, merged(slices.Concat(images, done)))) != size {
			continue
		}
		was, err := s.readAt(part.from, size)
		if err != nil {
			return nil, nil, err
		}
		rest := w.rewrite(it.kind, was)
		if rest == nil {
			continue
		}
		done = append(done, part)
		if !bytes.Equal(rest, was) {
			edits = append(edits, bmffEdit{part, rest})
		}
	}
	return edits, done, nil
}

// rewrite returns the part of an item that remains, filled up to the same size, or nil.
func (w *bmffFile) rewrite(kind string, b []byte) []byte {
	var rest []byte
	fill := byte(0)
	switch kind {
	case "Exif": // an offset, and a TIFF structure there (ISO/IEC 23008-12, section A.2.1)
		if w.opts.Strip != StripLocation || len(b) < 4 {
			return nil
		}
		head := 4
		if bytes.HasPrefix(b[4:], []byte(exifPrefix)) {
			head += len(exifPrefix)
		}
		tiff := w.opts.Strip.exif(b[head:], parseOrientation(b[head:]))
		if int(be32(b)) != head-4 || tiff == nil {
			return nil
		}
		rest = slices.Concat(b[:head], tiff)
	case "mime":
		rest = xmpFilter{describe: w.opts.Strip == StripLocation, gainMap: true}.apply(b)
		fill = ' '
	}
	if rest == nil || len(rest) > len(b) {
		return nil
	}
	return append(slices.Clip(rest), bytes.Repeat([]byte{fill}, len(b)-len(rest))...)
}

// merged sorts parts of a file and joins those that overlap. It drops empty ones.
func merged(parts []span) []span {
	parts = slices.DeleteFunc(parts, func(p span) bool { return p.from >= p.to })
	slices.SortFunc(parts, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out []span
	for _, p := range parts {
		if n := len(out); n > 0 && p.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, p.to)
			continue
		}
		out = append(out, p)
	}
	return out
}

// without returns the rest of parts that is not in others. Both must be merged.
func without(parts, others []span) []span {
	var out []span
	for _, p := range parts {
		for len(others) > 0 && others[0].to <= p.from {
			others = others[1:]
		}
		for _, o := range others {
			if o.from >= p.to {
				break
			}
			if p.from < o.from {
				out = append(out, span{p.from, o.from})
			}
			p.from = o.to
		}
		if p.from < p.to {
			out = append(out, p)
		}
	}
	return out
}

// filled returns the parts of a file that contain other bytes than zero. The parts must be merged.
func filled(s *source, parts []span) ([]span, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	if err := s.rewind(); err != nil {
		return nil, err
	}
	var out []span
	for _, p := range parts {
		if err := skip(s, p.from-s.offset()); err != nil {
			return nil, err
		}
		zero := true
		for left := p.to - p.from; left > 0; {
			b, err := s.window(1)
			if err != nil {
				return nil, err
			}
			b = b[:min(int64(len(b)), left)]
			zero = zero && len(bytes.TrimLeft(b, "\x00")) == 0
			left -= int64(len(b))
			if err := skip(s, int64(len(b))); err != nil {
				return nil, err
			}
		}
		if !zero {
			out = append(out, p)
		}
	}
	return out, nil
}
