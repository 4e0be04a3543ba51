package imaging

import (
	"encoding/binary"
	"image"
	"maps"
	"slices"
)

// item is an entry of the list of items (ISO/IEC 14496-12, section 8.11).
type item struct {
	kind          string // such as "av01", "grid", "Exif"; empty if only a location is known
	located       bool
	inBox         bool // in the idat box; otherwise offsets are those of the file
	external      bool // in another file, or in another item
	parts         []span
	width, height int      // 0 if there is no size
	changes       []change // of what is shown, in their order
	inputs        []uint32 // of a derived image
	master        uint32   // of a thumbnail
	format        Format   // of the pixels
	judged        bool     // format is set
	measured      bool     // the size is being read
}

// change is a property of an image that changes the size in which it is shown.
type change struct {
	turn          bool // by a quarter
	width, height int  // of the part that is shown, if turn is not set
}

// property describes items (section 8.11.14).
type property struct {
	kind string
	data []byte
}

// itemList is the content of a meta box.
type itemList struct {
	at         int64 // offset in the file
	crops      bool  // images are shown without the edges outside of their clean aperture
	primary    uint32
	items      map[uint32]*item
	properties []property
	uses       []use // of properties
	idat       span  // in the file
	spare      []box // that no decoder needs
	entries    int
}

type use struct {
	item     uint32
	property int // from 1
}

// count counts an entry of a list, which may be shorter than a byte.
func (l *itemList) count() error {
	if l.entries++; l.entries > maxBlocks {
		return tooLargef("the image has too many items")
	}
	return nil
}

// boxes calls f with each box in b[from:].
func (l *itemList) boxes(b []byte, from int, f func(b box, content []byte) error) error {
	for from < len(b) {
		if err := l.count(); err != nil {
			return err
		}
		inner, err := parseBox(b[from:], int64(from), int64(len(b)))
		if err != nil {
			return err
		}
		if err := f(inner, b[inner.body:inner.to]); err != nil {
			return err
		}
		from = int(inner.to)
	}
	return nil
}

// parse reads a meta box, whose content begins at body with the version and flags.
func (l *itemList) parse(b []byte, body int) error {
	if body+4 > len(b) {
		return errBMFF
	}
	err := l.boxes(b, body+4, func(inner box, content []byte) error {
		f := fields{b: content}
		switch inner.kind {
		case "hdlr", "dinf", "grpl":
		case "pitm":
			wide := f.version() > 0
			l.primary = uint32(f.id(wide))
		case "iinf":
			return l.info(&f, b, inner)
		case "iloc":
			return l.locations(&f)
		case "iref":
			return l.references(&f, b, inner)
		case "iprp":
			return l.boxes(b[:inner.to], int(inner.body), func(inner box, content []byte) error {
				return l.property(b[:inner.to], inner, content)
			})
		case "idat":
			l.idat = span{l.at + inner.body, l.at + inner.to}
		default:
			l.addSpare(inner)
		}
		return f.err()
	})
	if err != nil {
		return err
	}
	l.describe()
	return nil
}

// addSpare adds a box that no decoder needs.
func (l *itemList) addSpare(b box) {
	l.spare = append(l.spare, box{b.kind, span{l.at + b.from, l.at + b.to}, l.at + b.body})
}

// sorted returns the items by number.
func (l *itemList) sorted() []*item {
	items := make([]*item, 0, len(l.items))
	for _, id := range slices.Sorted(maps.Keys(l.items)) {
		items = append(items, l.items[id])
	}
	return items
}

func (l *itemList) item(id uint64) *item {
	it := l.items[uint32(id)]
	if it == nil {
		it = &item{}
		l.items[uint32(id)] = it
	}
	return it
}

// info reads the kinds of the items (section 8.11.6).
func (l *itemList) info(f *fields, b []byte, list box) error {
	if f.version() == 0 {
		f.uint(2)
	} else {
		f.uint(4)
	}
	if f.short {
		return errBMFF
	}
	return l.boxes(b[:list.to], int(list.body)+f.read, func(inner box, content []byte) error {
		entry := fields{b: content}
		version := entry.version()
		if inner.kind != "infe" || version < 2 {
			return errBMFF // HEIF demands version 2 or 3
		}
		it := l.item(entry.id(version > 2))
		entry.uint(2)
		if it.kind = string(entry.bytes(4)); it.kind == "" {
			return errBMFF
		}
		return nil
	})
}

// locations reads the positions of the content of the items (section 8.11.3).
func (l *itemList) locations(f *fields) error {
	version := f.version()
	sizes := f.uint(2)
	offset, length, base, index := int(sizes>>12), int(sizes>>8&15), int(sizes>>4&15), int(sizes&15)
	if version == 0 {
		index = 0
	}
	for range f.id(version > 1) {
		if err := l.count(); err != nil {
			return err
		}
		it := l.item(f.id(version > 1))
		if f.short || it.located {
			return errBMFF
		}
		it.located = true
		if version > 0 {
			method := f.uint(2) & 15
			it.inBox, it.external = method == 1, method > 1
		}
		it.external = f.uint(2) != 0 || it.external
		start := f.uint(base)
		for range f.uint(2) {
			if err := l.count(); err != nil {
				return err
			}
			f.uint(index)
			from, n := start+f.uint(offset), f.uint(length)
			const most = 1 << 62
			if f.short || start > most || from > most || n > most {
				return errBMFF
			}
			it.parts = append(it.parts, span{int64(from), int64(from + n)})
		}
	}
	return f.err()
}

