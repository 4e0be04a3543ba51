package render_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color/palette"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"io/fs"
	"os"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/imaging/webp"
	"github.com/caddymedia/media/internal/test"
)

// photograph returns an image of a size, tiled from a real photograph if there is a corpus.
func photograph(t testing.TB, width, height int) *image.RGBA {
	t.Helper()
	var stone image.Image = scene(1024, 683)
	if root := os.Getenv("MEDIA_TEST_CORPUS"); root != "" {
		file, err := fs.ReadFile(os.DirFS(root), "valid/photo-1024-sunset.jpg")
		if err == nil {
			stone, err = jpeg.Decode(bytes.NewReader(file))
		}
		test.Must(t, err)
	}
	out, size := image.NewRGBA(image.Rect(0, 0, width, height)), stone.Bounds().Size()
	for y := 0; y < height; y += size.Y {
		for x := 0; x < width; x += size.X {
			draw.Draw(out, image.Rect(x, y, x+size.X, y+size.Y), stone, image.Point{}, draw.Src)
		}
	}
	return out
}

// subject is the input of a benchmark.
type subject struct {
	name, ext string
	file      []byte
}

func subjects(b *testing.B) []subject {
	b.Helper()
	var all []subject
	for _, size := range []image.Point{{690, 431}, {1920, 1080}, {4096, 3072}, {8192, 5859}} {
		name := fmt.Sprintf("JPEG %.1f MP", float64(size.X*size.Y)/1e6)
		file := encoded(b, func(out *bytes.Buffer) error {
			return jpeg.Encode(out, photograph(b, size.X, size.Y), &jpeg.Options{Quality: 90})
		})
		all = append(all, subject{name, "jpg", file})
	}
	photo := photograph(b, 1920, 1080)
	soft := turned(photo, 1).(*image.NRGBA)
	for i := 3; i < len(soft.Pix); i += 4 {
		soft.Pix[i] = byte(i / 4 % 1920 / 8)
	}
	drawing := image.NewPaletted(photo.Rect, palette.Plan9)
	draw.Draw(drawing, photo.Rect, photo, image.Point{}, draw.Src)
	moving := new(gif.GIF)
	for i := range 20 {
		frame := image.NewPaletted(image.Rect(0, 0, 480, 320), palette.Plan9)
		draw.Draw(frame, frame.Rect, photo, image.Pt(20*i, 10*i), draw.Src)
		moving.Image, moving.Delay = append(moving.Image, frame), append(moving.Delay, 5)
	}
	return append(all,
		subject{"PNG with alpha 2.1 MP", "png", asPNG(b, soft)},
		subject{"PNG of a palette 2.1 MP", "png", asPNG(b, drawing)},
		subject{"GIF of 20 frames 0.2 MP", "gif", asGIF(b, moving)})
}

// BenchmarkVariant measures the steps separately: decoding, conversion for the encoder, and all
// together.
func BenchmarkVariant(b *testing.B) {
	encoder, err := webp.New()
	test.Must(b, err)
	m := render.NewMaker(encoder, render.Limits{Memory: 4 << 30})
	for _, s := range subjects(b) {
		info := checked(b, s.file, s.ext)
		pixels := float64(info.FramePixels)
		perPixel := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pixels, "ns/pixel")
		}
		b.Run(s.name+"/decode", func(b *testing.B) {
			for b.Loop() {
				test.Must(b, m.Check(b.Context(), bytes.NewReader(s.file), info))
			}
			perPixel(b)
		})
		b.Run(s.name+"/convert", func(b *testing.B) {
			convert := prepared(b, s, info)
			for b.Loop() {
				convert()
			}
			perPixel(b)
		})
		b.Run(s.name+"/all", func(b *testing.B) {
			var file []byte
			for b.Loop() {
				if file, err = variantOf(b.Context(), m, bytes.NewReader(s.file), info, render.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			perPixel(b)
			b.ReportMetric(float64(len(file)), "bytes")
		})
	}
}

// prepared returns the step between decoding and encoding.
func prepared(b *testing.B, s subject, info imaging.Info) func() {
	b.Helper()
	if info.Format == imaging.GIF {
		g, err := imaging.DecodeGIF(bytes.NewReader(s.file), info)
		test.Must(b, err)
		return func() { render.Compose(g) }
	}
	img, err := imaging.Decode(bytes.NewReader(s.file), info)
	test.Must(b, err)
	info.Orientation = 6
	return func() { render.Upright(img, info) }
}
