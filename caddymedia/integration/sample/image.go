package sample

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"sync"
	"testing"

	decoder "github.com/deepteams/webp"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

// Quarters are the colours of the quarters in Quartered, in reading order.
var Quarters = [4]color.NRGBA{{220, 30, 30, 255}, {30, 200, 30, 255}, {30, 30, 220, 255}, {230, 230, 230, 255}}

// Quartered returns an image with a distinct colour in each quarter.
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

// Plain returns an image in one colour.
func Plain(width, height int, c color.NRGBA) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.Draw(m, m.Rect, image.NewUniform(c), image.Point{}, draw.Src)
	return m
}

// Photo returns a smooth image with some texture, which takes encoders some time.
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

// EncodeJPEG returns the image as a JPEG file.
func EncodeJPEG(t *testing.T, m image.Image, quality int) string {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// EncodePNG returns the image as a PNG file.
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
	m, err := decoder.Decode(strings.NewReader(file))
	if err != nil {
		t.Fatalf("decoding the variant: %v", err)
	}
	return m
}

// WebPFeatures returns the properties of a WebP file.
func WebPFeatures(t *testing.T, file string) *decoder.Features {
	t.Helper()
	f, err := decoder.GetFeatures(strings.NewReader(file))
	if err != nil {
		t.Fatalf("reading the variant: %v", err)
	}
	return f
}

// SlowImage takes an encoder several seconds at the effort "small". It needs more memory
// than an image may use by default.
var SlowImage = sync.OnceValue(func() string {
	if encoder, err := webp.New(); err == nil && !encoder.Stops() {
		return PhotoJPEG(5000, 3500) // small is not so slow in Go
	}
	return PhotoJPEG(4000, 3000)
})

// PhotoJPEG returns a JPEG file of a Photo.
func PhotoJPEG(width, height int) string {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, Photo(width, height), &jpeg.Options{Quality: 80}); err != nil {
		panic(err) // it writes to memory
	}
	return b.String()
}
