package imaging

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// Orientation is the EXIF tag of that name: how to turn the stored pixels for viewing. Its values
// say where the first stored row and the first stored column appear in the view:
//
//	1 top, left   2 top, right   3 bottom, right   4 bottom, left
//	5 left, top   6 right, top   7 right, bottom   8 left, bottom
type Orientation uint8

// Upright is the orientation of pixels that are stored as they are viewed.
const Upright Orientation = 1

// exifPrefix begins the APP1 segment of a JPEG that holds EXIF (EXIF 2.32, section 4.7.2).
const exifPrefix = "Exif\x00\x00"

// parseOrientation reads the orientation from the first directory of a TIFF structure (TIFF 6.0,
// section 2), the form of EXIF. Like browsers it accepts only a single SHORT.
func parseOrientation(tiff []byte) Orientation {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(tiff, []byte("II*\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(tiff, []byte("MM\x00*")):
		order = binary.BigEndian
	default:
		return Upright
	}
	if len(tiff) < 8 {
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
			return inRange(order.Uint16(entries[8:]))
		}
		entries = entries[12:]
	}
	return Upright
}

func inRange(value uint16) Orientation {
	if value < 1 || value > 8 {
		return Upright
	}
	return Orientation(value)
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

// pngChunk returns a chunk of a PNG.
func pngChunk(kind string, data []byte) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), kind...)
	b = append(b, data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}
