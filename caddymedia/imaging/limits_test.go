package imaging_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
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
