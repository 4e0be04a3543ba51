package imaging_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
)

// extension returns a GIF extension whose sub-blocks have size bytes in the file, with length bytes
// and terminator.
func extension(label string, size int) []byte {
	b := []byte("!" + label)
	for left := size - 1; left > 0; {
		n := min(left, 256)
		b = append(b, byte(n-1))
		b = append(b, bytes.Repeat([]byte{'x'}, n-1)...)
		if left -= n; n == 1 {
			panic("a sub-block of no bytes ends the extension")
		}
	}
	return append(b, 0)
}

func TestMaxSide(t *testing.T) {
	t.Parallel()
	pic := drawPNG(t, 4, 4)
	for _, c := range []struct {
		name, ext string
		data      []byte
		most      int
		want      string
	}{
		{"width at the limit", "png", drawPNG(t, 30, 20), 30, ""},
		{"height at the limit", "png", drawPNG(t, 20, 30), 30, ""},
		{"width over it", "png", drawPNG(t, 30, 20), 29, "the image has a side of 30 pixels, at most 29 are allowed"},
		{"height over it", "png", drawPNG(t, 20, 30), 29, "the image has a side of 30 pixels, at most 29 are allowed"},
		{"jpeg at the limit", "jpg", drawJPEG(t, 30, 20), 30, ""},
		{"jpeg over it", "jpg", drawJPEG(t, 30, 20), 29, "the image has a side of 30 pixels, at most 29 are allowed"},
		{"gif at the limit", "gif", drawGIF(t, 20, 30, 2), 30, ""},
		{"gif over it", "gif", drawGIF(t, 20, 30, 2), 29, "the image has a side of 30 pixels, at most 29 are allowed"},
		{"svg has none", "svg", []byte(svg("")), 1, ""},
		{"the default", "png", resizedPNG(pic, 65_535, 1), 0, ""},
		{"over the default", "png", resizedPNG(pic, 65_536, 1), 0, "the image has a side of 65,536 pixels, at most 65,535 are allowed"},
		{"over the default, high", "png", resizedPNG(pic, 1, 50_000_000), 0, "the image has a side of 50,000,000 pixels, at most 65,535 are allowed"},
		{"none is infinite", "png", resizedPNG(pic, 65_536, 1), -1, "the image has a side of 65,536 pixels, at most 65,535 are allowed"},
		{"the most of a jpeg", "jpg", resizedJPEG(t, drawJPEG(t, 4, 4), 65_535, 1), 0, ""},
		{"the most of a gif", "gif", manyFrames(1, 1, 65_535), 0, ""},
		{"more than the default", "png", resizedPNG(pic, 70_000, 1), 70_000, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expectLimit(t, c.data, c.ext, imaging.Options{MaxSide: c.most}, c.want)
		})
	}
}

// expectLimit expects want as the message of a limit, or that the image passes if want is empty.
func expectLimit(t *testing.T, data []byte, ext string, opts imaging.Options, want string) {
	t.Helper()
	_, err := check(data, ext, opts)
	switch {
	case want == "" && err != nil:
		t.Errorf("got %v", err)
	case want != "" && (verdictOf(err) != tooLarge || err.Error() != want):
		t.Errorf("got %v (%s), want %s", err, verdictOf(err), want)
	}
}

