package imaging_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/imaging/imagingtest"
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

// chroma returns a cHRM chunk with the chromaticities of white, red, green and blue; gama returns a
// gAMA chunk.
func chroma(xy ...uint32) []byte { return chunk("cHRM", bigEndian(xy...)) }

func gama(gamma uint32) []byte { return chunk("gAMA", bigEndian(gamma)) }

func bigEndian(numbers ...uint32) (b []byte) {
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

var p3Chroma = chroma(31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000)

// TestColorLoss: colours that a variant cannot reproduce are reported as ColorLoss.
func TestColorLoss(t *testing.T) {
	t.Parallel()
	jpg, pic := drawJPEG(t, 8, 8), drawPNG(t, 8, 8)
	greyJPEG, greyPNG := drawGrey(t, 8, 8)
	cmykJPEG := headerJPEG(0xC0, 0x11, 0x11, 0x11, 0x11)
	rgb, grey, cmyk := profile("RGB ", 500), profile("GRAY", 500), profile("CMYK", 500)
	large := profile("RGB ", 64<<10+1)
	noise := make([]byte, 200_000) // does not compress, so the chunk is larger than any buffer
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		noise[i] = byte(x)
	}
	copy(noise, rgb)
	parts := func(p []byte) (segments [][]byte) {
		for part := range slices.Chunk(p, 40_000) {
			segments = append(segments, iccSegment(byte(len(segments)+1), byte((len(p)+39_999)/40_000), part))
		}
		return segments
	}
	for _, c := range []struct {
		name, ext string
		data      []byte
		loss      string
	}{
		{"none", "jpg", jpg, ""},
		{"RGB", "jpg", withSegments(jpg, parts(rgb)...), ""},
		{"RGB, large", "jpg", withSegments(jpg, parts(large)...), "64 KiB"},
		{"RGB, very large", "jpg", withSegments(jpg, parts(profile("RGB ", 300_000))...), "64 KiB"},
		{"RGB, large, a part missing", "jpg", withSegments(jpg, parts(large)[1:]...), ""},
		{"CMYK profile of RGB", "jpg", withSegments(jpg, parts(profile("CMYK", 100_000))...), ""},
		{"grey profile of RGB", "jpg", withSegments(jpg, parts(grey)...), ""},
		{"grey", "jpg", withSegments(greyJPEG, parts(grey)...), "grey"},
		{"grey of a CMYK profile", "jpg", withSegments(greyJPEG, parts(cmyk)...), ""},
		{"CMYK", "jpg", withSegments(cmykJPEG, parts(cmyk)...), "CMYK"},
		{"CMYK, large", "jpg", withSegments(cmykJPEG, parts(profile("CMYK", 500_000))...), "CMYK"},
		{"CMYK of an RGB profile", "jpg", withSegments(cmykJPEG, parts(large)...), ""},
		{"CMYK without a profile", "jpg", cmykJPEG, ""},

		{"PNG, large", "png", withChunks(pic, profileChunk(large)), "64 KiB"},
		{"PNG, a large chunk", "png", withChunks(pic, profileChunk(noise)), "64 KiB"},
		{"PNG of a CMYK profile", "png", withChunks(pic, profileChunk(cmyk), gama(100_000)), ""},
		{"PNG of a grey profile", "png", withChunks(pic, profileChunk(grey)), ""},
		{"grey PNG", "png", withChunks(greyPNG, profileChunk(grey)), "grey"},
		{"video colours", "png", withChunks(pic, chunk("cICP", []byte{12, 13, 0, 1}), profileChunk(rgb)), "cICP"},
		{"sRGB as video colours", "png", withChunks(pic, chunk("cICP", []byte{1, 13, 0, 1}), gama(100_000)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			info, err := check(c.data, c.ext, imaging.Options{})
			imagingtest.Must(t, err)
			if !strings.Contains(info.ColorLoss, c.loss) || (info.ColorLoss == "") != (c.loss == "") {
				t.Errorf("got %q, want %q", info.ColorLoss, c.loss)
			}
			if c.loss != "" && info.Profile != nil {
				t.Error("there is a profile as well")
			}
		})
	}
}

// greyICC returns a profile of grey with a tag.
func greyICC(tag, connection string, data []byte) []byte {
	p := profile("GRAY", 144+len(data))
	copy(p[20:], connection)
	binary.BigEndian.PutUint32(p[128:], 1)
	copy(p[132:], tag)
	binary.BigEndian.PutUint32(p[136:], 144)
	binary.BigEndian.PutUint32(p[140:], uint32(len(data)))
	copy(p[144:], data)
	return p
}

