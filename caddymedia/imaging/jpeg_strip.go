package imaging

import "bytes"

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

// finishXMP replaces the XMP of the first image by the rest of it.
func (j *jpegSegments) finishXMP(filter xmpFilter) {
	if j.xmp.data == nil {
		return
	}
	packet := j.xmp.data[len(xmpPrefix):]
	if rest := filter.apply(packet); !bytes.Equal(rest, packet) {
		j.info.replace(j.xmp.held, jpegSegment(jpegAPP0+1, xmpPrefix, rest))
	}
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
	j.finishXMP(filter)
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