func TestMaxChunk(t *testing.T) {
	t.Parallel()
	const def = 8 << 20
	jpg, pic, anim := drawJPEG(t, 8, 8), drawPNG(t, 80, 80), drawGIF(t, 200, 200, 2)
	inPNG := func(kind string, size int) []byte { return withChunks(pic, chunk(kind, make([]byte, size))) }
	inGIF := func(extensions ...[]byte) []byte {
		return joined(anim[:len(anim)-1], joined(extensions...), []byte(";"))
	}
	large, block := "a chunk of the PNG image that holds no pixels is larger than ", "an extension of the GIF image is larger than "
	cut := inPNG("tEXt", 101)
	for _, c := range []struct {
		name, ext string
		data      []byte
		most      int64
		want      string
	}{
		{"text at the limit", "png", inPNG("tEXt", 100), 100, ""},
		{"text over it", "png", inPNG("tEXt", 101), 100, large + "100 bytes"},
		{"private chunk over it", "png", inPNG("prVt", 101), 100, large + "100 bytes"},
		{"profile over it", "png", inPNG("iCCP", 101), 100, large + "100 bytes"},
		{"EXIF over it", "png", inPNG("eXIf", 101), 100, large + "100 bytes"},
		{"palette over it", "png", inPNG("PLTE", 102), 100, large + "100 bytes"},
		{"behind the pixels", "png", beforeEnd(pic, 12, chunk("tEXt", make([]byte, 101))), 100, large + "100 bytes"},
		{"two at the limit", "png", withChunks(pic, chunk("tEXt", make([]byte, 100)), chunk("tEXt", make([]byte, 100))), 100, ""},
		{"pixels are not counted", "png", pic, 100, ""},
		{"pixels of frames are not counted", "png", inPNG("fdAT", 101), 100, ""},
		{"chunk that is cut off", "png", cut[:60], 100, large + "100 bytes"},
		{"the default", "png", inPNG("zTXt", def), 0, ""},
		{"over the default", "png", inPNG("zTXt", def+1), 0, large + "8 MiB"},
		{"none is infinite", "png", inPNG("zTXt", def+1), -1, large + "8 MiB"},
		{"more than the default", "png", inPNG("zTXt", def+1), def + 1, ""},

		{"comment at the limit", "gif", inGIF(extension("\xfe", 1000)), 1000, ""},
		{"comment over it", "gif", inGIF(extension("\xfe", 1001)), 1000, block + "1 kB"},
		{"application over it", "gif", inGIF(extension("\xff", 1001)), 1000, block + "1 kB"},
		{"unknown extension over it", "gif", inGIF(extension("\x42", 1001)), 1000, block + "1 kB"},
		{"two comments at the limit", "gif", inGIF(extension("\xfe", 1000), extension("\xfe", 1000)), 1000, ""},
		{"control and loop below it", "gif", anim, 17, ""},
		{"pixels of a GIF are not counted", "gif", joined(manyFrames(1, 9, 9)[:24], extension("", 5000)[1:], []byte(";")), 17, ""},
		{"comment of the default", "gif", inGIF(extension("\xfe", def)), 0, ""},
		{"comment over the default", "gif", inGIF(extension("\xfe", def+1)), 0, block + "8 MiB"},
		{"comment without an end", "gif", inGIF(extension("\xfe", 3*def))[:2*def], 0, block + "8 MiB"},
		{"comment of one byte each", "gif", inGIF([]byte("!\xfe" + strings.Repeat("\x01x", def/2) + "\x00")), 0, block + "8 MiB"},

		{"segment of a jpeg", "jpg", withSegments(jpg, segment(0xFE, make([]byte, 65_533))), 100, ""},
	} {
		t.Run(c.ext+", "+c.name, func(t *testing.T) {
			t.Parallel()
			expectLimit(t, c.data, c.ext, imaging.Options{MaxChunk: c.most}, c.want)
		})
	}
}

// TestMaxChunkOfDamagedImages: damage is reported, whatever the size.
func TestMaxChunkOfDamagedImages(t *testing.T) {
	t.Parallel()
	pic, anim := drawPNG(t, 8, 8), drawGIF(t, 8, 8, 1)
	for name, data := range map[string][]byte{
		"png": append([]byte(pngSignature), "<html>a chunk of a gigabyte, were it one"...),
		"gif": joined(anim[:len(anim)-1], extension("\xfe", 90)[:50]),
	} {
		if _, err := check(data, name, imaging.Options{MaxChunk: 60}); verdictOf(err) != refused {
			t.Errorf("%s: got %v (%s)", name, err, verdictOf(err))
		}
	}
	if _, err := check(pic[:len(pic)-5], "png", imaging.Options{MaxChunk: 1000}); verdictOf(err) != refused {
		t.Errorf("got %v", err)
	}
}

