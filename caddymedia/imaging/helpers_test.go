package imaging_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
)

// verdict is the outcome of a check.
type verdict string

const (
	passes   verdict = "passes"
	refused  verdict = "content error"
	tooLarge verdict = "too large"
	failed   verdict = "another error"
)

func verdictOf(err error) verdict {
	var content *imaging.ContentError
	var large *imaging.TooLargeError
	switch {
	case err == nil:
		return passes
	case errors.As(err, &content):
		return refused
	case errors.As(err, &large):
		return tooLarge
	}
	return failed
}

func check(data []byte, ext string, opts imaging.Options) (imaging.Info, error) {
	return imaging.CheckImage(bytes.NewReader(data), int64(len(data)), ext, opts)
}

// drawing returns an image that does not compress well.
func drawing(width, height int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range img.Pix {
		img.Pix[i] = byte(i*i>>7 ^ i*31)
	}
	return img
}

func drawJPEG(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, drawing(width, height), &jpeg.Options{Quality: 90}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func drawPNG(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, drawing(width, height)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func drawGIF(t testing.TB, width, height, frames int) []byte {
	t.Helper()
	g := &gif.GIF{Config: image.Config{Width: width, Height: height}}
	palette := color.Palette{color.Black, color.White}
	for range frames {
		g.Image = append(g.Image, image.NewPaletted(image.Rect(0, 0, width, height), palette))
		g.Delay = append(g.Delay, 10)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// resizedJPEG patches the size in the frame header, which is the cheapest bomb.
func resizedJPEG(t testing.TB, data []byte, width, height int) []byte {
	t.Helper()
	i := bytes.Index(data, []byte{0xFF, 0xC0})
	if i < 0 {
		t.Fatal("no baseline frame header")
	}
	data = bytes.Clone(data)
	binary.BigEndian.PutUint16(data[i+5:], uint16(height))
	binary.BigEndian.PutUint16(data[i+7:], uint16(width))
	return data
}

func chunk(kind string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

const pngSignature = "\x89PNG\r\n\x1a\n"

// resizedPNG replaces the header chunk by one with another size.
func resizedPNG(data []byte, width, height uint32) []byte {
	header := binary.BigEndian.AppendUint32(nil, width)
	header = binary.BigEndian.AppendUint32(header, height)
	header = append(header, data[24:29]...)
	return append(append([]byte(pngSignature), chunk("IHDR", header)...), data[33:]...)
}

// withChunks inserts chunks right after the header.
func withChunks(data []byte, chunks ...[]byte) []byte {
	out := bytes.Clone(data[:33])
	for _, c := range chunks {
		out = append(out, c...)
	}
	return append(out, data[33:]...)
}

// frameChunk returns an APNG frame control of the size.
func frameChunk(width, height uint32) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 4), width)
	b = binary.BigEndian.AppendUint32(b, height)
	return chunk("fcTL", append(b, make([]byte, 14)...))
}

// manyFrames returns a GIF of n frames of a size, without pixels.
func manyFrames(n, width, height int) []byte {
	le := binary.LittleEndian
	b := []byte("GIF89a")
	b = le.AppendUint16(le.AppendUint16(b, uint16(width)), uint16(height))
	b = append(b, 0, 0, 0)
	for range n {
		b = append(b, 0x2C, 0, 0, 0, 0)
		b = le.AppendUint16(le.AppendUint16(b, uint16(width)), uint16(height))
		b = append(b, 0, 2, 0)
	}
	return append(b, 0x3B)
}

const svgOpen = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">`

// svg wraps body in a root element.
func svg(body string) string { return svgOpen + body + `</svg>` }

// hiddenFrame returns a GIF with an extension. A decoder that assumes the size of the first block
// of the extension finds a second frame in it.
func hiddenFrame(extension string) []byte {
	frame := manyFrames(1, 9, 9)[13:]
	inside := append(make([]byte, 12), 0)
	inside = append(inside, frame[:len(frame)-1]...)
	return joined(manyFrames(1, 9, 9)[:13], []byte("!"+extension), inside, frame)
}
