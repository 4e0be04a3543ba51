package webp_test

import (
	"image"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// photograph returns planes of a size, from the corpus if there is one.
func photograph(b *testing.B, width, height int) *image.YCbCr {
	b.Helper()
	tile := planes(draw(1024, 1024))
	if root := os.Getenv("MEDIA_TEST_CORPUS"); root != "" {
		tile = readImage(b, filepath.Join(root, "valid", "photo-1024-sunset.jpg")).(*image.YCbCr)
	}
	out := image.NewYCbCr(image.Rect(0, 0, width, height), image.YCbCrSubsampleRatio420)
	fill := func(to, from []byte, toStride, fromStride, side, width, height int) {
		for y := range height {
			row := to[y*toStride:][:width]
			for x := 0; x < width; x += side {
				copy(row[x:], from[y%side*fromStride:][:side])
			}
		}
	}
	fill(out.Y, tile.Y, out.YStride, tile.YStride, 1024, width, height)
	fill(out.Cb, tile.Cb, out.CStride, tile.CStride, 512, (width+1)/2, (height+1)/2)
	fill(out.Cr, tile.Cr, out.CStride, tile.CStride, 512, (width+1)/2, (height+1)/2)
	return out
}

// benchmark encodes an image. Planes are copied each time, outside the measured time.
func benchmark(b *testing.B, img image.Image, opts webp.Options) {
	b.Helper()
	e := newEncoder(b)
	size := img.Bounds().Size()
	bytes, samples := 0, img
	b.ReportAllocs()
	for b.Loop() {
		if p, ok := img.(*image.YCbCr); ok {
			b.StopTimer()
			samples = clonePlanes(p)
			b.StartTimer()
		}
		file, err := e.Encode(b.Context(), samples, opts)
		if err != nil {
			b.Fatal(err)
		}
		bytes = len(file)
	}
	report(b, size.X*size.Y, bytes)
}

func report(b *testing.B, pixels, bytes int) {
	b.ReportMetric(float64(pixels)*float64(b.N)/1e6/b.Elapsed().Seconds(), "MP/s")
	b.ReportMetric(float64(bytes), "file-bytes")
}

func BenchmarkPhotograph(b *testing.B) {
	for _, size := range []struct {
		name          string
		width, height int
	}{{"0.3MP", 690, 431}, {"2MP", 1920, 1080}, {"12MP", 4000, 3000}, {"48MP", 8000, 6000}} {
		b.Run(size.name, func(b *testing.B) {
			benchmark(b, photograph(b, size.width, size.height), webp.Options{})
		})
	}
}

func BenchmarkEffort(b *testing.B) {
	for _, effort := range []webp.Effort{webp.Fast, webp.Normal, webp.Small} {
		b.Run(string(effort), func(b *testing.B) {
			benchmark(b, photograph(b, 1920, 1080), webp.Options{Effort: effort})
		})
	}
}

func BenchmarkPixels(b *testing.B) {
	photo := pixels(photograph(b, 1920, 1080))
	alpha := drawAlpha(1920, 1080)
	flat := drawFlat(1600, 1000)
	for _, bb := range []struct {
		name string
		img  *image.NRGBA
		opts webp.Options
	}{
		{"opaque", photo, webp.Options{}},
		{"alpha", alpha, webp.Options{}},
		{"alpha-lossless", alpha, webp.Options{Lossless: true}},
		{"flat", flat, webp.Options{}},
		{"flat-lossless", flat, webp.Options{Lossless: true}},
	} {
		b.Run(bb.name, func(b *testing.B) { benchmark(b, bb.img, bb.opts) })
	}
}

func BenchmarkAnimate(b *testing.B) {
	const width, height, count = 480, 320, 30
	back := draw(width+count, height)
	frames := make([]shown, 0, count)
	for i := range count {
		img := image.NewNRGBA(image.Rect(0, 0, width, height))
		for y := range height {
			copy(img.Pix[y*img.Stride:], back.Pix[back.PixOffset(i, y):][:4*width])
		}
		frames = append(frames, shown{img, 40 * time.Millisecond})
	}
	bytes := 0
	for b.Loop() {
		bytes = len(animate(b, frames, 0, webp.Options{}))
	}
	report(b, width*height*count, bytes)
}

func BenchmarkProfile(b *testing.B) {
	file := encode(b, draw(1024, 768), webp.Options{})
	profile := make([]byte, 736)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := webp.WithProfile(file, profile); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(file)))
}