// bombs returns images that cost a decoder, or a naive check, far more than their size suggests.
func bombs(t testing.TB) map[string]struct {
	ext  string
	data []byte
	want verdict
} {
	jpg, pic, anim := drawJPEG(t, 64, 64), drawPNG(t, 64, 64), drawGIF(t, 8, 8, 2)
	end := []byte{0xFF, 0xD9}
	scans := func(n int) []byte { // besides the one present
		scan := []byte("\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\x55")
		return joined(jpg[:len(jpg)-2], bytes.Repeat(scan, n), end)
	}
	comment, longEXIF := segment(0xFE, nil), segment(0xE1, append([]byte("Exif\x00\x00"), make([]byte, 65500)...))
	type bomb = struct {
		ext  string
		data []byte
		want verdict
	}
	const big = 32 << 20
	return map[string]bomb{
		"jpeg of 65500x65500":               {"jpg", resizedJPEG(t, jpg, 65500, 65500), tooLarge},
		"jpeg of 300 scans":                 {"jpg", scans(300), tooLarge},
		"jpeg of scans that refine nothing": {"jpg", flatJPEG(7000, 7000), refused},
		"jpeg of 200 scans":                 {"jpg", scans(199), passes},
		"jpeg of 49 MP in 20 scans":         {"jpg", resizedJPEG(t, scans(19), 7000, 7000), passes},
		"jpeg of 49 MP in 21 scans":         {"jpg", resizedJPEG(t, scans(20), 7000, 7000), tooLarge},
		"jpeg of a million segments":        {"jpg", append([]byte{0xFF, 0xD8}, bytes.Repeat([]byte{0xFF, 0xE1, 0, 2}, 1<<20)...), tooLarge},
		"jpeg of escaped bytes":             {"jpg", append(append(bytes.Clone(jpg[:len(jpg)-2]), bytes.Repeat([]byte{0xFF, 0}, big/2)...), end...), passes},
		"jpeg of restart markers":           {"jpg", append(append(bytes.Clone(jpg[:len(jpg)-2]), bytes.Repeat([]byte{0xFF, 0xD0}, big/2)...), end...), passes},
		"jpeg of fill bytes":                {"jpg", append(append(bytes.Clone(jpg[:len(jpg)-2]), bytes.Repeat([]byte{0xFF}, big)...), end...), passes},
		"jpeg of zeros":                     {"jpg", append([]byte{0xFF, 0xD8}, make([]byte, big)...), refused},
		"png of 30000x30000":                {"png", resizedPNG(pic, 30000, 30000), tooLarge},
		"png of 2^31-1 a side":              {"png", resizedPNG(pic, 1<<31-1, 1<<31-1), tooLarge},
		"png of millions of chunks":         {"png", withChunks(pic, bytes.Repeat(chunk("teXt", nil), big/12)), tooLarge},
		"png of one huge chunk":             {"png", withChunks(pic, chunk("IDAT", make([]byte, big))), passes},
		"apng of 1001 frames":               {"png", withChunks(pic, chunk("acTL", make([]byte, 8)), bytes.Repeat(frameChunk(1, 1), 1001)), tooLarge},
		"apng of huge frames":               {"png", withChunks(pic, chunk("acTL", make([]byte, 8)), frameChunk(1<<31-1, 1<<31-1)), tooLarge},
		"gif of 20000x20000":                {"gif", manyFrames(1, 20000, 20000), tooLarge},
		"gif of 5000 frames":                {"gif", manyFrames(5000, 1, 1), tooLarge},
		"gif of a million frames":           {"gif", manyFrames(1_000_000, 1, 1), tooLarge},
		"gif of 200 frames of 25 MP":        {"gif", manyFrames(200, 5000, 5000), tooLarge},
		"gif of 65535x65535 frames":         {"gif", manyFrames(900, 65535, 65535), tooLarge},
		"gif of millions of comments":       {"gif", append(manyFrames(1, 1, 1)[:25], bytes.Repeat([]byte{0x21, 0xFE, 0}, big/3)...), tooLarge},
		"gif of one-byte sub-blocks":        {"gif", append(manyFrames(1, 1, 1)[:24], bytes.Repeat([]byte{1}, big)...), refused},
		"jpeg of kept and dropped segments": {"jpg", withSegments(jpg, bytes.Repeat(append(comment, segment(0xDD, nil)...), 49_000)), passes},
		"jpeg of parts of a profile":        {"jpg", withSegments(jpg, bytes.Repeat(iccSegment(1, 255, nil), 99_000)), passes},
		"jpeg of large EXIF":                {"jpg", withSegments(jpg, bytes.Repeat(longEXIF, 500)), passes},
		"png of kept and dropped chunks":    {"png", withChunks(pic, bytes.Repeat(append(chunk("tEXt", nil), chunk("gAMA", nil)...), 49_000)), passes},
		"png of profiles of 64 MB":          {"png", withChunks(pic, bytes.Repeat(profileChunk(make([]byte, 64<<20)), 400)), passes},
		"gif of kept and dropped blocks":    {"gif", joined(anim[:len(anim)-1], bytes.Repeat([]byte("!\xfe\x00!\xf9\x00"), 49_000), []byte(";")), passes},
		"webp of millions of chunks":        {"webp", riffFile(extended(0, 9, 9), lossyHead(9, 9), bytes.Repeat(webpChunk("what", nil), big/8)), tooLarge},
		"webp of dropped chunks":            {"webp", riffFile(extended(0, 9, 9), lossyHead(9, 9), bytes.Repeat(webpChunk("what", nil), 99_000)), passes},
		"webp of 1001 frames":               {"webp", flatAnimation(1001, 1, 1), tooLarge},
		"webp of a million frames":          {"webp", flatAnimation(500_000, 1, 1), tooLarge},
		"webp of 20 frames of 25 MP":        {"webp", flatAnimation(20, 5000, 5000), tooLarge},
		"webp of 16383x16383":               {"webp", riffFile(losslessHead(16383, 16383)), tooLarge},
		"webp of large profiles":            {"webp", riffFile(extended(0, 9, 9), bytes.Repeat(webpChunk("ICCP", make([]byte, 60_000)), 500), lossyHead(9, 9)), passes},
		"svg of 3 MiB":                      {"svg", []byte(svg(strings.Repeat(" ", 3<<20))), tooLarge},
		"svg of deep nesting":               {"svg", []byte(svg(strings.Repeat("<g>", 200) + strings.Repeat("</g>", 200))), tooLarge},
		"svg of 200,000 elements":           {"svg", []byte(svg(strings.Repeat("<g/>", 200_000))), tooLarge},
		"svg of one long path":              {"svg", []byte(svg(`<path d="` + strings.Repeat("L1 1", 500_000) + `"/>`)), passes},
		"svg of 400,000 attributes":         {"svg", []byte(svg("<g " + strings.Repeat(`a=""`, 400_000) + "/>")), tooLarge},
		"svg of one long name":              {"svg", []byte(svg("<" + strings.Repeat("a", 2_000_000) + "/>")), refused},
		"svg of escaped style":              {"svg", []byte(svg("<style>" + strings.Repeat(`\0`, 1_000_000) + "</style>")), passes},
		"svg of url( in style":              {"svg", []byte(svg("<style>" + strings.Repeat(`url(#`, 400_000) + "</style>")), passes},
		"svg of open comments":              {"svg", []byte(svg("<style>" + strings.Repeat(`/*`, 1_000_000) + "</style>")), passes},
		"svg of colons":                     {"svg", []byte(svg(`<g id="` + strings.Repeat(`:`, 2_000_000) + `"/>`)), passes},
		"svg entity bomb": {"svg", []byte(`<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>` +
			svg(strings.Repeat("&b;", 100))), refused},
	}
}

