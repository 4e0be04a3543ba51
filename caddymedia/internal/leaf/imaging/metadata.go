package imaging

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Orientation is the EXIF tag of that name: how to turn the stored pixels for viewing. Its values
// say where the first stored row and the first stored column appear in the view:
//
//	1 top, left   2 top, right   3 bottom, right   4 bottom, left
//	5 left, top   6 right, top   7 right, bottom   8 left, bottom
type Orientation uint8

// Upright is the orientation of pixels that are stored as they are viewed.
const Upright Orientation = 1

// exifPrefix begins the APP1 segment of a JPEG that holds EXIF (EXIF 2.32, section 4.7.2). Like
// browsers, the reader accepts any last byte.
const exifPrefix = "Exif\x00\x00"

// parseOrientation reads the orientation from the first directory of a TIFF structure (TIFF 6.0,
// section 2), the form of EXIF. Like browsers it accepts only a single SHORT.
func parseOrientation(tiff []byte) Orientation {
	order := tiffOrder(tiff)
	if order == nil {
		return Upright
	}
	start := int64(order.Uint32(tiff[4:]))
	if start+2 > int64(len(tiff)) {
		return Upright
	}
	entries := tiff[start+2:]
	for range order.Uint16(tiff[start:]) {
		if len(entries) < 12 {
			break
		}
		tag, kind, count := order.Uint16(entries), order.Uint16(entries[2:]), order.Uint32(entries[4:])
		if tag == 0x0112 && kind == 3 && count == 1 {
			if value := order.Uint16(entries[8:]); 1 <= value && value <= 8 {
				return Orientation(value)
			}
			break
		}
		entries = entries[12:]
	}
	return Upright
}

// tiff returns the smallest structure that parseOrientation reads o from: a directory of one entry.
func (o Orientation) tiff() []byte {
	return []byte{
		'M', 'M', 0, '*', 0, 0, 0, 8,
		0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, byte(o), 0, 0,
		0, 0, 0, 0,
	}
}

// exif returns the part of EXIF that remains, or nil.
func (m StripMode) exif(tiff []byte, o Orientation) []byte {
	if m == StripLocation {
		if rest := withoutLocation(tiff); rest != nil {
			return rest
		}
	}
	if o == Upright {
		return nil
	}
	return o.tiff()
}

// Tags of a TIFF structure (TIFF 6.0; EXIF 3.0, section 4.6).
const (
	tagThumbnail     = 0x0201
	tagThumbnailSize = 0x0202
	tagHostComputer  = 0x013C
	tagDetails       = 0x8769 // the directory of EXIF
	tagGPS           = 0x8825
	tagMakerNote     = 0x927C
	tagInterop       = 0xA005
	tagUniqueID      = 0xA420 // of the image, made of the number of the device by some
	tagSerial        = 0xA431
	tagLensSerial    = 0xA435
	tagFirmware      = 0xA439
)

// tiffSizes are the sizes of the types of values, by number.
var tiffSizes = [...]int64{0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8}

// keptTag reports whether the mode [StripLocation] keeps a tag of a directory of that depth: those
// of TIFF 6.0 and EXIF 3.0 without the ones above, ratings, copyright, colour profiles, and the
// titles and authors that Windows writes. IPTC, Photoshop and GeoTIFF have tags between those of
// EXIF, and these may have a location.
func keptTag(tag uint16, depth int) bool {
	if depth == 2 { // of interoperability: the colour space
		return tag <= 2
	}
	switch tag {
	case tagThumbnail, tagThumbnailSize, tagGPS, tagMakerNote, tagInterop, 0x014A,
		tagHostComputer, tagUniqueID, tagSerial, tagLensSerial, tagFirmware:
		return false
	case 0x4746, 0x4749, 0x8298, 0x829A, 0x829D, 0x8773, 0x9214, 0x9286:
		return true
	}
	return 0x00FE <= tag && tag <= 0x0214 || 0x8822 <= tag && tag <= 0x8835 || 0x9000 <= tag && tag <= 0x920A ||
		0x9290 <= tag && tag <= 0x9292 || 0x9400 <= tag && tag <= 0x9405 || 0x9C9B <= tag && tag <= 0x9C9F ||
		0xA000 <= tag && tag <= 0xA500
}

