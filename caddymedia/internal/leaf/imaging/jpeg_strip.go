package imaging

import (
	"bytes"
	"encoding/binary"
)

// Prefixes of application segments.
const (
	xmpPrefix         = "http://ns.adobe.com/xap/1.0/\x00" // ISO 16684-3
	credentialsPrefix = "JP"                               // ISO/IEC 19566-5, used by C2PA
	isoPrefix         = "urn:iso:std:iso:ts:21496:-1\x00"  // ISO 21496-1
	mpfPrefix         = "MPF\x00"                          // CIPA DC-007
	maxISO            = 256                                // of a gain map of three channels: 170
)

// heldSegment is a segment that [layout.hold] keeps.
type heldSegment struct {
	held int
	at   int64  // offset of data in the file
	data []byte // nil if there is none
}

// describes reports whether parts that describe the image remain.
func (j *jpegSegments) describes() bool { return j.strip == StripLocation && !j.second }

// hold holds the segment whose data b is next.
func (j *jpegSegments) hold(s *source, b []byte) int {
	return j.info.hold(s.offset()-4, s.offset()+int64(len(b)))
}

// rewrite replaces a segment with data b by one with the rest of it behind the prefix. It reports
// whether the segment remains because it has nothing else.
func (j *jpegSegments) rewrite(marker byte, b []byte, prefix string, rest []byte) (kept bool) {
	if rest != nil && bytes.Equal(b[len(prefix):], rest) {
		return true
	}
	if own := jpegSegment(marker, prefix, rest); own != nil {
		j.info.insert(j.info.mark(), own)
	}
	return false
}

// jpegSegment returns a segment, or nil if there is no data, or too much of it.
func jpegSegment(marker byte, prefix string, data []byte) []byte {
	n := 2 + len(prefix) + len(data)
	if data == nil || n > 1<<16-1 {
		return nil
	}
	b := append([]byte{0xFF, marker, byte(n >> 8), byte(n)}, prefix...)
	return append(b, data...)
}

// keepXMP inspects XMP. That of the first image is held, because it may describe a gain map behind
// it.
func (j *jpegSegments) keepXMP(s *source, b []byte) (kept bool) {
	packet, ok := bytes.CutPrefix(b, []byte(xmpPrefix))
	if !ok || j.scans > 0 || j.xmp.data != nil {
		return false
	}
	if !j.second {
		j.xmp = heldSegment{j.hold(s, b), s.offset(), bytes.Clone(b)}
		return false
	}
	rest := xmpFilter{gainMap: true}.apply(packet)
	j.gainMap = j.gainMap || rest != nil
	return j.rewrite(jpegAPP0+1, b, xmpPrefix, rest)
}

// finish decides on the parts that are held.
func (j *jpegSegments) finish(s *source) error {
	if j.strip == StripOff {
		return nil
	}
	index, gain, err := j.findGainMap(s)
	if err != nil {
		return err
	}
	filter := xmpFilter{describe: j.strip == StripLocation}
	if gain != nil {
		filter.gainMap, filter.length = true, gain.position(len(gain.spans))
	}
	if j.xmp.data != nil {
		packet := j.xmp.data[len(xmpPrefix):]
		if rest := filter.apply(packet); !bytes.Equal(rest, packet) {
			j.info.replace(j.xmp.held, jpegSegment(jpegAPP0+1, xmpPrefix, rest))
		}
	}
	changed := false
	if gain != nil {
		index.first = j.info.add(*gain)
		changed = !bytes.Equal(j.mpf.data, j.newIndex(index))
	} else {
		for _, held := range j.iso {
			j.info.replace(held, nil)
		}
		if j.mpf.data != nil {
			j.info.replace(j.mpf.held, nil)
		}
	}
	if !changed && !j.info.HasMetadata() {
		return nil
	}
	for _, held := range j.credentials {
		j.info.replace(held, nil)
	}
	if gain != nil {
		j.info.replace(j.mpf.held, jpegSegment(jpegAPP0+2, "", j.newIndex(index)))
	}
	return nil
}

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

// claimsGainMap reports whether the first image has an index of images, and is described as one
// with a gain map.
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

// findGainMap returns the layout of the gain map behind the image, or nil if there is none. The
// other images of the index are previews, and parts of them.
func (j *jpegSegments) findGainMap(s *source) (index imageIndex, gain *layout, err error) {
	if j.mpf.data == nil {
		return imageIndex{}, nil, nil
	}
	order, images := mpfImages(j.mpf.data[len(mpfPrefix):], j.mpf.at+int64(len(mpfPrefix)))
	for i, image := range images {
		if i == 0 || image.at < s.offset() { // within the part that is read
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

// newIndex returns the data of a segment with the index of the image and its gain map, in the form
// in which the library of Ultra HDR writes it.
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