// flatJPEG returns a progressive grey JPEG of a few bytes. Its only scan ends the bands of all
// blocks from the second coefficient on, in runs of 32,767.
func flatJPEG(width, height int) []byte {
	frame := []byte{8, byte(height >> 8), byte(height), byte(width >> 8), byte(width), 1, 1, 0x11, 0}
	table := joined([]byte{0x10, 0, 1}, make([]byte, 14), []byte{0xE0}) // one code, 00: a run with 14 bits more
	runs := ((width+7)/8*((height+7)/8) + 32766) / 32767
	return joined([]byte{0xFF, 0xD8}, segment(0xDB, joined([]byte{0}, bytes.Repeat([]byte{1}, 64))),
		segment(0xC2, frame), segment(0xC4, table), segment(0xDA, []byte{1, 1, 0, 1, 63, 0}),
		bytes.Repeat([]byte{0x3F, 0xFF, 0}, runs), []byte{0xFF, 0xD9})
}

// TestBombs: a bomb is handled fast and with little memory. The test is not parallel, because it
// reads counters of the process.
func TestBombs(t *testing.T) {
	for name, b := range bombs(t) {
		t.Run(name, func(t *testing.T) {
			var err error
			start := time.Now()
			memory := allocated(func() { _, err = check(b.data, b.ext, imaging.Options{}) })
			took := time.Since(start)
			imagingtest.Equal(t, verdictOf(err), b.want, err)
			if err != nil && len(err.Error()) > 200 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			if memory > 32<<20 {
				t.Errorf("allocated %d bytes", memory)
			}
			if took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			t.Logf("%d bytes: %v, %d KiB, %v", len(b.data), took, memory>>10, err)
		})
	}
}

