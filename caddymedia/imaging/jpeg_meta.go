package imaging

import "bytes"

// jfifSize is the length of a JFIF segment without a thumbnail (JFIF 1.02), without the length
// field.
const jfifSize = 14

// inspect records the properties in a segment of n bytes and reports whether the image needs it.
// It consumes nothing. Segments that no standard requires for decoding are dropped, since they may
// contain anything.
func (j *jpegSegments) inspect(s *source, marker byte, n int) (kept bool, err error) {
	switch {
	case marker >= jpegAPP0:
		return j.application(s, marker, n)
	case marker == jpegSOS:
		return true, j.scan(s, n)
	case marker == jpegDHT, marker == jpegJPG, marker == jpegDAC, jpegSOF15 < marker && marker <= jpegEXP:
		return true, nil
	case jpegSOF0 <= marker && marker <= jpegSOF15:
		return true, j.frame(s, marker, n)
	}
	return false, nil
}

// frame reads the first frame header (ITU-T T.81, B.2.2): six bytes, and three for each component.
func (j *jpegSegments) frame(s *source, marker byte, n int) error {
	if j.framed || n < 6 {
		return nil
	}
	j.framed = true
	b, err := s.Peek(min(n, 18))
	if err != nil {
		return err
	}
	j.info.Progressive = marker == jpegSOF2
	j.info.Components = int(b[5])
	j.describe(b[6:])
	return nil
}

// describe reads the names and the sampling factors of the components. A larger factor makes a
// larger plane.
func (j *jpegSegments) describe(b []byte) {
	var names []byte
	sum, across, down := 0, 1, 1
	for ; len(b) >= 3; b = b[3:] {
		names = append(names, b[0])
		h, v := int(b[1]>>4), int(b[1]&15)
		sum, across, down = sum+h*v, max(across, h), max(down, v)
	}
	j.undrawn = names
	j.info.Samples = (2*sum + across*down - 1) / (across * down)
	j.info.RGB = j.info.RGB || string(names) == "RGB"
}

// scan records the components of a scan header that begins at the first coefficient (ITU-T T.81,
// B.2.3). A component without such a scan is flat, however many scans refine it: a decoder visits
// the whole image for a few bytes. In a sequential image each scan is complete.
func (j *jpegSegments) scan(s *source, n int) error {
	if n < 1 {
		return nil
	}
	b, err := s.Peek(n)
	if err != nil {
		return err
	}
	if components := int(b[0]); n > 1+2*components && (!j.info.Progressive || b[1+2*components] == 0) {
		for i := range components {
			j.undrawn = bytes.ReplaceAll(j.undrawn, b[1+2*i:][:1], nil)
		}
	}
	return nil
}

// application inspects an application segment or a comment. Readers use only those before the first
// scan, except that Go's decoder obeys JFIF and Adobe segments anywhere.
func (j *jpegSegments) application(s *source, marker byte, n int) (kept bool, err error) {
	number := marker - jpegAPP0
	switch number {
	case 0, 1, 2, 11, 13, 14:
	default:
		return marker == jpegCOM && j.describes(), nil
	}
	b, err := s.Peek(n)
	if err != nil {
		return false, err
	}
	switch number {
	case 0:
		return j.keepJFIF(b), nil
	case 1:
		return j.keepEXIF(b) || j.keepXMP(s, b), nil
	case 2:
		return j.keepColors(s, b), nil
	case 11:
		if j.describes() && bytes.HasPrefix(b, []byte(credentialsPrefix)) {
			j.credentials = append(j.credentials, j.hold(s, b))
		}
		return false, nil
	case 13:
		resources, ok := bytes.CutPrefix(b, []byte(photoshopPrefix))
		return ok && j.describes() && j.rewrite(marker, b, photoshopPrefix, withoutPlaces(resources)), nil
	}
	return j.keepAdobe(b), nil
}

// keepColors inspects an APP2 segment: a part of a profile, or of the description of a gain map.
func (j *jpegSegments) keepColors(s *source, b []byte) (kept bool) {
	switch {
	case j.scans > 0:
	case bytes.HasPrefix(b, []byte(iccPrefix)):
		j.icc.add(b[len(iccPrefix):])
		return true
	case bytes.HasPrefix(b, []byte(isoPrefix)) && len(b) <= maxISO:
		if j.second {
			j.gainMap = true
			return true
		}
		j.iso = append(j.iso, j.hold(s, b))
	case bytes.HasPrefix(b, []byte(mpfPrefix)) && j.mpf.data == nil && !j.second:
		j.mpf = heldSegment{j.hold(s, b), s.offset(), bytes.Clone(b)}
	}
	return false
}

// keepAdobe reports whether an APP14 segment remains. It states how the components encode colours
// (0: no transform). A segment with more than its twelve bytes is replaced by one without the rest.
func (j *jpegSegments) keepAdobe(b []byte) bool {
	const size = 12
	if !bytes.HasPrefix(b, []byte("Adobe")) || len(b) < size {
		return false
	}
	j.info.RGB = j.info.RGB || b[size-1] == 0 && j.info.Components != 4
	if len(b) > size {
		j.info.insert(j.info.mark(), append([]byte{0xFF, jpegAPP0 + 14, 0, 2 + size}, b[:size]...))
	}
	return len(b) == size
}

// keepJFIF reports whether an APP0 segment remains. One with a thumbnail is replaced by one
// without.
func (j *jpegSegments) keepJFIF(b []byte) bool {
	if !bytes.HasPrefix(b, []byte("JFIF\x00")) {
		return false
	}
	first := !j.jfif
	j.jfif = true
	if first && len(b) > jfifSize {
		own := append([]byte{0xFF, jpegAPP0, 0, 2 + jfifSize}, b[:jfifSize-2]...)
		j.info.insert(j.info.mark(), append(own, 0, 0)) // the sides of the thumbnail
	}
	return len(b) <= jfifSize
}

// keepEXIF reads the orientation from the first EXIF segment. It reports whether the segment
// remains. Otherwise one with the rest of it replaces it at the same position, so that readers find
// the orientation where they did.
func (j *jpegSegments) keepEXIF(b []byte) bool {
	tiff, ok := bytes.CutPrefix(b, []byte(exifPrefix))
	if !ok || j.exif || j.scans > 0 || j.second {
		return false
	}
	j.exif = true
	j.info.Orientation = parseOrientation(tiff)
	return j.rewrite(jpegAPP0+1, b, exifPrefix, j.strip.exif(tiff, j.info.Orientation))
}
