package imaging_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
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
		{"of RGB, pixels grey", grey, [][]byte{iccSegment(1, 1, rgb)}, nil},
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
		{"grey pixels", withChunks(grey, profileChunk(rgb)), nil},
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

var (
	p3Chroma   = chroma(31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000)
	srgbChroma = chroma(31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)
)

// convert says that the pixels are converted.
const convert = "converted"

// TestColorLoss: colours that another file cannot have are converted. Those that a variant cannot
// reproduce are reported as ColorLoss.
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
		{"RGB, large", "jpg", withSegments(jpg, parts(large)...), convert},
		{"RGB, very large", "jpg", withSegments(jpg, parts(profile("RGB ", 300_000))...), convert},
		{"RGB, large, a part missing", "jpg", withSegments(jpg, parts(large)[1:]...), ""},
		{"CMYK profile of RGB", "jpg", withSegments(jpg, parts(profile("CMYK", 100_000))...), ""},
		{"grey profile of RGB", "jpg", withSegments(jpg, parts(grey)...), ""},
		{"grey", "jpg", withSegments(greyJPEG, parts(grey)...), convert},
		{"grey of an RGB profile", "jpg", withSegments(greyJPEG, parts(rgb)...), convert},
		{"grey PNG of an RGB profile", "png", withChunks(greyPNG, profileChunk(rgb)), convert},
		{"grey of a large RGB profile", "jpg", withSegments(greyJPEG, parts(large)...), convert},
		{"grey of a CMYK profile", "jpg", withSegments(greyJPEG, parts(cmyk)...), ""},
		{"CMYK", "jpg", withSegments(cmykJPEG, parts(cmyk)...), convert},
		{"CMYK, large", "jpg", withSegments(cmykJPEG, parts(profile("CMYK", 500_000))...), convert},
		{"CMYK of an RGB profile", "jpg", withSegments(cmykJPEG, parts(large)...), ""},
		{"CMYK without a profile", "jpg", cmykJPEG, ""},

		{"PNG, large", "png", withChunks(pic, profileChunk(large)), convert},
		{"PNG, a large chunk", "png", withChunks(pic, profileChunk(noise)), convert},
		{"PNG of a CMYK profile", "png", withChunks(pic, profileChunk(cmyk), p3Chroma), ""},
		{"PNG of a CMYK profile and of a gamma", "png", withChunks(pic, profileChunk(cmyk), gama(100_000)), convert},
		{"PNG of a grey profile", "png", withChunks(pic, profileChunk(grey)), ""},
		{"grey PNG", "png", withChunks(greyPNG, profileChunk(grey)), convert},
		{"video colours", "png", withChunks(pic, chunk("cICP", []byte{9, 16, 0, 1}), profileChunk(rgb)), "cICP"},
		{"video colours of other primaries", "png", withChunks(pic, chunk("cICP", []byte{5, 13, 0, 1})), "cICP"},
		{"video colours of a narrow range", "png", withChunks(pic, chunk("cICP", []byte{12, 13, 0, 0})), "cICP"},
		{"video colours of a display", "png", withChunks(pic, chunk("cICP", []byte{12, 13, 0, 1}), profileChunk(rgb)), convert},
		{"sRGB as video colours", "png", withChunks(pic, chunk("cICP", []byte{1, 13, 0, 1}), gama(100_000)), ""},
		{"gamma", "png", withChunks(pic, gama(100_000)), convert},
		{"gamma of grey", "png", withChunks(greyPNG, gama(55_556)), convert},
		{"gamma of 2.2", "png", withChunks(pic, gama(45_455), srgbChroma), convert},
		{"no gamma", "png", withChunks(pic, gama(0)), ""},
		{"a tiny gamma", "png", withChunks(pic, gama(900)), ""},
		{"gamma behind the pixels", "png", beforeEnd(pic, 12, gama(100_000)), ""},
		{"gamma and sRGB", "png", withChunks(pic, gama(100_000), p3Chroma, chunk("sRGB", []byte{0})), ""},
		{"gamma and a profile", "png", withChunks(pic, gama(100_000), p3Chroma, profileChunk(rgb)), ""},
		{"primaries alone", "png", withChunks(pic, p3Chroma), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			info, err := check(c.data, c.ext, imaging.Options{})
			imagingtest.Must(t, err)
			got := info.ColorLoss
			if info.Converts() {
				got += convert
			}
			if !strings.Contains(got, c.loss) || (got == "") != (c.loss == "") {
				t.Errorf("got %q, want %q", got, c.loss)
			}
			if c.loss != "" && info.Profile != nil {
				t.Error("there is a profile as well")
			}
		})
	}
}

