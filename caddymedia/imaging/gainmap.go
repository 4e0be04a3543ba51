package imaging

import "encoding/binary"

// Tags of the index of images in a JPEG (CIPA DC-007, section 5.2.3).
const (
	tagIndexVersion = 0xB000
	tagIndexCount   = 0xB001
	tagIndexEntries = 0xB002
)

const (
	indexEntry = 16 // attributes, size, offset, numbers of two images
	// maxImages is the largest number of images in a file that are looked at.
	maxImages = 16
)

// imageIndex is the index of a file with a gain map.
type imageIndex struct {
	order binary.AppendByteOrder
	// attributes are those of the first image and of the gain map.
	attributes [2]uint32
	first      int // number of the first span of the gain map
}

// mpfImage is an entry of an index.
type mpfImage struct {
	attributes uint32
	at         int64 // offset in the file
}

// mpfImages returns the images of an index, which is at an offset of the file.
func mpfImages(b []byte, at int64) (order binary.ByteOrder, images []mpfImage) {
	if order = tiffOrder(b); order == nil {
		return nil, nil
	}
	e := tiffEditor{in: b, order: order}
	entries, _, _ := e.entries(int64(order.Uint32(b[4:])))
	for ; len(entries) > 0; entries = entries[12:] {
		value, known := e.value(entries[:12])
		if order.Uint16(entries) != tagIndexEntries || !known || value.to > int64(len(b)) {
			continue
		}
		for data := b[value.from:value.to]; len(data) >= indexEntry && len(images) < maxImages; data = data[indexEntry:] {
			images = append(images, mpfImage{order.Uint32(data), at + int64(order.Uint32(data[8:]))})
		}
		return order, images
	}
	return nil, nil
}

// claimsGainMap reports whether the first image has an index of images, and is described as one with
// a gain map.
func (j *jpegSegments) claimsGainMap() bool {
	if j.mpf.data == nil {
		return false
	}
	if len(j.iso) == 0 && (j.xmp.data == nil || xmpFilter{gainMap: true}.apply(j.xmp.data[len(xmpPrefix):]) == nil) {
		return false
	}
	_, images := mpfImages(j.mpf.data[len(mpfPrefix):], 0)
	return len(images) > 1
}

// findGainMap returns the layout of the gain map behind the image, or nil if there is none. The other
// images of the index are previews, and parts of them.
func (j *jpegSegments) findGainMap(s *source) (index imageIndex, gain *layout, err error) {
	if j.mpf.data == nil {
		return imageIndex{}, nil, nil
	}
	order, images := mpfImages(j.mpf.data[len(mpfPrefix):], j.mpf.at+int64(len(mpfPrefix)))
	for i, image := range images {
		if i == 0 || image.at < s.offset() { // before what is read
			continue
		}
		if _, err := s.readAt(image.at, 0); err != nil {
			return imageIndex{}, nil, err
		}
		second := jpegSegments{info: &Info{}, strip: j.strip, second: true}
		err := second.walk(s)
		if err := s.ioError(); err != nil {
			return imageIndex{}, nil, err
		}
		if err == nil && second.gainMap {
			attributes := [2]uint32{images[0].attributes, image.attributes}
			return imageIndex{order: order.(binary.AppendByteOrder), attributes: attributes}, &second.info.layout, nil
		}
	}
	return imageIndex{}, nil, nil
}

// newIndex returns the data of a segment with the index of the image and its gain map, in the form in
// which the library of Ultra HDR writes it.
func (j *jpegSegments) newIndex(i imageIndex) []byte {
	const (
		head  = 8 + 2 + 3*12 + 4 // of the TIFF structure, before the entries
		total = len(mpfPrefix) + head + 2*indexEntry
	)
	at := j.info.position(j.mpf.held) + 4 + int64(len(mpfPrefix)) // of the TIFF structure
	image := j.info.position(i.first) + int64(total-len(j.mpf.data))
	gainMap := j.info.position(len(j.info.spans)) - j.info.position(i.first)

	o, b := i.order, []byte(mpfPrefix)
	if o.String() == binary.LittleEndian.String() {
		b = append(b, "II*\x00"...)
	} else {
		b = append(b, "MM\x00*"...)
	}
	b = o.AppendUint16(o.AppendUint32(b, 8), 3)
	b = append(indexTag(o, b, tagIndexVersion, 7, 4), "0100"...)
	b = o.AppendUint32(indexTag(o, b, tagIndexCount, 4, 1), 2)
	b = o.AppendUint32(indexTag(o, b, tagIndexEntries, 7, 2*indexEntry), head)
	for _, v := range []int64{
		0, // no further directory
		int64(i.attributes[0]), image, 0, 0,
		int64(i.attributes[1]), gainMap, image - at, 0,
	} {
		b = o.AppendUint32(b, uint32(v))
	}
	return b
}

// indexTag appends an entry of a directory without its value.
func indexTag(o binary.AppendByteOrder, b []byte, tag, kind uint16, count uint32) []byte {
	return o.AppendUint32(o.AppendUint16(o.AppendUint16(b, tag), kind), count)
}
