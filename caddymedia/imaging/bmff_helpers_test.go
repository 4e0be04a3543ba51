package imaging_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// fixture returns a file of testdata. These are drawings of 64 x 48 or 64 x 64 pixels by avifenc
// and heif-enc, with EXIF that names a camera and a location, and XMP:
//   - turned.avif: with EXIF, XMP and a rotation
//   - grid.avif: two tiles
//   - sequence.avif: two frames
//   - photo.heic: with EXIF and XMP
//   - thumbnail.heic: the same with a thumbnail
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// bmffBox returns a box.
func bmffBox(kind string, parts ...[]byte) []byte {
	data := joined(parts...)
	return joined(binary.BigEndian.AppendUint32(nil, uint32(8+len(data))), []byte(kind), data)
}

// fullBox returns a box with a version and without flags.
func fullBox(kind string, version byte, parts ...[]byte) []byte {
	return bmffBox(kind, []byte{version, 0, 0, 0}, joined(parts...))
}

func u16(values ...int) (b []byte) {
	for _, v := range values {
		b = binary.BigEndian.AppendUint16(b, uint16(v))
	}
	return b
}

func u32(values ...int) (b []byte) {
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// bmffItem is an item of heif. Its number is its place in the list, from 1.
type bmffItem struct {
	kind          string
	content       string
	width, height int
	inputs        []int
	inBox         bool // in idat
}

// heif returns a file of items, of which the first is the primary one. more are boxes in the meta
// box.
func heif(brand string, items []bmffItem, more ...[]byte) []byte {
	head := bmffBox("ftyp", []byte(brand), u32(0), []byte("mif1"+brand))
	var refs, idat, mdat, sizes, uses []byte
	infos := make([]byte, 0, 21*len(items))
	for i, it := range items {
		id := i + 1
		infos = append(infos, fullBox("infe", 2, u16(id, 0), []byte(it.kind), []byte{0})...)
		if it.inputs != nil {
			refs = append(refs, bmffBox("dimg", u16(id, len(it.inputs)), u16(it.inputs...))...)
		}
		if it.width > 0 {
			sizes = append(sizes, fullBox("ispe", 0, u32(it.width, it.height))...)
			uses = append(uses, joined(u16(id), []byte{1, byte(len(sizes) / 20)})...)
		}
	}
	meta := func(start int) []byte {
		places := make([]byte, 0, 16*len(items))
		idat, mdat = nil, nil
		for i, it := range items {
			method, at := 0, start+len(mdat)
			if it.inBox {
				method, at = 1, len(idat)
				idat = append(idat, it.content...)
			} else {
				mdat = append(mdat, it.content...)
			}
			places = append(places, joined(u16(i+1, method, 0, 1), u32(at, len(it.content)))...)
		}
		return fullBox("meta", 0, fullBox("hdlr", 0, u32(0), []byte("pict"), u32(0, 0, 0), []byte{0}), fullBox("pitm", 0, u16(1)),
			fullBox("iinf", 0, u16(len(items)), infos), fullBox("iref", 0, refs),
			bmffBox("iprp", bmffBox("ipco", sizes), fullBox("ipma", 0, u32(len(uses)/4), uses)),
			bmffBox("idat", idat), fullBox("iloc", 1, []byte{0x44, 0}, u16(len(items)), places), joined(more...))
	}
	size := len(meta(0))
	return joined(head, meta(len(head)+size+8), bmffBox("mdat", mdat))
}

// gridOf returns the content of a grid of one row.
func gridOf(columns, width, height int) string {
	return string(joined([]byte{0, 0, 0, byte(columns - 1)}, u16(width, height)))
}
