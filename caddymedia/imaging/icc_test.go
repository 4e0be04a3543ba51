package imaging_test

import (
	"bytes"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
)

func TestProfileOfJPEG(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	jpg := drawJPEG(t, 8, 8)
	grey, _ := drawGrey(t, 8, 8)
	rgb, large := profile("RGB ", 500), profile("RGB ", most)
	for _, c := range []struct {
		name     string
		image    []byte
		segments [][]byte
		want     []byte
	}{
		{"one part", jpg, [][]byte{iccSegment(1, 1, rgb)}, rgb},
		{"in order", jpg, [][]byte{iccSegment(1, 2, rgb[:100]), iccSegment(2, 2, rgb[100:])}, rgb},
		{"out of order", jpg, [][]byte{iccSegment(2, 2, rgb[100:]), iccSegment(1, 2, rgb[:100])}, rgb},
		{"an empty part", jpg, [][]byte{iccSegment(1, 2, rgb), iccSegment(2, 2, nil)}, rgb},
		{"largest", jpg, [][]byte{iccSegment(1, 2, large[:40000]), iccSegment(2, 2, large[40000:])}, large},
		{"too large", jpg, [][]byte{iccSegment(1, 2, large[:40000]), iccSegment(2, 2, append(large[40000:], 0))}, nil},
		{"far too large", jpg, [][]byte{
			iccSegment(1, 3, large[:60000]), iccSegment(2, 3, large[:60000]), iccSegment(3, 3, large[:60000]),
		}, nil},
		{"missing part", jpg, [][]byte{iccSegment(1, 2, rgb)}, nil},
		{"duplicate part", jpg, [][]byte{iccSegment(1, 2, rgb), iccSegment(1, 2, rgb), iccSegment(2, 2, nil)}, nil},
		{"duplicate whole", jpg, [][]byte{iccSegment(1, 1, rgb), iccSegment(1, 1, rgb)}, nil},
		{"part after the last", jpg, [][]byte{iccSegment(1, 1, rgb), iccSegment(2, 1, rgb)}, nil},
		{"another total", jpg, [][]byte{iccSegment(1, 2, rgb), iccSegment(2, 3, nil)}, nil},
		{"a smaller total", jpg, [][]byte{iccSegment(1, 2, rgb), iccSegment(1, 1, rgb)}, nil},
		{"part 0", jpg, [][]byte{iccSegment(0, 1, rgb)}, nil},
		{"total of 0", jpg, [][]byte{iccSegment(0, 0, rgb)}, nil},
		{"no number", jpg, [][]byte{textSegment(0xE2, "ICC_PROFILE\x00\x01")}, nil},
		{"nothing but the name", jpg, [][]byte{textSegment(0xE2, "ICC_PROFILE\x00")}, nil},
		{"another APP2", jpg, [][]byte{textSegment(0xE2, "MPF\x00"), iccSegment(1, 1, rgb)}, rgb},
		{"shortest", jpg, [][]byte{iccSegment(1, 1, rgb[:128])}, rgb[:128]},
		{"too short", jpg, [][]byte{iccSegment(1, 1, rgb[:127])}, nil},
		{"of CMYK", jpg, [][]byte{iccSegment(1, 1, profile("CMYK", 500))}, nil},
		{"of RGB, pixels of CMYK", headerJPEG(0xC0, 0x11, 0x11, 0x11, 0x11), [][]byte{iccSegment(1, 1, rgb)}, nil},
		{"of RGB, pixels grey", grey, [][]byte{iccSegment(1, 1, rgb)}, rgb},
		{"of grey", grey, [][]byte{iccSegment(1, 1, profile("GRAY", 500))}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			info, _ := strip(t, withSegments(c.image, c.segments...), "jpg")
			if !bytes.Equal(info.Profile, c.want) || (info.Profile == nil) != (c.want == nil) {
				t.Errorf("got %d bytes, want %d", len(info.Profile), len(c.want))
			}
		})
	}
	late, stripped := strip(t, beforeEnd(jpg, 2, iccSegment(1, 1, rgb)), "jpg")
	if late.Profile != nil || !bytes.Equal(stripped, jpg) {
		t.Error("a profile behind the scan counts")
	}
}

