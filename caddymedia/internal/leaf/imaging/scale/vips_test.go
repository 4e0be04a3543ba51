package scale_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
)

// TestBesideVips compares copies of all photographs with those of vipsthumbnail, the program of
// libvips. MEDIA_TEST_VIPS is its path.
func TestBesideVips(t *testing.T) {
	t.Parallel()
	program := os.Getenv("MEDIA_TEST_VIPS")
	if program == "" {
		t.Skip("MEDIA_TEST_VIPS names no program")
	}
	for _, folder := range []string{"valid", "color"} {
		for _, path := range imagingtest.Files(t, folder) {
			img := decoded(t, path)
			size := img.Bounds().Size()
			if size.X < 100 || filepath.Base(path) == "cmyk-600x400.jpg" || filepath.Base(path) == "video-001.cmyk.jpeg" {
				continue // too small, or with other colours
			}
			t.Run(filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				s := scale.New(img)
				for _, factor := range []float64{1.3, 2.6, 3.9, 6.1} {
					v := scale.Box{Width: int(float64(size.X) / factor)}.View(size.X, size.Y)
					theirs := vips(t, program, path, v.Size)
					got := ssim(luma(s.Scale(v, scale.Turn{})), luma(theirs))
					t.Logf("%v: SSIM %.4f", v.Size, got)
					if got < 0.98 {
						t.Errorf("the copy of %v differs: SSIM %.4f", v.Size, got)
					}
				}
			})
		}
	}
}

// decoded returns an image in a type for a source.
func decoded(t testing.TB, path string) image.Image {
	t.Helper()
	file, err := os.ReadFile(path)
	imagingtest.Must(t, err)
	var img image.Image
	switch filepath.Ext(path) {
	case ".png":
		img, err = png.Decode(bytes.NewReader(file))
	case ".gif":
		img, err = gif.Decode(bytes.NewReader(file))
	default:
		img, err = jpeg.Decode(bytes.NewReader(file))
	}
	imagingtest.Must(t, err, path)
	switch img.(type) {
	case *image.YCbCr, *image.Gray, *image.NRGBA:
		return img
	}
	out := image.NewNRGBA(img.Bounds())
	draw.Draw(out, out.Rect, img, out.Rect.Min, draw.Src)
	return out
}

func vips(t *testing.T, program, path string, size image.Point) image.Image {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.png")
	command := exec.CommandContext(t.Context(), program, "--size", fmt.Sprintf("%dx%d!", size.X, size.Y), "--output", out, path)
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("vipsthumbnail: %v: %s", err, said)
	}
	return decoded(t, out)
}

// luma returns the brightness of each pixel, over white.
func luma(img image.Image) [][]float64 {
	b := img.Bounds()
	rows := make([][]float64, b.Dy())
	for y := range rows {
		rows[y] = make([]float64, b.Dx())
		for x := range rows[y] {
			switch img := img.(type) {
			case *image.YCbCr:
				rows[y][x] = float64(img.YCbCrAt(x, y).Y)
			default:
				c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
				v := 0.299*float64(c.R) + 0.587*float64(c.G) + 0.114*float64(c.B)
				rows[y][x] = 255 + (v-255)*float64(c.A)/255
			}
		}
	}
	return rows
}

// ssim returns the mean structural similarity of two images (Wang, Bovik, Sheikh and Simoncelli,
// 2004), with Gaussian windows of 11 by 11.
func ssim(a, b [][]float64) float64 {
	product := func(p, q [][]float64) [][]float64 {
		out := make([][]float64, len(p))
		for y := range p {
			for x := range p[y] {
				out[y] = append(out[y], p[y][x]*q[y][x])
			}
		}
		return blurred(out)
	}
	aa, bb, ab := product(a, a), product(b, b), product(a, b)
	ma, mb := blurred(a), blurred(b)
	const c1, c2 = 0.01 * 255 * 0.01 * 255, 0.03 * 255 * 0.03 * 255
	sum, n := 0.0, 0.0
	for y := range ma {
		for x := range ma[y] {
			p, q := ma[y][x], mb[y][x]
			va, vb, cov := aa[y][x]-p*p, bb[y][x]-q*q, ab[y][x]-p*q
			sum += (2*p*q + c1) * (2*cov + c2) / ((p*p + q*q + c1) * (va + vb + c2))
			n++
		}
	}
	return sum / n
}

// blurred returns the Gaussian means. At the edges they count what there is.
func blurred(rows [][]float64) [][]float64 {
	return transposed(alongRows(transposed(alongRows(rows))))
}

func alongRows(rows [][]float64) [][]float64 {
	const radius, sigma = 5, 1.5
	out := make([][]float64, len(rows))
	for y, row := range rows {
		for x := range row {
			sum, weights := 0.0, 0.0
			for k := max(0, x-radius); k <= min(len(row)-1, x+radius); k++ {
				w := math.Exp(-float64((k-x)*(k-x)) / (2 * sigma * sigma))
				sum += w * row[k]
				weights += w
			}
			out[y] = append(out[y], sum/weights)
		}
	}
	return out
}

func transposed(rows [][]float64) [][]float64 {
	out := make([][]float64, len(rows[0]))
	for x := range out {
		for _, row := range rows {
			out[x] = append(out[x], row[x])
		}
	}
	return out
}