// TestStrippedBombs: stripping an image with the largest allowed number of parts costs no more
// than checking it.
func TestStrippedBombs(t *testing.T) {
	for name, b := range bombs(t) {
		info, err := check(b.data, b.ext, imaging.Options{Strip: imaging.StripOn})
		if err != nil || !strings.Contains(name, "kept and dropped") {
			continue
		}
		r := &countedSeeks{Reader: bytes.NewReader(b.data)}
		var n int64
		start := time.Now()
		memory := allocated(func() { n, err = io.Copy(io.Discard, info.Stripped(r)) })
		took := time.Since(start)
		if err != nil || n > int64(len(b.data))*2/3 {
			t.Errorf("%s: %d of %d bytes, %v", name, n, len(b.data), err)
		}
		if memory > 1<<20 {
			t.Errorf("%s: allocated %d bytes", name, memory)
		}
		if r.seeks > 1 || took > 5*time.Second {
			t.Errorf("%s: %d seeks, %v", name, r.seeks, took)
		}
		t.Logf("%s: %d of %d bytes, %v", name, n, len(b.data), took)
	}
}

type countedSeeks struct {
	*bytes.Reader
	seeks int
}

func (c *countedSeeks) Seek(offset int64, whence int) (int64, error) {
	c.seeks++
	return c.Reader.Seek(offset, whence)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	anim, pic := drawGIF(t, 10, 10, 3), drawPNG(t, 10, 10)
	for _, c := range []struct {
		name, ext string
		data      []byte
		opts      imaging.Options
		want      string
	}{
		{"pixels at the limit", "png", pic, imaging.Options{MaxPixels: 100}, ""},
		{"pixels over the limit", "png", pic, imaging.Options{MaxPixels: 99}, "the image has 100 pixels, at most 99 are allowed"},
		{"pixels over the default", "png", resizedPNG(pic, 30000, 30000), imaging.Options{}, "the image has 900,000,000 pixels, at most 50,000,000 are allowed"},
		{"frames at the limit", "gif", anim, imaging.Options{MaxFrames: 3}, ""},
		{"frames over the limit", "gif", anim, imaging.Options{MaxFrames: 2}, "the animation has more than the 2 frames allowed"},
		{"frame pixels at the limit", "gif", anim, imaging.Options{MaxFramePixels: 300}, ""},
		{"frame pixels over the limit", "gif", anim, imaging.Options{MaxFramePixels: 299}, "the frames of the animation have more than the 299 pixels allowed in all"},
		{"pixels of one gif frame over the limit", "gif", anim, imaging.Options{MaxPixels: 99}, "the image has 100 pixels, at most 99 are allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expectLimit(t, c.data, c.ext, c.opts, c.want)
		})
	}
}
