package imaging_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
)

func benchmarkImage(b *testing.B, data []byte, ext string) {
	b.Helper()
	r := bytes.NewReader(data)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := imaging.CheckImage(r, int64(len(data)), ext, imaging.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckJPEG(b *testing.B) { benchmarkImage(b, drawJPEG(b, 2400, 1600), "jpg") }
func BenchmarkCheckPNG(b *testing.B)  { benchmarkImage(b, drawPNG(b, 1600, 1200), "png") }
func BenchmarkCheckGIF(b *testing.B)  { benchmarkImage(b, drawGIF(b, 800, 600, 50), "gif") }

func BenchmarkCheckSVG(b *testing.B) {
	path := `<path class="a" style="fill:#fff" transform="translate(1 2)" d="M10.5 3.25C1 2 3 4 5 6l7-8z"/>`
	benchmarkImage(b, []byte(svg(strings.Repeat(path, 5000))), "svg")
}

func BenchmarkCheckFile(b *testing.B) {
	data := "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + strings.Repeat("1 0 obj <</Type/Page>> endobj\n", 200)
	b.ReportAllocs()
	for b.Loop() {
		if err := checkFile("pdf", data); err != nil {
			b.Fatal(err)
		}
	}
}

// largePhoto returns a JPEG of 3 MB like that of a camera.
func largePhoto(b *testing.B) []byte {
	b.Helper()
	preview := make([]byte, 30_000)
	return withSegments(drawJPEG(b, 2400, 1600), exifSegment(append(turned(6), preview...)), iccSegment(1, 1, profile("RGB ", 536)),
		segment(0xE1, append([]byte(xmpName), preview...)))
}

func BenchmarkCheckPhoto(b *testing.B) { benchmarkImage(b, largePhoto(b), "jpg") }
func BenchmarkCheckSmall(b *testing.B) { benchmarkImage(b, drawJPEG(b, 32, 32), "jpg") }

func BenchmarkStripped(b *testing.B) {
	data := largePhoto(b)
	info, err := check(data, "jpg", imaging.Options{Strip: imaging.StripOn})
	if err != nil {
		b.Fatal(err)
	}
	r := bytes.NewReader(data)
	out := make([]byte, 32<<10)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		for stripped := info.Stripped(r); err == nil; {
			_, err = stripped.Read(out)
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
		err = nil
	}
}
