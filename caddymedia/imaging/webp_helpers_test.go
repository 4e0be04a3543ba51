package imaging_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// drawWebP encodes an image as a simple or extended WebP file.
func drawWebP(t testing.TB, img image.Image, opts webp.Options) []byte {
	t.Helper()
	encoder, err := webp.New()
	if err != nil {
		t.Fatal(err)
	}
	file, err := encoder.Encode(t.Context(), img, opts)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// opaque returns image without transparency, and with whole squares of one colour, which survive
// lossy encoding.
func opaque(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range img.Rect.Dx() * img.Rect.Dy() {
		x, y := i%width/16, i/width/16
		copy(img.Pix[4*i:], []byte{byte(40 + 60*x), byte(200 - 50*y), byte(30 * (x + y)), 255})
	}
	return img
}

// shaded returns opaque with a transparency that falls from left to right.
func shaded(width, height int) *image.NRGBA {
	img := opaque(width, height)
	for i := range width * height {
		img.Pix[4*i+3] = byte(255 - 200*(i%width)/width)
	}
	return img
}

// riffFile returns a file of chunks. Its size may be odd.
func riffFile(chunks ...[]byte) []byte {
	data := joined([]byte("WEBP"), joined(chunks...))
	return webpChunk("RIFF", data)[:8+len(data)]
}

// webpChunk returns a chunk with its padding.
func webpChunk(id string, data []byte) []byte {
	b := append(binary.LittleEndian.AppendUint32([]byte(id), uint32(len(data))), data...)
	return append(b, make([]byte, len(data)%2)...)
}

func uint24(n int) []byte { return []byte{byte(n), byte(n >> 8), byte(n >> 16)} }

// extended returns a VP8X chunk.
func extended(flags byte, width, height int) []byte {
	return webpChunk("VP8X", joined([]byte{flags, 0, 0, 0}, uint24(width-1), uint24(height-1)))
}

// Flags of a VP8X chunk.
const (
	flagAnimation, flagXMP, flagEXIF, flagAlpha, flagProfile = 2, 4, 8, 16, 32
)

// bitstream returns the chunks with the pixels of an encoded file.
func bitstream(file []byte) []byte {
	if string(file[12:16]) == "VP8X" {
		return file[30:]
	}
	return file[12:]
}

func animHead(loops byte) []byte { return webpChunk("ANIM", []byte{0, 0, 255, 255, loops, 0}) }

// frameWebP returns an ANMF chunk. The flag 1 disposes, 2 does not blend.
func frameWebP(area image.Rectangle, ms int, flags byte, chunks ...[]byte) []byte {
	return webpChunk("ANMF", joined(uint24(area.Min.X/2), uint24(area.Min.Y/2), uint24(area.Dx()-1), uint24(area.Dy()-1),
		uint24(ms), []byte{flags}, joined(chunks...)))
}

// lossyHead returns a VP8 chunk of a size, without pixels.
func lossyHead(width, height int) []byte {
	return webpChunk("VP8 ", []byte{0, 0, 0, 0x9d, 1, 0x2a, byte(width), byte(width >> 8), byte(height), byte(height >> 8)})
}

// losslessHead returns a VP8L chunk of a size, without pixels.
func losslessHead(width, height int) []byte {
	return webpChunk("VP8L", binary.LittleEndian.AppendUint32([]byte{0x2F}, uint32(width-1|(height-1)<<14)))
}

// flatAnimation returns an animation of n frames of a size, without pixels.
func flatAnimation(n, width, height int) []byte {
	frame := frameWebP(image.Rect(0, 0, width, height), 100, 0, lossyHead(width, height))
	return riffFile(extended(flagAnimation, width, height), animHead(3), bytes.Repeat(frame, n))
}

// decodedWebP checks and decodes a file.
func decodedWebP(t testing.TB, file []byte) image.Image {
	t.Helper()
	info, err := check(file, "webp", imaging.Options{})
	if err != nil {
		t.Fatal(err)
	}
	img, err := imaging.Decode(bytes.NewReader(file), info)
	if err != nil {
		t.Fatal(err)
	}
	return img
}
