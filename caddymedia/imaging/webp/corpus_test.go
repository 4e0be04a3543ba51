package webp_test

import (
	"bytes"
	"image"
	imagedraw "image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// readImage decodes a file: 4:2:0 planes unchanged, everything else as pixels.
func readImage(t testing.TB, path string) image.Image {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var img image.Image
	switch filepath.Ext(path) {
	case ".png":
		img, err = png.Decode(bytes.NewReader(data))
	case ".gif":
		img, err = gif.Decode(bytes.NewReader(data))
	default:
		img, err = jpeg.Decode(bytes.NewReader(data))
	}
	if err != nil {
		t.Fatal(err)
	}
	switch img := img.(type) {
	case *image.YCbCr:
		if img.SubsampleRatio == image.YCbCrSubsampleRatio420 {
			return img
		}
	case *image.NRGBA:
		return img
	}
	out := image.NewNRGBA(image.Rectangle{Max: img.Bounds().Size()})
	imagedraw.Draw(out, out.Rect, img, img.Bounds().Min, imagedraw.Src)
	return out
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"valid", "color"} {
		for _, path := range imagingtest.Files(t, folder) {
			t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				switch img := readImage(t, path).(type) {
				case *image.YCbCr:
					want := pixels(img)
					alike(t, encode(t, img, webp.Options{Quality: 95}), want, 36)
				case *image.NRGBA:
					alike(t, encode(t, img, webp.Options{Lossless: true}), img, 99)
					corpusLossy(t, img)
				}
			})
		}
	}
}

// corpusLossy compares the quality of a lossy file with the best possible one, that of the image
// at half the chroma resolution.
func corpusLossy(t *testing.T, img *image.NRGBA) {
	t.Helper()
	best := pixels(planes(img))
	for i := 3; i < len(best.Pix); i += 4 {
		best.Pix[i] = img.Pix[i]
	}
	got := decode(t, encode(t, img, webp.Options{Quality: 95}))
	for _, background := range []float64{0, 255} {
		possible := psnr(best, img, background)
		if db := psnr(got, img, background); db < min(38, possible-3) {
			t.Errorf("over %v: %.2f dB, where %.2f are possible", background, db, possible)
		}
	}
}

func TestCorpusAnimations(t *testing.T) {
	t.Parallel()
	for _, path := range imagingtest.Files(t, "anim") {
		if filepath.Ext(path) != ".gif" {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			want := readFrames(t, path)
			for _, opts := range []webp.Options{{Quality: 95}, {Lossless: true}} {
				got, _ := play(t, animate(t, want, 0, opts))
				if len(want) != len(got) {
					t.Fatalf("%d frames, want %d", len(got), len(want))
				}
				for i := range got {
					if db := psnr(got[i].img, want[i].img, 255); opts.Lossless && db < 99 || db < 24 {
						t.Errorf("frame %d: %.2f dB", i, db)
					}
				}
			}
		})
	}
}

// readFrames composes the frames of a GIF without their disposals, and leaves out those that change
// nothing.
func readFrames(t *testing.T, path string) []shown {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gif.DecodeAll(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	canvas := image.NewNRGBA(image.Rect(0, 0, g.Config.Width, g.Config.Height))
	var out []shown
	for i, frame := range g.Image {
		imagedraw.Draw(canvas, frame.Rect, frame, frame.Rect.Min, imagedraw.Over)
		img := image.NewNRGBA(canvas.Rect)
		copy(img.Pix, canvas.Pix)
		if i == 0 || !bytes.Equal(out[len(out)-1].img.Pix, img.Pix) {
			out = append(out, shown{img, 100 * time.Millisecond})
		}
	}
	return out
}

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
