package sample

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/deepteams/webp"
)

// Quarters are the colours of the quarters in Quartered, in reading order.
var Quarters = [4]color.NRGBA{{220, 30, 30, 255}, {30, 200, 30, 255}, {30, 30, 220, 255}, {230, 230, 230, 255}}

// Quartered returns a picture with a distinct colour in each quarter.
func Quartered(width, height int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			quarter := 0
			if x >= width/2 {
				quarter++
			}
			if y >= height/2 {
				quarter += 2
			}
			m.SetNRGBA(x, y, Quarters[quarter])
		}
	}
	return m
}

// Plain returns a picture in one colour.
func Plain(width, height int, c color.NRGBA) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.Draw(m, m.Rect, image.NewUniform(c), image.Point{}, draw.Src)
	return m
}

// Photo returns a smooth picture with some texture, which takes encoders some time.
func Photo(width, height int) *image.YCbCr {
	m := image.NewYCbCr(image.Rect(0, 0, width, height), image.YCbCrSubsampleRatio420)
	noise := uint32(1)
	for y := range height {
		row := m.Y[y*m.YStride:][:width]
		for x := range row {
			noise = noise*1664525 + 1013904223
			wave := (x*x/997 + y*x/1499 + y*y/811) >> 4 & 63
			row[x] = uint8(40 + (x+y)*100/(width+height) + wave + int(noise>>28))
		}
	}
	for i := range m.Cb {
		x, y := i%m.CStride, i/m.CStride
		m.Cb[i], m.Cr[i] = uint8(90+x*70/m.CStride), uint8(100+y*100/height)
	}
	return m
}

// EncodeJPEG returns the picture as a JPEG file.
func EncodeJPEG(t *testing.T, m image.Image, quality int) string {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// EncodePNG returns the picture as a PNG file.
func EncodePNG(t *testing.T, m image.Image) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// MovingGIF returns a square that moves from frame to frame.
func MovingGIF(t *testing.T, frames int) string {
	t.Helper()
	g := &gif.GIF{LoopCount: 2}
	for i := range frames {
		m := image.NewPaletted(image.Rect(0, 0, 40, 20), color.Palette{color.White, color.Black, Quarters[0]})
		for p := range 100 {
			m.SetColorIndex(i*3+p%10, 5+p/10, uint8(1+i%2))
		}
		g.Image, g.Delay = append(g.Image, m), append(g.Delay, 10+i)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// MovingPNG returns an animated PNG of two frames.
func MovingPNG(t *testing.T) string {
	t.Helper()
	still := EncodePNG(t, Quartered(8, 8))
	var control, frame [26]byte
	binary.BigEndian.PutUint32(control[:], 2) // frames; 0 plays is for ever
	binary.BigEndian.PutUint32(frame[4:], 8)
	binary.BigEndian.PutUint32(frame[8:], 8)
	binary.BigEndian.PutUint16(frame[20:], 1)
	binary.BigEndian.PutUint16(frame[22:], 10)
	first := string(frame[:])
	binary.BigEndian.PutUint32(frame[:], 1)
	second := string(frame[:])
	var b strings.Builder
	b.WriteString(still[:8])
	for _, c := range PNGChunks(t, still) {
		switch c.Name {
		case "IDAT":
			b.WriteString(PNGChunk("acTL", string(control[:8])) + PNGChunk("fcTL", first) + PNGChunk("IDAT", c.Data))
			b.WriteString(PNGChunk("fcTL", second) + PNGChunk("fdAT", "\x00\x00\x00\x02"+c.Data))
		default:
			b.WriteString(PNGChunk(c.Name, c.Data))
		}
	}
	return b.String()
}

// Chunk is a named part of a file.
type Chunk struct{ Name, Data string }

// PNGChunk returns a chunk of a PNG file, with its checksum.
func PNGChunk(name, data string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, name...), data...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:])))
}

// PNGChunks returns the chunks of a PNG file in order.
func PNGChunks(t *testing.T, file string) []Chunk {
	t.Helper()
	var all []Chunk
	for rest := file[8:]; rest != ""; {
		if len(rest) < 12 {
			t.Fatalf("%d bytes are behind the chunks of a PNG", len(rest))
		}
		size := int(binary.BigEndian.Uint32([]byte(rest)))
		all = append(all, Chunk{rest[4:8], rest[8 : 8+size]})
		rest = rest[12+size:]
	}
	return all
}