// tiffEditor copies the parts of a TIFF structure that remain. All else becomes zeros, so that the
// copied values keep their offsets.
type tiffEditor struct {
	in, out []byte
	order   binary.ByteOrder
	end     int64 // of the copied parts

	tables, kept, dropped []span
	size                  int64 // of kept
	listed                int64 // size of tables
}

// withoutLocation returns a TIFF structure as the mode [StripLocation] leaves it: tiff itself if
// all of it remains. It returns nil if the structure is damaged, so that a part cannot be removed
// with certainty, or if nothing remains.
func withoutLocation(tiff []byte) []byte {
	order := tiffOrder(tiff)
	if order == nil {
		return nil
	}
	e := tiffEditor{in: tiff, out: make([]byte, len(tiff)), order: order, tables: []span{{0, 8}}}
	copy(e.out, tiff[:8])
	if n, ok := e.copyTable(int64(order.Uint32(tiff[4:])), 0); !ok || n == 0 || !e.disjoint() {
		return nil
	}
	if bytes.Equal(e.out, tiff) {
		return tiff
	}
	return e.out[:e.end]
}

// tiffOrder returns the byte order of a TIFF structure, or nil if it is none.
func tiffOrder(tiff []byte) binary.ByteOrder {
	switch {
	case len(tiff) < 8:
	case bytes.HasPrefix(tiff, []byte("II*\x00")):
		return binary.LittleEndian
	case bytes.HasPrefix(tiff, []byte("MM\x00*")):
		return binary.BigEndian
	}
	return nil
}

// entries returns the entries of the directory at an offset, with the offset of the next one after
// them, if there is one. It refuses more directories than fit in the structure, because those share
// bytes, and a few that refer to each other may be read billions of times.
func (e *tiffEditor) entries(at int64) (b []byte, next int64, ok bool) {
	size := int64(len(e.in))
	if at < 8 || at+2 > size {
		return nil, 0, false
	}
	end := at + 2 + 12*int64(e.order.Uint16(e.in[at:]))
	if end > size {
		return nil, 0, false
	}
	if end+4 <= size {
		next = int64(e.order.Uint32(e.in[end:]))
	}
	table := span{at, min(end+4, size)}
	if e.listed += table.to - table.from; e.listed > size {
		return nil, 0, false
	}
	e.tables = append(e.tables, table)
	return e.in[at+2 : end], next, true
}

// value returns the position of the value of an entry. It is empty for a value within the entry. A
// value of an unknown type has no position.
func (e *tiffEditor) value(entry []byte) (at span, known bool) {
	kind, count := e.order.Uint16(entry[2:]), int64(e.order.Uint32(entry[4:]))
	if int(kind) >= len(tiffSizes) || kind == 0 {
		return span{}, false
	}
	size := tiffSizes[kind] * count
	if size <= 4 {
		return span{}, true
	}
	from := int64(e.order.Uint32(entry[8:]))
	return span{from, from + size}, true
}

// copyTable copies the directory at an offset without the entries that are removed. It returns the
// number of the others. The first directory has depth 0; those of EXIF and of interoperability
// follow. Any other, such as that of the thumbnail, is removed.
func (e *tiffEditor) copyTable(at int64, depth int) (n int, ok bool) {
	entries, next, ok := e.entries(at)
	if !ok || depth > 2 {
		return 0, false
	}
	to := at + 2
	for ; len(entries) > 0; entries = entries[12:] {
		entry := entries[:12]
		remains, ok := e.copyValue(entry, depth)
		if !ok {
			return 0, false
		}
		if remains {
			to += int64(copy(e.out[to:], entry))
			n++
		}
	}
	e.order.PutUint16(e.out[at:], uint16(n))
	e.end = max(e.end, min(to+4, int64(len(e.out))))
	if depth == 0 && next != 0 {
		e.drop(next)
	}
	return n, true
}

// copyValue copies the value of an entry, and reports whether the entry remains.
func (e *tiffEditor) copyValue(entry []byte, depth int) (remains, ok bool) {
	tag := e.order.Uint16(entry)
	value, known := e.value(entry)
	switch {
	case tag == tagGPS:
		return false, e.drop(int64(e.order.Uint32(entry[8:])))
	case depth == 0 && tag == tagDetails, depth == 1 && tag == tagInterop:
		n, ok := e.copyTable(int64(e.order.Uint32(entry[8:])), depth+1)
		return n > 0, ok
	case !known:
		return false, true
	case !keptTag(tag, depth):
		e.dropped = append(e.dropped, value)
		return false, true
	}
	if e.size += value.to - value.from; value.to > int64(len(e.in)) || e.size > int64(len(e.in)) {
		return false, false
	}
	e.kept = append(e.kept, value)
	copy(e.out[value.from:], e.in[value.from:value.to])
	e.end = max(e.end, value.to)
	return true, true
}

