//go:build unix

package render_test

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// BenchmarkBesideCwebp alternates with cwebp, the program of libwebp, from file to file at equal
// quality and method. It reports the ratios of processor time and of size.
func BenchmarkBesideCwebp(b *testing.B) {
	encoder, err := webp.New()
	if err != nil {
		b.Fatal(err)
	}
	m := render.NewMaker(encoder, render.Limits{Memory: 4 << 30})
	for _, size := range []image.Point{{690, 431}, {1920, 1080}, {4096, 3072}, {8192, 5859}} {
		b.Run(fmt.Sprintf("%.1f MP", float64(size.X*size.Y)/1e6), func(b *testing.B) {
			file := encoded(b, func(out *bytes.Buffer) error {
				return jpeg.Encode(out, photograph(b, size.X, size.Y), &jpeg.Options{Quality: 90})
			})
			name := filepath.Join(b.TempDir(), "in.jpg")
			if err := os.WriteFile(name, file, 0o600); err != nil {
				b.Fatal(err)
			}
			var theirs, ours time.Duration
			var theirSize, ourSize int
			for b.Loop() {
				start := processorTime(b, syscall.RUSAGE_CHILDREN)
				theirSize = len(cwebp(b, name))
				theirs += processorTime(b, syscall.RUSAGE_CHILDREN) - start
				start = processorTime(b, syscall.RUSAGE_SELF)
				in, err := os.Open(name)
				if err != nil {
					b.Fatal(err)
				}
				out, err := variantOf(b.Context(), m, in, checked(b, file, "jpg"), render.Options{})
				if err := in.Close(); err != nil {
					b.Fatal(err)
				}
				if err != nil {
					b.Fatal(err)
				}
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
	if err := syscall.Getrusage(who, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkBesideVips alternates with vipsthumbnail, the program of libvips, which makes one image
// for each start. Both make three sizes of a photograph of 12 megapixels as WebP, at equal quality
// and method. MEDIA_TEST_VIPS is the path of vipsthumbnail.
func BenchmarkBesideVips(b *testing.B) {
	program := os.Getenv("MEDIA_TEST_VIPS")
	if program == "" {
		b.Skip("MEDIA_TEST_VIPS names no program")
	}
	encoder, err := webp.New()
	if err != nil {
		b.Fatal(err)
	}
	m := render.NewMaker(encoder, render.Limits{})
	file := encoded(b, func(out *bytes.Buffer) error {
		return jpeg.Encode(out, photograph(b, 4000, 3000), &jpeg.Options{Quality: 90})
	})
	folder := b.TempDir()
	name := filepath.Join(folder, "in.jpg")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		b.Fatal(err)
	}
	outputs := make([]render.Output, 0, 3)
	for _, width := range []int{320, 640, 1280} {
		outputs = append(outputs, render.Output{Format: imaging.WebP, Box: scale.Box{Width: width}})
	}
	var theirs, ours time.Duration
	for b.Loop() {
		start := processorTime(b, syscall.RUSAGE_CHILDREN)
		for _, o := range outputs {
			out := filepath.Join(folder, fmt.Sprintf("%d.webp[Q=80]", o.Box.Width))
			command := exec.CommandContext(b.Context(), program, name, "--size", strconv.Itoa(o.Box.Width), "-o", out)
			if text, err := command.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, text)
			}
		}
		theirs += processorTime(b, syscall.RUSAGE_CHILDREN) - start
		start = processorTime(b, syscall.RUSAGE_SELF)
		in, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		made, err := m.Make(b.Context(), in, checked(b, file, "jpg"), outputs...)
		if err := in.Close(); err != nil {
			b.Fatal(err)
		}
		if err != nil || made[0].Err != nil {
			b.Fatal(err, made[0].Err)
		}
		ours += processorTime(b, syscall.RUSAGE_SELF) - start
	}
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "time/vips")
	b.ReportMetric(theirs.Seconds()*1000/float64(b.N), "vips-ms/op")
	b.ReportMetric(ours.Seconds()*1000/float64(b.N), "cpu-ms/op")
}
