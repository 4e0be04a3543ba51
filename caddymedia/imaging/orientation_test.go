package imaging_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
)

// orientationOf reads EXIF in both of the formats that hold it, which must agree.
func orientationOf(t testing.TB, jpg, pic, tiff []byte) imaging.Orientation {
	t.Helper()
	a, err := check(withSegments(jpg, exifSegment(tiff)), "jpg", imaging.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := check(withChunks(pic, chunk("eXIf", tiff)), "png", imaging.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Orientation != b.Orientation {
		t.Errorf("a JPEG says %d, a PNG %d", a.Orientation, b.Orientation)
	}
	return a.Orientation
}

func TestOrientation(t *testing.T) {
	t.Parallel()
	jpg, pic := drawJPEG(t, 8, 8), drawPNG(t, 8, 8)
	le, be := binary.LittleEndian, binary.BigEndian
	six := tiffEntry{0x0112, 3, 1, [4]byte{0, 6}}
	good := exif(be, six)
	patched := func(at int, b ...byte) []byte {
		out := bytes.Clone(good)
		copy(out[at:], b)
		return out
	}
	for _, c := range []struct {
		name string
		tiff []byte
		want imaging.Orientation
	}{
		{"big endian", good, 6},
		{"little endian", exif(le, tiffEntry{0x0112, 3, 1, [4]byte{6}}), 6},
		{"in the other byte order", exif(le, six), 1},
		{"after other entries", turned(8), 8},
		{"the first of two", exif(be, tiffEntry{0x0112, 3, 1, [4]byte{0, 3}}, six), 3},
		{"directory at the end", append([]byte("MM\x00*\x00\x00\x00\x0cgaps"), good[8:]...), 6},
		{"directory without an end", good[:22], 6},
		{"nothing", nil, 1},
		{"no structure", []byte("Copyright"), 1},
		{"half a header", good[:6], 1},
		{"header only", good[:8], 1},
		{"half a count", good[:9], 1},
		{"half an entry", good[:21], 1},
		{"mixed byte orders", patched(0, 'I', 'I'), 1},
		{"wrong magic", patched(3, '+'), 1},
		{"no entries", patched(8, 0, 0), 1},
		{"more entries than there are", patched(8, 0xFF, 0xFF), 6},
		{"more entries than there are, none of them it", patched(8, 0xFF, 0xFF, 1, 0x13), 1},
		{"directory at the header", patched(4, 0, 0, 0, 0), 1},
		{"directory at the last byte", patched(4, 0, 0, 0, 25), 1},
		{"directory behind the end", patched(4, 0, 0, 1, 0), 1},
		{"directory far behind the end", patched(4, 0xFF, 0xFF, 0xFF, 0xFF), 1},
		{"next directory is itself", patched(22, 0, 0, 0, 8), 6},
		{"as a byte", patched(13, 1), 1},
		{"as a long", patched(13, 4), 1},
		{"two values", patched(17, 2), 1},
		{"no value", patched(17, 0), 1},
		{"huge count", patched(14, 0xFF, 0xFF, 0xFF, 0xFF), 1},
		{"wrong type before the right one", exif(be, tiffEntry{0x0112, 4, 1, [4]byte{0, 0, 0, 3}}, six), 6},
		{"0", patched(19, 0), 1},
		{"9", patched(19, 9), 1},
		{"256", patched(18, 1, 0), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := orientationOf(t, jpg, pic, c.tiff); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
	for o := range byte(9) {
		if got, want := orientationOf(t, jpg, pic, turned(o)), imaging.Orientation(max(1, o)); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
}

func TestWhichEXIFCounts(t *testing.T) {
	t.Parallel()
	jpg, pic := drawJPEG(t, 8, 8), drawPNG(t, 8, 8)
	damaged := chunk("eXIf", turned(6))
	damaged[len(damaged)-1] ^= 1
	for _, c := range []struct {
		name, ext string
		data      []byte
		want      imaging.Orientation
	}{
		{"first of two", "jpg", withSegments(jpg, exifSegment(turned(6)), exifSegment(turned(3))), 6},
		{"first of two, also when it says nothing", "jpg", withSegments(jpg, exifSegment(nil), exifSegment(turned(3))), 1},
		{"behind XMP", "jpg", withSegments(jpg, textSegment(0xE1, xmpName+"<x/>"), exifSegment(turned(6))), 6},
		{"behind the scan", "jpg", beforeEnd(jpg, 2, exifSegment(turned(6))), 1},
		{"in a comment", "jpg", withSegments(jpg, segment(0xFE, append([]byte("Exif\x00\x00"), turned(6)...))), 1},
		{"of another name", "jpg", withSegments(jpg, segment(0xE1, append([]byte("EXIF\x00\x00"), turned(6)...))), 1},
		{"largest segment", "jpg", withSegments(jpg, exifSegment(append(turned(6), make([]byte, 65400)...))), 6},
		{"first of two", "png", withChunks(pic, chunk("eXIf", turned(6)), chunk("eXIf", turned(3))), 6},
		{"behind the pixels", "png", beforeEnd(pic, 12, chunk("eXIf", turned(6))), 6},
		{"wrong checksum", "png", withChunks(pic, damaged), 1},
		{"chunk larger than any buffer", "png", withChunks(pic, chunk("eXIf", append(turned(6), make([]byte, 1<<20)...))), 6},
		{"chunk and its checksum fill the buffer", "png", withChunks(pic, chunk("eXIf", append(turned(6), make([]byte, 65532-64)...))), 6},
		{"chunk one larger", "png", withChunks(pic, chunk("eXIf", append(turned(6), make([]byte, 65533-64)...))), 6},
	} {
		t.Run(c.ext+" "+c.name, func(t *testing.T) {
			t.Parallel()
			info, stripped := strip(t, c.data, c.ext)
			if info.Orientation != c.want {
				t.Errorf("got %d, want %d", info.Orientation, c.want)
			}
			if again, _ := strip(t, stripped, c.ext); again.Orientation != c.want {
				t.Errorf("stripped: got %d, want %d", again.Orientation, c.want)
			}
			if bytes.Contains(stripped, []byte("GPS")) {
				t.Error("the location is left")
			}
		})
	}
}