// drop records the positions of a directory that is removed, and of its values.
func (e *tiffEditor) drop(at int64) (ok bool) {
	entries, _, ok := e.entries(at)
	var thumbnail span
	for ; len(entries) > 0; entries = entries[12:] {
		switch e.order.Uint16(entries) {
		case tagThumbnail:
			thumbnail.from = int64(e.order.Uint32(entries[8:]))
		case tagThumbnailSize:
			thumbnail.to = int64(e.order.Uint32(entries[8:]))
		}
		if value, known := e.value(entries[:12]); known {
			e.dropped = append(e.dropped, value)
		}
	}
	thumbnail.to += thumbnail.from
	e.dropped = append(e.dropped, thumbnail)
	return ok
}

// disjoint reports whether no part that remains has bytes of a part that is removed: directories,
// the values that remain, and the values that are removed do not overlap.
func (e *tiffEditor) disjoint() bool {
	for i := range e.dropped { // positions behind the end hold nothing
		e.dropped[i].to = min(e.dropped[i].to, int64(len(e.in)))
	}
	tables := total(e.tables)
	kept, dropped := merged(e.kept), merged(e.dropped)
	all := merged(slices.Concat(e.tables, kept, dropped))
	return total(all) == tables+total(kept)+total(dropped)
}

// total returns the bytes of parts.
func total(parts []span) (n int64) {
	for _, p := range parts {
		n += p.to - p.from
	}
	return n
}

// photoshopPrefix begins the APP13 segments of a JPEG that hold image resources (Adobe Photoshop
// File Formats, "Image Resources Section").
const photoshopPrefix = "Photoshop 3.0\x00"

// Image resources that the mode [StripLocation] keeps.
const (
	resourceResolution = 0x03ED
	resourceIPTC       = 0x0404
	resourceCopyright  = 0x040A
	resourceAddress    = 0x040B // of the copyright
)

// placeDatasets are the numbers of the datasets of IPTC record 2 that are locations or previews
// (IPTC IIM 4.2, chapter 6): content location code and name, city, sublocation, province, country
// code and name; the image of a caption; format, version and data of a preview.
var placeDatasets = []byte{26, 27, 90, 92, 95, 100, 101, 125, 200, 201, 202}

// withoutPlaces returns image resources as the mode [StripLocation] leaves them: b itself if all
// remain, or nil if none does or they are damaged.
func withoutPlaces(b []byte) []byte {
	var out []byte
	for rest := b; len(rest) > 0; {
		// A signature, a number, a name padded to an even length, a size, padded data.
		if len(rest) < 8 || string(rest[:4]) != "8BIM" {
			return nil
		}
		number, name := be16(rest[4:]), 6+(int(rest[6])+2)&^1
		if len(rest) < name+4 {
			return nil
		}
		size := be32(rest[name:])
		head, data := rest[:name], rest[name+4:]
		if size > int64(len(data)) {
			return nil
		}
		// The padding of the last one may be missing.
		data, rest = data[:size], data[min(size+size&1, int64(len(data))):]
		switch number {
		case resourceIPTC:
			data = withoutPlaceDatasets(data)
		case resourceResolution, resourceCopyright, resourceAddress:
		default:
			continue
		}
		if len(data) == 0 {
			continue
		}
		n := len(data)
		out = append(append(out, head...), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		out = append(append(out, data...), make([]byte, n&1)...)
	}
	if bytes.Equal(out, b) {
		return b
	}
	return out
}

// withoutPlaceDatasets returns datasets of IPTC (IPTC IIM 4.2, section 1.5) without those of
// placeDatasets. It returns nil if they are damaged.
func withoutPlaceDatasets(b []byte) []byte {
	var out []byte
	for len(b) > 0 {
		// A mark, a record, a number, a size of 15 bits.
		if len(b) < 5 || b[0] != 0x1C || b[3]&0x80 != 0 || len(b) < 5+be16(b[3:]) {
			return nil
		}
		n := 5 + be16(b[3:])
		if b[1] == 1 || b[1] == 2 && !slices.Contains(placeDatasets, b[2]) {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}
