package imaging_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
)

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
	srgbChroma = chroma(31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)
	p3Chroma   = chroma(31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000)
)

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
		{"white without light", "png", withChunks(pic, gama(100_000), chroma(31270, 0, 64000, 33000, 30000, 60000, 15000, 6000)), "gAMA"},
		{"primaries on a line", "png", withChunks(pic, gama(100_000), chroma(31270, 32900, 10000, 10000, 20000, 20000, 30000, 30000)), "gAMA"},
		{"no gamma", "png", withChunks(pic, gama(0), p3Chroma), ""},
		{"largest gamma", "png", withChunks(pic, gama(math.MaxUint32)), ""},
		{"smallest gamma", "png", withChunks(pic, gama(1)), "gAMA"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			info, err := check(c.data, c.ext, imaging.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(info.ColorLoss, c.loss) || (info.ColorLoss == "") != (c.loss == "") {
				t.Errorf("got %q, want %q", info.ColorLoss, c.loss)
			}
			if c.loss != "" && info.Profile != nil {
				t.Error("there is a profile as well")
			}
		})
	}
}

// TestGammaOfPNG: the precedence of the chunks is that of W3C PNG 4.3 and of browsers. Browsers
// ignore a lone gAMA close to that of sRGB.
func TestGammaOfPNG(t *testing.T) {
	t.Parallel()
	pic := drawPNG(t, 8, 8)
	rgb := profile("RGB ", 500)
	damaged := gama(100_000)
	damaged[len(damaged)-1] ^= 1
	for _, c := range []struct {
		name   string
		chunks [][]byte
		want   float64 // the exponent; 0 for no profile
	}{
		{"linear", [][]byte{gama(100_000)}, 1},
		{"dark", [][]byte{gama(35_000)}, 1 / 0.35},
		{"sRGB", [][]byte{gama(45_455)}, 0},
		{"near sRGB, below", [][]byte{gama(44_000)}, 0},
		{"near sRGB, above", [][]byte{gama(47_000)}, 0},
		{"not so near", [][]byte{gama(43_000)}, 1 / 0.43},
		{"near sRGB with primaries", [][]byte{srgbChroma, gama(45_455)}, 1 / 0.45455},
		{"primaries alone", [][]byte{p3Chroma}, 0},
		{"twice", [][]byte{gama(100_000), gama(45_455)}, 1},
		{"behind sRGB", [][]byte{chunk("sRGB", []byte{0}), gama(100_000)}, 0},
		{"before sRGB", [][]byte{gama(100_000), chunk("sRGB", []byte{0})}, 0},
		{"beside a damaged profile", [][]byte{gama(100_000), chunk("iCCP", []byte("a\x00\x00x"))}, 1},
		{"beside data that is no profile", [][]byte{gama(100_000), profileChunk(make([]byte, 500))}, 1},
		{"damaged", [][]byte{damaged}, 0},
		{"too long", [][]byte{chunk("gAMA", make([]byte, 8))}, 0},
		{"behind the palette", [][]byte{chunk("PLTE", make([]byte, 3)), gama(100_000)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			info, err := check(withChunks(pic, c.chunks...), "png", imaging.Options{})
			if err != nil || info.ColorLoss != "" {
				t.Fatal(err, info.ColorLoss)
			}
			if c.want == 0 {
				if info.Profile != nil {
					t.Errorf("got a profile of %d bytes", len(info.Profile))
				}
				return
			}
			if got := fixed(t, info.Profile, "rTRC", 12)[0]; math.Abs(got-c.want) > 1e-4 {
				t.Errorf("got the exponent %v, want %v", got, c.want)
			}
		})
	}
	info, err := check(withChunks(pic, gama(100_000), profileChunk(rgb)), "png", imaging.Options{})
	if err != nil || !bytes.Equal(info.Profile, rgb) {
		t.Errorf("the profile gives way to the gamma: %v", err)
	}
}

// TestColorantsOfPNG: the colorants of known primaries are published: those of sRGB by the ICC,
// those of Display P3 by Apple.
func TestColorantsOfPNG(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chroma []byte
		want   [9]float64
	}{
		"sRGB":       {srgbChroma, [9]float64{0.4361, 0.2225, 0.0139, 0.3851, 0.7169, 0.0971, 0.1431, 0.0606, 0.7141}},
		"Display P3": {p3Chroma, [9]float64{0.5151, 0.2412, -0.0011, 0.2920, 0.6922, 0.0419, 0.1571, 0.0666, 0.7841}},
	} {
		info, err := check(withChunks(drawPNG(t, 8, 8), c.chroma, gama(100_000)), "png", imaging.Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		got := make([]float64, 0, 9)
		for _, tag := range []string{"rXYZ", "gXYZ", "bXYZ"} {
			got = append(got, fixed(t, info.Profile, tag, 8)[:3]...)
		}
		for i, want := range c.want {
			if math.Abs(got[i]-want) > 2e-4 {
				t.Errorf("%s: got %v, want %v", name, got, c.want)
				break
			}
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