// references reads the inputs of derived images, and the images of thumbnails (section 8.11.12).
func (l *itemList) references(f *fields, b []byte, list box) error {
	wide := f.version() > 0
	return l.boxes(b[:list.to], int(list.body)+f.read, func(inner box, content []byte) error {
		if inner.kind != "dimg" && inner.kind != "thmb" {
			return nil
		}
		r := fields{b: content}
		it := l.item(r.id(wide))
		for range r.uint(2) {
			if err := l.count(); err != nil {
				return err
			}
			if id := uint32(r.id(wide)); inner.kind == "dimg" {
				it.inputs = append(it.inputs, id)
			} else {
				it.master = id
			}
		}
		return r.err()
	})
}

// property reads the list of properties, or their uses (section 8.11.14).
func (l *itemList) property(b []byte, inner box, content []byte) error {
	f := fields{b: content}
	switch inner.kind {
	case "ipco":
		return l.boxes(b, int(inner.body), func(p box, data []byte) error {
			l.properties = append(l.properties, property{p.kind, data})
			if p.kind == "udes" || p.kind == "uuid" || p.kind == "free" { // a description, or anything
				l.addSpare(p)
			}
			return nil
		})
	case "ipma":
		head := f.uint(4)
		wide, large := head>>24 > 0, head&1 != 0
		for range f.uint(4) {
			id := uint32(f.id(wide))
			for range f.uint(1) {
				if err := l.count(); err != nil {
					return err
				}
				var number int
				if large {
					number = int(f.uint(2) & 0x7FFF)
				} else {
					number = int(f.uint(1) & 0x7F)
				}
				l.uses = append(l.uses, use{id, number})
			}
			if f.short {
				return errBMFF
			}
		}
	}
	return f.err()
}

// describe applies the properties to the items.
func (l *itemList) describe() {
	for _, u := range l.uses {
		it := l.items[u.item]
		if it == nil || u.property < 1 || u.property > len(l.properties) {
			continue
		}
		switch p := l.properties[u.property-1]; {
		case p.kind == "ispe" && len(p.data) >= 12:
			it.width, it.height = int(be32(p.data[4:])), int(be32(p.data[8:]))
		case p.kind == "irot" && len(p.data) >= 1 && p.data[0]&1 != 0:
			it.changes = append(it.changes, change{turn: true})
		case p.kind == "clap" && len(p.data) >= 16 && l.crops:
			c := change{width: rounded(p.data), height: rounded(p.data[8:])}
			if c.width > 0 && c.height > 0 {
				it.changes = append(it.changes, c)
			}
		}
	}
}

// rounded returns the nearest integer to a fraction, or 0 if it has no denominator.
func rounded(b []byte) int {
	n, d := be32(b), be32(b[4:])
	if d == 0 {
		return 0
	}
	return int((n + d/2) / d)
}

// image returns the image that the file is about: the primary item, or the one of which that is a
// thumbnail.
func (l *itemList) image() (*item, error) {
	it := l.items[l.primary]
	if it == nil {
		return nil, errBMFF
	}
	if master := l.items[it.master]; master != nil {
		it = master
	}
	if size := l.shown(it); !it.filled() || size.X == 0 || size.Y == 0 {
		return nil, errBMFF
	}
	return it, nil
}

// filled reports whether an item has content. An identity has that of its input.
func (i *item) filled() bool { return i.kind == "iden" || len(merged(i.parts)) > 0 }

// shown returns the size of an item as it is shown: without the edges outside of its clean
// aperture, and turned. An identity without a size has that of its input.
func (l *itemList) shown(it *item) image.Point {
	size := image.Pt(it.width, it.height)
	if it.kind == "iden" && size == (image.Point{}) && len(it.inputs) == 1 && !it.measured {
		if input := l.items[it.inputs[0]]; input != nil {
			it.measured = true // also ends a cycle
			size = l.shown(input)
			it.measured = false
		}
	}
	for _, c := range it.changes {
		if c.turn {
			size.X, size.Y = size.Y, size.X
		} else {
			size.X, size.Y = min(size.X, c.width), min(size.Y, c.height)
		}
	}
	return size
}

// codec returns the format of the pixels of an item, or the one that all inputs of a derived one
// have. It returns "" for an unknown one.
func (l *itemList) codec(it *item) Format {
	if it.judged {
		return it.format
	}
	it.judged = true // also ends a cycle
	switch it.kind {
	case "av01":
		it.format = AVIF
	case "hvc1":
		it.format = HEIC
	case "grid", "iden":
		var found Format
		for i, id := range it.inputs {
			input := l.items[id]
			if input == nil || !input.filled() {
				return ""
			}
			format := l.codec(input)
			if i > 0 && format != found {
				return ""
			}
			found = format
		}
		it.format = found
	}
	return it.format
}

// fields reads integers one after the other. After a read beyond the end, short is true and all
// further values are 0.
type fields struct {
	b     []byte
	read  int
	short bool
}

func (f *fields) bytes(n int) []byte {
	if f.short = f.short || n > len(f.b)-f.read; f.short {
		return nil
	}
	f.read += n
	return f.b[f.read-n : f.read]
}

// uint returns the next integer of n bytes, at most 8.
func (f *fields) uint(n int) uint64 {
	var padded [8]byte
	if n > len(padded) {
		f.short = true
		return 0
	}
	copy(padded[len(padded)-n:], f.bytes(n))
	return binary.BigEndian.Uint64(padded[:])
}

// version returns the version of a box, and reads over its flags.
func (f *fields) version() int { return int(f.uint(4) >> 24) }

// id returns the number of an item, or of items.
func (f *fields) id(wide bool) uint64 {
	if wide {
		return f.uint(4)
	}
	return f.uint(2)
}

func (f *fields) err() error {
	if f.short {
		return errBMFF
	}
	return nil
}
