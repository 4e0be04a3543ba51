package imaging_test

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
)

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
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := check(b.data, b.ext, imaging.Options{})
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if verdictOf(err) != b.want {
				t.Errorf("got %v (%s), want %s", err, verdictOf(err), b.want)
			}
			if err != nil && len(err.Error()) > 200 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			if allocated > 32<<20 {
				t.Errorf("allocated %d bytes", allocated)
			}
			if took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			t.Logf("%d bytes: %v, %d KiB, %v", len(b.data), took, allocated>>10, err)
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
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		n, err := io.Copy(io.Discard, info.Stripped(r))
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if err != nil || n > int64(len(b.data))*2/3 {
			t.Errorf("%s: %d of %d bytes, %v", name, n, len(b.data), err)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
			t.Errorf("%s: allocated %d bytes", name, allocated)
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
		want      verdict
	}{
		{"pixels at the limit", "png", pic, imaging.Options{MaxPixels: 100}, passes},
		{"pixels over the limit", "png", pic, imaging.Options{MaxPixels: 99}, tooLarge},
		{"frames at the limit", "gif", anim, imaging.Options{MaxFrames: 3}, passes},
		{"frames over the limit", "gif", anim, imaging.Options{MaxFrames: 2}, tooLarge},
		{"frame pixels at the limit", "gif", anim, imaging.Options{MaxFramePixels: 300}, passes},
		{"frame pixels over the limit", "gif", anim, imaging.Options{MaxFramePixels: 299}, tooLarge},
		{"pixels of one gif frame over the limit", "gif", anim, imaging.Options{MaxPixels: 99}, tooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := check(c.data, c.ext, c.opts); verdictOf(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestMessageOfTooManyPixels(t *testing.T) {
	t.Parallel()
	_, err := check(resizedPNG(drawPNG(t, 4, 4), 30000, 30000), "png", imaging.Options{})
	if want := "the image has 900,000,000 pixels, at most 50,000,000 are allowed"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