// WebPChunks returns the parts of a WebP file.
func WebPChunks(t *testing.T, file string) []Chunk {
	t.Helper()
	if len(file) < 12 || file[:4] != "RIFF" || file[8:12] != "WEBP" || int(binary.LittleEndian.Uint32([]byte(file[4:])))+8 != len(file) {
		t.Fatalf("it is no whole WebP: %d bytes, %.20q", len(file), file)
	}
	var all []Chunk
	for rest := file[12:]; rest != ""; {
		size := int(binary.LittleEndian.Uint32([]byte(rest[4:])))
		all = append(all, Chunk{rest[:4], rest[8 : 8+size]})
		rest = rest[8+size+size%2:]
	}
	return all
}

// ChunkOf returns the concatenated data of the chunks of a name.
func ChunkOf(chunks []Chunk, name string) string {
	var b strings.Builder
	for _, c := range chunks {
		if c.Name == name {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// JPEGSegments returns the segments before the pixels of a JPEG, named by the second byte of the
// marker ("\xe1" is APP1), and the rest.
func JPEGSegments(t *testing.T, file string) (segments []Chunk, pixels string) {
	t.Helper()
	for rest := file[2:]; ; {
		if len(rest) < 4 || rest[0] != 0xFF {
			t.Fatalf("no JPEG: %.10q where a segment should be", rest)
		}
		size := int(binary.BigEndian.Uint16([]byte(rest[2:])))
		segments = append(segments, Chunk{rest[1:2], rest[4 : 2+size]})
		if rest[1] == 0xDA {
			return segments, rest
		}
		rest = rest[2+size:]
	}
}

// WithSegments inserts segments at the beginning of a JPEG.
func WithSegments(file string, segments ...Chunk) string {
	var b strings.Builder
	b.WriteString(file[:2])
	for _, s := range segments {
		b.WriteString("\xff" + s.Name)
		b.Write(binary.BigEndian.AppendUint16(nil, uint16(len(s.Data)+2)))
		b.WriteString(s.Data)
	}
	return b.String() + file[2:]
}

// Exif returns the data of an APP1 segment with an orientation, a description, and an invented
// location.
func Exif(orientation int, description, place string) string {
	order := binary.LittleEndian
	entry := func(b []byte, tag, kind uint16, count, value uint32) []byte {
		b = order.AppendUint16(order.AppendUint16(b, tag), kind)
		return order.AppendUint32(order.AppendUint32(b, count), value)
	}
	const head, entries = 8, 3
	behind := uint32(head + 2 + entries*12 + 4)
	b := append([]byte("Exif\x00\x00II*\x00"), head, 0, 0, 0)
	b = order.AppendUint16(b, entries)
	b = entry(b, 0x010E, 2, uint32(len(description)), behind)
	b = entry(b, 0x0112, 3, 1, uint32(orientation))
	b = entry(b, 0x8825, 4, 1, behind+uint32(len(description))) // the GPS block
	b = append(order.AppendUint32(b, 0), description...)
	b = order.AppendUint16(b, 1)
	b = entry(b, 0x001B, 7, uint32(len(place)), behind+uint32(len(description))+18)
	return string(append(order.AppendUint32(b, 0), place...))
}

// PaletteGIF returns a GIF with the colours of Quartered and some greys.
func PaletteGIF(t *testing.T, m image.Image) string {
	t.Helper()
	const greys = 16
	colors := make(color.Palette, 0, len(Quarters)+greys)
	for _, c := range Quarters {
		colors = append(colors, c)
	}
	for grey := range greys {
		colors = append(colors, color.Gray{uint8(grey * 256 / greys)})
	}
	p := image.NewPaletted(m.Bounds(), colors)
	draw.Draw(p, p.Rect, m, m.Bounds().Min, draw.Src)
	var b bytes.Buffer
	if err := gif.Encode(&b, p, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Decode decodes a JPEG, PNG or GIF.
func Decode(t *testing.T, file string) image.Image {
	t.Helper()
	decode := jpeg.Decode
	switch file[:4] {
	case "\x89PNG":
		decode = png.Decode
	case "GIF8":
		decode = gif.Decode
	}
	m, err := decode(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// DecodeWebP decodes a WebP file.
func DecodeWebP(t *testing.T, file string) image.Image {
	t.Helper()
	m, err := webp.Decode(strings.NewReader(file))
	if err != nil {
		t.Fatalf("decoding the variant: %v", err)
	}
	return m
}

// WebPFeatures returns the properties of a WebP file.
func WebPFeatures(t *testing.T, file string) *webp.Features {
	t.Helper()
	f, err := webp.GetFeatures(strings.NewReader(file))
	if err != nil {
		t.Fatalf("reading the variant: %v", err)
	}
	return f
}
