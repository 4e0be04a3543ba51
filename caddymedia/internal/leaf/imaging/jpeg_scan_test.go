package imaging_test

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
)

// isIntact is [imaging.IsIntact] for an image that must pass CheckImage.
func isIntact(t *testing.T, data []byte) bool {
	t.Helper()
	info, err := check(data, "jpg", imaging.Options{MaxPixels: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return imaging.IsIntact(bytes.NewReader(data), info)
}

// scanned returns an image of 48 x 8 pixels of one grey, with restart markers between its six
// blocks, and with its scan changed. All blocks have the same bits.
func scanned(t *testing.T, change func(blocks [][]byte) [][]byte) []byte {
	t.Helper()
	grey := image.NewGray(image.Rect(0, 0, 48, 8))
	for i := range grey.Pix {
		grey.Pix[i] = 128
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, grey, nil); err != nil {
		t.Fatal(err)
	}
	header, _, _ := bytes.Cut(b.Bytes(), []byte{0xFF, 0xDA})
	const block = 0b00_1010_11 // no difference, the end of the block, and bits that fill the byte
	blocks := make([][]byte, 0, 6)
	for i := range 6 {
		blocks = append(blocks, []byte{block, 0xFF, 0xD0 + byte(i)})
	}
	blocks[5][2] = 0xD9
	scan := bytes.Join(change(blocks), nil)
	return joined(header, segment(0xDD, []byte{0, 1}), []byte{0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0}, scan)
}

// TestIsIntact: an ordinary JPEG is known to be intact without its pixels, and a damaged or unusual
// one is left to the decoder.
func TestIsIntact(t *testing.T) {
	t.Parallel()
	same := func(blocks [][]byte) [][]byte { return blocks }
	whole := drawJPEG(t, 67, 45)
	grey, _ := drawGrey(t, 33, 9)
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"colours":           {whole, true},
		"grey":              {grey, true},
		"restart markers":   {scanned(t, same), true},
		"without its end":   {joined(whole[:len(whole)-40], []byte{0xFF, 0xD9}), false},
		"a byte more":       {joined(whole[:len(whole)-2], []byte{0, 0xFF, 0xD9}), false},
		"two markers":       {beforeEnd(whole, 2, []byte{0xFF, 0xD0}), false},
		"a segment at last": {beforeEnd(whole, 2, segment(0xFE, []byte("late"))), false},
		"other marker":      {scanned(t, func(blocks [][]byte) [][]byte { blocks[2][2] = 0xD4; return blocks }), false},
		"marker too early":  {scanned(t, func(blocks [][]byte) [][]byte { return append(blocks[:1], blocks[2:]...) }), false},
		"no room for codes": {bytes.Replace(whole, []byte{0, 2, 1, 3, 3, 2, 4, 3}, []byte{3, 2, 1, 3, 3, 2, 4, 3}, 1), false},
		"progressive":       {bytes.Replace(whole, []byte{0xFF, 0xC0}, []byte{0xFF, 0xC2}, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isIntact(t, c.data); got != c.want {
				t.Errorf("intact: %t, want %t", got, c.want)
			}
		})
	}
}

// TestIsIntactAltered: what is known to be intact is decoded, whichever byte is another one.
func TestIsIntactAltered(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"colours": withSegments(drawJPEG(t, 24, 17), segment(0xFE, []byte("a comment"))), "restart markers": scanned(t, func(blocks [][]byte) [][]byte { return blocks }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intact := 0
			for i := range data {
				for _, other := range []byte{0, 1, 0x80, 0xFF, 0xD9, data[i] ^ 1, data[i] ^ 0x10} {
					altered := bytes.Clone(data)
					altered[i] = other
					if expectDecoded(t, altered, fmt.Sprintf("byte %d is %#x", i, other)) {
						intact++
					}
				}
			}
			if intact == 0 {
				t.Error("none is known to be intact, not even those with another pixel")
			}
		})
	}
}

// TestIsIntactMarkers: the decoder reads, or skips, every segment of an image that is known to be
// intact.
func TestIsIntactMarkers(t *testing.T) {
	t.Parallel()
	whole, intact := drawJPEG(t, 16, 16), map[byte]bool{}
	for marker := range 256 {
		data := withSegments(whole, segment(byte(marker), []byte("private")))
		intact[byte(marker)] = expectDecoded(t, data, fmt.Sprintf("a segment of %#x", marker))
	}
	if !intact[0xE0] || !intact[0xED] || !intact[0xFE] {
		t.Error("no image with metadata is known to be intact")
	}
}

// expectDecoded expects that an image that is known to be intact can be decoded, and reports
// whether it is known.
func expectDecoded(t *testing.T, data []byte, what string) bool {
	t.Helper()
	info, err := check(data, "jpg", imaging.Options{MaxPixels: 10_000})
	if err != nil || !imaging.IsIntact(bytes.NewReader(data), info) {
		return false
	}
	if _, err := imaging.Decode(bytes.NewReader(data), info); err != nil {
		t.Errorf("%s: called intact, but %v", what, err)
	}
	return true
}

// FuzzIsIntact: what is known to be intact is decoded.
func FuzzIsIntact(f *testing.F) {
	f.Add(drawJPEG(f, 16, 16))
	f.Add(withSegments(drawJPEG(f, 16, 16), segment(0xE0, []byte("JFIF\x00")), segment(0xFE, []byte("a comment"))))
	grey, _ := drawGrey(f, 16, 16)
	f.Add(grey)
	f.Fuzz(func(t *testing.T, data []byte) { expectDecoded(t, data, "the image") })
}
