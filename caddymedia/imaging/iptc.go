package imaging

import (
	"bytes"
	"slices"
)

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

// placeDatasets are the numbers of the datasets of IPTC record 2 that are locations or previews (IPTC
// IIM 4.2, chapter 6): content location code and name, city, sublocation, province, country code and
// name; the image of a caption; format, version and data of a preview.
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
