package imaging

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// keptItems are the items that decoders show: pictures, and those derived from others. All others,
// such as Exif and XMP, may contain anything.
const keptItems = "av01 hvc1 hev1 lhv1 jpeg grid iden iovl tmap sato"

func (i *item) kept() bool { return len(i.kind) == 4 && strings.Contains(keptItems, i.kind) }

// locate converts the positions of items to offsets in the file. It checks that they are within the
// file, and that the pictures are within its data.
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

// strip sets the layout. Metadata is overwritten with zeros, so that all positions remain valid.
// Without an image sequence, all data is overwritten that belongs to no picture.
func (w *bmffFile) strip(s *source) error {
	var pictures, blank []span
	for _, it := range w.items.items {
		switch {
		case it.kept():
			pictures = append(pictures, it.parts...)
		case w.moov:
			for _, part := range it.parts {
				if w.holds(part) {
					blank = append(blank, part)
				}
			}
		}
	}
	for _, b := range w.data {
		if !w.moov || b.kind != "mdat" {
			blank = append(blank, span{b.body, b.to})
		}
	}
	blank = append(blank, w.items.idat)
	var names []int64 // offsets of the types of boxes that become padding
	for _, b := range slices.Concat(w.spare, w.items.spare) {
		blank = append(blank, span{b.body, b.to})
		if b.kind != "free" {
			names = append(names, b.from+4)
		}
	}
	slices.Sort(names)
	blank, err := filled(s, without(merged(blank), merged(pictures)))
	if err != nil {
		return err
	}
	w.lay(blank, names)
	return nil
}

// lay sets the layout: zeros in the parts of blank, and "free" at the offsets of names.
func (w *bmffFile) lay(blank []span, names []int64) {
	i, at := w.info, int64(0)
	for len(blank) > 0 || len(names) > 0 {
		if len(blank) == 0 || len(names) > 0 && names[0] < blank[0].from {
			i.keep(at, names[0])
			i.insert(i.mark(), []byte("free"))
			at, names = names[0]+4, names[1:]
			continue
		}
		i.keep(at, blank[0].from)
		i.blank(i.mark(), blank[0].to-blank[0].from)
		at, blank = blank[0].to, blank[1:]
	}
	i.keep(at, w.end)
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
