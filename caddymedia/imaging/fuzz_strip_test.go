package imaging_test

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
)

// assembled builds an image from a recipe. Each block of the recipe is a kind, a position, a
// length and content. Mutating the bytes of a whole image rarely makes a valid one.
func assembled(recipe []byte, whole map[string][]byte, ext string) []byte {
	var front, back []byte
	for len(recipe) >= 3 {
		kind, place, n := recipe[0], recipe[1], min(int(recipe[2]), len(recipe)-3)
		block := fuzzBlock(ext, kind, recipe[3:3+n])
		recipe = recipe[3+n:]
		if place&1 == 0 {
			front = append(front, block...)
		} else {
			back = append(back, block...)
		}
	}
	data := whole[ext]
	start, end := 2, 2
	switch ext {
	case "png":
		start, end = 33, 12
	case "gif":
		start, end = 13, 1
	}
	return joined(data[:start], front, data[start:len(data)-end], back, data[len(data)-end:], recipe)
}

func fuzzBlock(ext string, kind byte, content []byte) []byte {
	switch ext {
	case "jpg":
		heads := []string{"", "JFIF\x00", "Exif\x00\x00MM\x00*\x00\x00\x00\x08", "ICC_PROFILE\x00\x01", "Adobe"}
		head := heads[int(kind>>4)%len(heads)]
		marker := []byte{0xE0, 0xE1, 0xE2, 0xEE, 0xFE, 0xDD, 0xDA, 0xC4, 0xE5, 0xDC, 0xC2, 0xF0, 0x01, 0xE0, 0xE1, 0xE2}[kind&15]
		if kind == 255 {
			return content // stray
		}
		return textSegment(marker, head+string(content))
	case "png":
		kinds := []string{"tEXt", "eXIf", "iCCP", "gAMA", "IDAT", "PLTE", "acTL", "fcTL", "fdAT", "prVt", "PRVT"}
		if kind&0x80 != 0 {
			content = exif(binary.BigEndian, tiffEntry{0x0112, 3, 1, [4]byte{0, kind & 15}})
		}
		return chunk(kinds[int(kind)%len(kinds)], content)
	}
	labels := []byte{0xFE, 0xF9, 0x01, 0xFF, 0x42}
	if kind&0x80 != 0 {
		content = []byte("NETSCAPE2.0")
	}
	return joined([]byte{'!', labels[int(kind)%len(labels)], byte(len(content))}, content, make([]byte, min(1, len(content))))
}

// FuzzStrip: a stripped image is valid, has the same Info, and has no further metadata.
func FuzzStrip(f *testing.F) {
	exts := []string{"jpg", "png", "gif"}
	rgb := profile("RGB ", 200)
	jpg, pic := drawJPEG(f, 16, 16), drawPNG(f, 16, 16)
	jfif := textSegment(0xE0, "JFIF\x00\x01\x02\x01\x00H\x00H\x01\x01rgb")
	f.Add(append(withSegments(jpg, jfif, exifSegment(turned(6)), iccSegment(1, 1, rgb), textSegment(0xFE, "x")), "tail"...), uint8(0))
	f.Add(beforeEnd(jpg, 2, exifSegment(turned(6)), textSegment(0xEE, "Adobe\x00\x64\x00\x00\x00\x00\x01")), uint8(0))
	f.Add(headerJPEG(0xC2, 0x22, 0x11, 0x11), uint8(0))
	f.Add(withChunks(pic, chunk("eXIf", turned(6)), profileChunk(rgb), chunk("tEXt", []byte("x"))), uint8(1))
	f.Add(beforeEnd(withChunks(pic, chunk("acTL", make([]byte, 8)), frameChunk(4, 4)), 12, chunk("eXIf", turned(3))), uint8(1))
	f.Add(joined(manyFrames(2, 4, 4)[:13], []byte("!\xfe\x01a\x00!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"), manyFrames(2, 4, 4)[13:]), uint8(2))
	whole := map[string][]byte{"jpg": jpg, "png": pic, "gif": manyFrames(2, 4, 4)}
	for kind := range uint8(3) {
		f.Add([]byte("\x21\x00\x12\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00\x81\x01\x00\x04\x00\x03abctail"), 3+kind)
	}
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		ext := exts[int(kind)%len(exts)]
		made := kind >= 3
		if made {
			data = assembled(data, whole, ext)
		}
		if _, err := check(data, ext, imaging.Options{}); err != nil {
			return
		}
		info, once := strip(t, data, ext)
		again, twice := strip(t, once, ext)
		want, got := described(info), described(again)
		want.End = int64(len(once))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("was %+v, is %+v", want, got)
		}
		if again.HasMetadata() || !bytes.Equal(once, twice) {
			t.Error("stripping again changes it")
		}
		if info.HasMetadata() == bytes.Equal(once, data) {
			t.Errorf("HasMetadata is %t", info.HasMetadata())
		}
		if o := info.Orientation; o < 1 || o > 8 {
			t.Errorf("orientation %d", o)
		}
		if before, err := decode(data, ext); err == nil && !made {
			if after, err := decode(once, ext); err != nil || !reflect.DeepEqual(before, after) {
				t.Errorf("the pixels differ: %v", err)
			}
		}
	})
}

func FuzzOrientation(f *testing.F) {
	jpg, pic := drawJPEG(f, 8, 8), drawPNG(f, 8, 8)
	for o := range byte(10) {
		f.Add(turned(o))
	}
	f.Add(exif(binary.LittleEndian, tiffEntry{0x0112, 3, 1, [4]byte{6}}))
	f.Fuzz(func(t *testing.T, tiff []byte) {
		if len(tiff) > 65500 {
			return
		}
		o := orientationOf(t, jpg, pic, tiff)
		if o < 1 || o > 8 || o != imaging.Upright && !bytes.Contains(tiff, []byte{byte(o)}) {
			t.Errorf("orientation %d", o)
		}
		_, stripped := strip(t, withSegments(jpg, exifSegment(tiff)), "jpg")
		if again, _ := strip(t, stripped, "jpg"); again.Orientation != o {
			t.Errorf("was %d, is %d", o, again.Orientation)
		}
	})
}