func TestProfileOfPNG(t *testing.T) {
	t.Parallel()
	pic := drawPNG(t, 8, 8)
	_, grey := drawGrey(t, 8, 8)
	rgb, other := profile("RGB ", 500), profile("RGB ", 600)
	deflate := deflated(rgb)
	flipped := bytes.Clone(deflate)
	flipped[len(flipped)-1] ^= 1
	damaged := profileChunk(rgb)
	damaged[len(damaged)-1] ^= 1
	for _, c := range []struct {
		name string
		data []byte
		want []byte
	}{
		{"good", withChunks(pic, profileChunk(rgb)), rgb},
		{"largest", withChunks(pic, profileChunk(profile("RGB ", 64<<10))), profile("RGB ", 64<<10)},
		{"too large", withChunks(pic, profileChunk(profile("RGB ", 64<<10+1))), nil},
		{"inflating to 64 MB", withChunks(pic, profileChunk(make([]byte, 64<<20))), nil},
		{"too short", withChunks(pic, profileChunk(rgb[:127])), nil},
		{"of CMYK", withChunks(pic, profileChunk(profile("CMYK", 500))), nil},
		{"grey pixels", withChunks(grey, profileChunk(rgb)), rgb},
		{"first of two", withChunks(pic, profileChunk(rgb), profileChunk(other)), rgb},
		{"first of two, broken", withChunks(pic, chunk("iCCP", nil), profileChunk(other)), nil},
		{"behind the palette", withChunks(pic, chunk("PLTE", make([]byte, 3)), profileChunk(rgb)), nil},
		{"behind the pixels", beforeEnd(pic, 12, profileChunk(rgb)), nil},
		{"wrong checksum", withChunks(pic, damaged), nil},
		{"no name", withChunks(pic, chunk("iCCP", deflate)), nil},
		{"name only", withChunks(pic, chunk("iCCP", []byte("name\x00"))), nil},
		{"no profile", withChunks(pic, chunk("iCCP", []byte("name\x00\x00"))), nil},
		{"another method", withChunks(pic, chunk("iCCP", append([]byte("name\x00\x01"), deflate...))), nil},
		{"cut off", withChunks(pic, chunk("iCCP", append([]byte("name\x00\x00"), deflate[:len(deflate)-9]...))), nil},
		{"wrong sum of zlib", withChunks(pic, chunk("iCCP", append([]byte("name\x00\x00"), flipped...))), nil},
		{"not compressed", withChunks(pic, chunk("iCCP", append([]byte("name\x00\x00"), rgb...))), nil},
		{"chunk larger than any buffer", withChunks(pic, chunk("iCCP", append([]byte("name\x00\x00"), make([]byte, 1<<20)...))), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			info, _ := strip(t, c.data, "png")
			if !bytes.Equal(info.Profile, c.want) || (info.Profile == nil) != (c.want == nil) {
				t.Errorf("got %d bytes, want %d", len(info.Profile), len(c.want))
			}
		})
	}
}

// TestProfileIsNotInTheBuffer: the buffer of a check is reused by the next one, so nothing returned
// may point into it.
func TestProfileIsNotInTheBuffer(t *testing.T) {
	t.Parallel()
	rgb := profile("RGB ", 500)
	jpg := withSegments(drawJPEG(t, 8, 8), iccSegment(1, 1, rgb), exifSegment(turned(6)))
	pic := withChunks(drawPNG(t, 8, 8), profileChunk(rgb))
	a, _ := strip(t, jpg, "jpg")
	b, _ := strip(t, pic, "png")
	for range 10 {
		_, _ = check(bytes.Repeat([]byte{0xAA}, 1<<17), "jpg", imaging.Options{})
	}
	if !bytes.Equal(a.Profile, rgb) || !bytes.Equal(b.Profile, rgb) {
		t.Error("the profile has changed")
	}
}