// TestToSRGB: the conversion is that of the profile in the file. Of a damaged one there is none.
func TestToSRGB(t *testing.T) {
	t.Parallel()
	const size = 200_000
	linear := imagingtest.Large(size, "RGB ", "XYZ ", imagingtest.Display(imagingtest.SRGB, imagingtest.Gamma(1))...)
	ink := imagingtest.ICC("CMYK", "Lab ", imagingtest.Table("mft1", 4, 9, imagingtest.Ink))
	grey := imagingtest.ICC("GRAY", "XYZ ", imagingtest.Tag{Name: "kTRC", Data: imagingtest.Gamma(1)})
	segments := func(p []byte) (list [][]byte) {
		for part := range slices.Chunk(p, 60_000) {
			list = append(list, iccSegment(byte(len(list)+1), byte((len(p)+59_999)/60_000), part))
		}
		return list
	}
	mixed := segments(linear)
	slices.Reverse(mixed)
	greyJPEG, greyPNG := drawGrey(t, 8, 8)
	jpg, pic := drawJPEG(t, 8, 8), drawPNG(t, 8, 8)
	for name, c := range map[string]struct {
		ext  string
		data []byte
		want byte // of 64
	}{
		"jpg":               {"jpg", withSegments(jpg, segments(linear)...), 137},
		"parts in disorder": {"jpg", withSegments(jpg, mixed...), 137},
		"png":               {"png", withChunks(pic, profileChunk(linear)), 137},
		"grey":              {"jpg", withSegments(greyJPEG, segments(grey)...), 137},
		"grey png":          {"png", withChunks(greyPNG, profileChunk(grey)), 137},
		"CMYK":              {"jpg", withSegments(headerJPEG(0xC0, 0x11, 0x11, 0x11, 0x11), segments(ink)...), 144},
		"gAMA":              {"png", withChunks(pic, gama(100_000)), 137},
		"damaged":           {"jpg", withSegments(jpg, segments(profile("RGB ", size))...), 0},
		"first gAMA":        {"png", withChunks(pic, gama(100_000), gama(45_455)), 137},
		"gAMA of 2.2":       {"png", withChunks(pic, gama(45_455)), 62},
		"gAMA and cHRM":     {"png", withChunks(pic, p3Chroma, gama(100_000)), 137},
		"no primaries":      {"png", withChunks(pic, gama(100_000), chroma(1, 0, 1, 0, 1, 0, 1, 0)), 0},
		"none":              {"png", pic, 0},
	} {
		info, err := check(c.data, c.ext, imaging.Options{Strip: imaging.StripOn})
		imagingtest.Must(t, err, name)
		transform, err := info.ToSRGB(bytes.NewReader(c.data))
		imagingtest.Must(t, err, name)
		if (transform == nil) != (c.want == 0) {
			t.Errorf("%s: a conversion: %v", name, transform != nil)
			continue
		}
		if pix := []byte{64, 64, 64, 64}; transform != nil {
			transform.Pixels(pix)
			if got := int(pix[0]); got < int(c.want)-3 || got > int(c.want)+3 {
				t.Errorf("%s: 64 becomes %d, want %d", name, got, c.want)
			}
		}
	}
	pic = withChunks(pic, profileChunk(linear))
	info, err := check(pic, "png", imaging.Options{})
	imagingtest.Must(t, err)
	cause := errors.New("disk on fire")
	_, err = info.ToSRGB(brokenReader{Reader: bytes.NewReader(pic), seekErr: cause})
	imagingtest.Is(t, err, cause)
}