// TestGreyProfile: a profile of grey becomes one of RGB with the same curve.
func TestGreyProfile(t *testing.T) {
	t.Parallel()
	jpg, deep := drawGrey(t, 8, 8)
	curve := []byte("curv\x00\x00\x00\x00\x00\x00\x00\x01\x02\x33\x00\x00")
	grey := greyICC("kTRC", "XYZ ", curve)
	for ext, data := range map[string][]byte{
		"jpg": withSegments(jpg, iccSegment(1, 1, grey)), "png": withChunks(deep, profileChunk(grey)),
	} {
		info, err := check(data, ext, imaging.Options{})
		if err != nil || info.ColorLoss != "" || string(info.Profile[16:24]) != "RGB XYZ " {
			t.Fatalf("%s: %q, %v", ext, info.ColorLoss, err)
		}
		for _, tag := range []string{"rTRC", "gTRC", "bTRC"} {
			if got := fixed(t, info.Profile, tag, 12); got[0] != 0x0233 { // in units of 1/256
				t.Errorf("%s is %v", tag, got)
			}
		}
		white, sum := fixed(t, info.Profile, "wtpt", 8), make([]float64, 3)
		for _, tag := range []string{"rXYZ", "gXYZ", "bXYZ"} {
			for i, n := range fixed(t, info.Profile, tag, 8) {
				sum[i] += n
			}
		}
		imagingtest.Same(t, white, sum, "equal samples are", "white is")
		imagingtest.Equal(t, bytes.Count(info.Profile, curve), 1, "the curve is there", "times")
	}
	outside := bytes.Clone(grey)
	outside[139]++
	for name, p := range map[string][]byte{
		"no curve": greyICC("desc", "XYZ ", curve), "of Lab": greyICC("kTRC", "Lab ", curve), "outside": outside,
		"large": greyICC("kTRC", "XYZ ", make([]byte, 40_000)), "nothing": profile("GRAY", 128),
	} {
		info, err := check(withSegments(jpg, iccSegment(1, 1, p)), "jpg", imaging.Options{})
		if err != nil || info.Profile != nil || !strings.Contains(info.ColorLoss, "grey") {
			t.Errorf("%s: %d bytes, %q, %v", name, len(info.Profile), info.ColorLoss, err)
		}
	}
}

// TestGammaOfPNG: gAMA and cHRM are kept in the image, and do not count for what is made of it.
func TestGammaOfPNG(t *testing.T) {
	t.Parallel()
	rgb := profile("RGB ", 500)
	for name, c := range map[string]struct {
		chunks [][]byte
		want   []byte
	}{
		"alone":            {[][]byte{gama(100_000), p3Chroma}, nil},
		"before a profile": {[][]byte{gama(100_000), p3Chroma, profileChunk(rgb)}, rgb},
	} {
		pic := withChunks(drawPNG(t, 8, 8), c.chunks...)
		info, stripped := strip(t, pic, "png")
		if info.ColorLoss != "" || !bytes.Equal(info.Profile, c.want) || !bytes.Equal(stripped, pic) {
			t.Errorf("%s: a profile of %d bytes, %q, %d bytes of %d", name, len(info.Profile), info.ColorLoss, len(stripped), len(pic))
		}
	}
}

// fixed returns the numbers in a tag of a profile, from an offset on.
func fixed(t *testing.T, profile []byte, tag string, offset int) (numbers []float64) {
	t.Helper()
	if len(profile) < 132 || int(binary.BigEndian.Uint32(profile)) != len(profile) {
		t.Fatalf("a profile of %d bytes", len(profile))
	}
	for i := range int(binary.BigEndian.Uint32(profile[128:])) {
		entry := profile[132+12*i:]
		if string(entry[:4]) != tag {
			continue
		}
		at, size := binary.BigEndian.Uint32(entry[4:]), binary.BigEndian.Uint32(entry[8:])
		for data := profile[at:][:size][offset:]; len(data) > 0; data = data[4:] {
			numbers = append(numbers, float64(int32(binary.BigEndian.Uint32(data)))/65536)
		}
	}
	if numbers == nil {
		t.Fatalf("no tag %s", tag)
	}
	return numbers
}
