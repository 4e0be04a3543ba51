//go:build unix

package render_test

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

// BenchmarkBesideCwebp alternates with cwebp, the program of libwebp, from file to file at equal
// quality and method. It reports the ratios of processor time and of size.
func BenchmarkBesideCwebp(b *testing.B) {
	encoder, err := webp.New()
	imagingtest.Must(b, err)
	m := render.NewMaker(encoder, render.Limits{Memory: 4 << 30})
	for _, size := range []image.Point{{690, 431}, {1920, 1080}, {4096, 3072}, {8192, 5859}} {
		b.Run(fmt.Sprintf("%.1f MP", float64(size.X*size.Y)/1e6), func(b *testing.B) {
			file := encoded(b, func(out *bytes.Buffer) error {
				return jpeg.Encode(out, photograph(b, size.X, size.Y), &jpeg.Options{Quality: 90})
			})
			name := filepath.Join(b.TempDir(), "in.jpg")
			imagingtest.Must(b, os.WriteFile(name, file, 0o600))
			var theirs, ours time.Duration
			var theirSize, ourSize int
			for b.Loop() {
				start := processorTime(b, syscall.RUSAGE_CHILDREN)
				theirSize = len(cwebp(b, name))
				theirs += processorTime(b, syscall.RUSAGE_CHILDREN) - start
				start = processorTime(b, syscall.RUSAGE_SELF)
				in, err := os.Open(name)
				imagingtest.Must(b, err)
				out, err := variantOf(b.Context(), m, in, checked(b, file, "jpg"), render.Options{})
				imagingtest.Must(b, in.Close())
				imagingtest.Must(b, err)
				ours += processorTime(b, syscall.RUSAGE_SELF) - start
				ourSize = len(out)
			}
			b.ReportMetric(ours.Seconds()/theirs.Seconds(), "time/cwebp")
			b.ReportMetric(float64(ourSize)/float64(theirSize), "size/cwebp")
			b.ReportMetric(ours.Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
	}
}

func processorTime(b *testing.B, who int) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	imagingtest.Must(b, syscall.Getrusage(who, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// photograph returns an image of a size, tiled from a real photograph if there is a corpus.
func photograph(t testing.TB, width, height int) *image.RGBA {
	t.Helper()
	var stone image.Image = scene(1024, 683)
	if root := os.Getenv("MEDIA_TEST_CORPUS"); root != "" {
		file, err := fs.ReadFile(os.DirFS(root), "valid/photo-1024-sunset.jpg")
		if err == nil {
			stone, err = jpeg.Decode(bytes.NewReader(file))
		}
		imagingtest.Must(t, err)
	}
	out, size := image.NewRGBA(image.Rect(0, 0, width, height)), stone.Bounds().Size()
	for y := 0; y < height; y += size.Y {
		for x := 0; x < width; x += size.X {
			draw.Draw(out, image.Rect(x, y, x+size.X, y+size.Y), stone, image.Point{}, draw.Src)
		}
	}
	return out
}
