package imaging_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// TestStripEXIFSharedTables: many references to one directory are not read again and again.
func TestStripEXIFSharedTables(t *testing.T) {
	t.Parallel()
	order := binary.BigEndian
	const entries = 1800
	size := uint32(2 + 12*entries + 4)
	table := func(tag uint16, v uint32) []byte {
		one := tiffEntry{tag, 4, 1, [4]byte(order.AppendUint32(nil, v))}
		return exif(order, slices.Repeat([]tiffEntry{one}, entries)...)
	}
	data := joined(table(0x8769, 8+size), table(0xA005, 8+2*size)[8:], table(0x0001, 0)[8:])
	jpg := drawJPEG(t, 8, 8)
	begun := time.Now()
	if _, got := stripBy(t, withSegments(jpg, exifSegment(data)), "jpg", imaging.StripLocation); !bytes.Equal(got, jpg) {
		t.Error("it is left")
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestStripEXIFOfOthers: tags of other standards, between those of EXIF, are removed.
func TestStripEXIFOfOthers(t *testing.T) {
	t.Parallel()
	jpg := drawJPEG(t, 8, 8)
	for name, tag := range map[string]uint16{
		"XMP": 0x02BC, "GeoTIFF scale": 0x830E, "IPTC": 0x83BB, "GeoTIFF point": 0x8482, "GeoTIFF matrix": 0x85D8,
		"Photoshop": 0x8649, "GeoTIFF keys": 0x87AF, "GeoTIFF text": 0x87B1, "TIFF/EP history": 0x9213, "layers of Photoshop": 0x935C,
	} {
		data := exif(binary.BigEndian, tiffEntry{0x0112, 3, 1, [4]byte{0, 6}}, tiffEntry{tag, 7, uint32(len(imagingtest.Place)), [4]byte{0, 0, 0, 38}})
		data = append(data, imagingtest.Place...)
		_, got := stripBy(t, withSegments(jpg, exifSegment(data)), "jpg", imaging.StripLocation)
		if bytes.Contains(got, []byte(imagingtest.Place)) {
			t.Errorf("%s is left", name)
		}
	}
}

// FuzzPlanted: whatever EXIF has besides a whole location, that is removed. The rest consists of
// other entries of the first directory, the position of the next one, and data behind the location.
func FuzzPlanted(f *testing.F) {
	orders := []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian}
	f.Add([]byte("\x01\x0e\x00\x02\x00\x00\x00\x08\x00\x00\x00\x60"), []byte("a photo"), uint32(0), false)
	f.Add([]byte("\x69\x87\x04\x00\x01\x00\x00\x00\x50\x00\x00\x00"), []byte{}, uint32(40), true)
	pic, jpg := drawPNG(f, 8, 8), drawJPEG(f, 8, 8)
	pixels := bitstream(drawWebP(f, opaque(16, 8), webp.Options{}))
	f.Fuzz(func(t *testing.T, entries, data []byte, next uint32, little bool) {
		if len(entries)+len(data) > 50_000 || bytes.Contains(data, []byte(imagingtest.Place)) {
			return
		}
		order := orders[0]
		if little {
			order = orders[1]
		}
		tiff := planted(order, entries[:len(entries)/12*12], data, next)
		for ext, image := range map[string][]byte{
			"jpg":  withSegments(jpg, exifSegment(tiff)),
			"png":  withChunks(pic, chunk("eXIf", tiff)),
			"webp": riffFile(extended(flagEXIF, 16, 8), pixels, webpChunk("EXIF", tiff)),
		} {
			for _, mode := range []imaging.StripMode{imaging.StripOn, imaging.StripLocation} {
				if _, got := stripBy(t, image, ext, mode); bytes.Contains(got, []byte(imagingtest.Place)) {
					t.Errorf("%s, %s: the location is left", ext, mode)
				}
			}
		}
	})
}

// planted returns EXIF with other entries and a location, which has the mark of a place.
func planted(order binary.AppendByteOrder, entries, data []byte, next uint32) []byte {
	b := exif(order)[:8]
	b = append(order.AppendUint16(b, uint16(len(entries)/12+1)), entries...)
	entry := func(tag, kind uint16, count, value int) {
		b = order.AppendUint16(order.AppendUint16(b, tag), kind)
		b = order.AppendUint32(order.AppendUint32(b, uint32(count)), uint32(value))
	}
	entry(0x8825, 4, 1, len(b)+12+4)
	b = order.AppendUint16(order.AppendUint32(b, next), 1)
	entry(0x001B, 7, len(imagingtest.Place), len(b)+12+4)
	b = order.AppendUint32(b, 0)
	return append(append(b, imagingtest.Place...), data...)
}
