package imaging

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
)

// keptItems are the items that decoders show: images, and those derived from others. All others,
// such as Exif and XMP, may contain anything.
const keptItems = "av01 hvc1 hev1 lhv1 jpeg grid iden iovl tmap sato"

func (i *item) kept() bool { return len(i.kind) == 4 && strings.Contains(keptItems, i.kind) }

// locate converts the positions of items to offsets in the file. It checks that they are within the
// file, and that the images are within its data.
func (w *bmffFile) locate() error {
	for _, it := range w.items.items {
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

// strip sets the layout. Metadata is overwritten, so that all positions remain valid. Without an image
// sequence, all data is overwritten that belongs to no image.
func (w *bmffFile) strip(s *source) error {
	var images, blank []span
	for _, it := range w.items.items {
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

// rewriteItems returns what overwrites the items of whose content a part remains, and the positions
// of these items. Their content must not be that of another item.
func (w *bmffFile) rewriteItems(s *source, images []span) (edits []bmffEdit, done []span, err error) {
	tried := 0
	for _, id := range slices.Sorted(maps.Keys(w.items.items)) {
		it := w.items.items[id]
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
