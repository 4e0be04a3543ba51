package imaging_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"runtime"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/imaging/webp"
	"github.com/caddymedia/media/internal/test"
)

// expectSimilar fails the test unless the samples of two images differ by at most most.
func expectSimilar(t *testing.T, got, want image.Image, most int) {
	t.Helper()
	if got.Bounds() != want.Bounds() {
		t.Fatalf("got %v, want %v", got.Bounds(), want.Bounds())
	}
	for y := range want.Bounds().Dy() {
		for x := range want.Bounds().Dx() {
			a, b := color.NRGBAModel.Convert(got.At(x, y)).(color.NRGBA), color.NRGBAModel.Convert(want.At(x, y)).(color.NRGBA)
			for i, v := range []uint8{a.R, a.G, a.B, a.A} {
				if d := int(v) - int([]uint8{b.R, b.G, b.B, b.A}[i]); max(d, -d) > most {
					t.Fatalf("at %d, %d: got %v, want %v", x, y, a, b)
				}
			}
		}
	}
}

func TestDecodeStillWebP(t *testing.T) {
	t.Parallel()
	best := webp.Options{Quality: 100}
	for name, c := range map[string]struct {
		img    image.Image
		opts   webp.Options
		most   int
		planes bool
	}{
		"lossy":                    {opaque(64, 48), best, 3, true},
		"lossy with odd sides":     {opaque(33, 17), best, 6, true},
		"lossy with alpha":         {shaded(64, 48), best, 3, false},
		"alpha with odd sides":     {shaded(33, 17), best, 6, false},
		"lossless":                 {opaque(33, 17), webp.Options{Lossless: true}, 0, false},
		"lossless with alpha":      {shaded(33, 17), webp.Options{Lossless: true}, 0, false},
		"lossy with a profile":     {opaque(64, 48), webp.Options{Quality: 100, Profile: profile("RGB ", 200)}, 3, true},
		"black, white and between": {grey(256, 16), best, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decodedWebP(t, drawWebP(t, c.img, c.opts))
			planes, ok := got.(*image.YCbCr)
			if ok != c.planes || ok && planes.SubsampleRatio != image.YCbCrSubsampleRatio420 {
				t.Errorf("got a %T", got)
			}
			expectSimilar(t, got, c.img, c.most)
		})
	}
}

// grey returns an image of all greys, from left to right.
func grey(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		v := byte(i % width * 255 / (width - 1))
		copy(img.Pix[4*i:], []byte{v, v, v, 255})
	}
	return img
}

// solid returns the chunks of an image of one colour, 4 pixels high.
func solid(t *testing.T, width int, c color.NRGBA) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, width, 4))
	draw.Draw(img, img.Rect, image.NewUniform(c), image.Point{}, draw.Src)
	return bitstream(drawWebP(t, img, webp.Options{Lossless: true}))
}

// TestWebPCanvases: the expected pixels follow from the formulas of the container specification.
func TestWebPCanvases(t *testing.T) {
	t.Parallel()
	red, green, clear := color.NRGBA{255, 0, 0, 255}, color.NRGBA{0, 255, 0, 255}, color.NRGBA{}
	half, quarter := color.NRGBA{0, 0, 255, 128}, color.NRGBA{255, 255, 255, 64}
	left, right, all := image.Rect(0, 0, 4, 4), image.Rect(4, 0, 8, 4), image.Rect(0, 0, 8, 4)
	const dispose, replace = 1, 2
	file := riffFile(
		extended(flagAnimation|flagAlpha, 8, 4), animHead(7),
		frameWebP(left, 10, 0, solid(t, 4, red)),
		frameWebP(right, 20, dispose, solid(t, 4, green)),
		frameWebP(all, 0, 0, solid(t, 8, half)),
		frameWebP(left, 1<<24-1, 0, solid(t, 4, quarter)),
		frameWebP(right, 50, replace, solid(t, 4, quarter)),
		frameWebP(all, 60, 0, solid(t, 8, clear)),
		frameWebP(left, 70, replace, solid(t, 4, clear)),
	)
	want := []struct {
		left, right color.NRGBA
		shown       int64 // milliseconds
	}{
		{red, clear, 10},
		{red, green, 20},
		{color.NRGBA{127, 0, 128, 255}, half, 0},
		{color.NRGBA{159, 64, 160, 255}, half, 1<<24 - 1},
		{color.NRGBA{159, 64, 160, 255}, quarter, 50},
		{color.NRGBA{159, 64, 160, 255}, quarter, 60},
		{clear, quarter, 70},
	}
	info, err := check(file, "webp", imaging.Options{})
	if err != nil || !info.Animated || info.Loops != 7 {
		t.Fatalf("got %+v, %v", info, err)
	}
	n := 0
	for canvas, err := range imaging.WebPCanvases(bytes.NewReader(file), info) {
		test.Must(t, err)
		l, r := canvas.Image.NRGBAAt(1, 1), canvas.Image.NRGBAAt(7, 3)
		if w := want[n]; l != w.left || r != w.right || canvas.Shown.Milliseconds() != w.shown {
			t.Errorf("frame %d: got %v, %v, %v, want %v", n, l, r, canvas.Shown, w)
		}
		n++
	}
	test.Equal(t, n, len(want), "frames")
	if first := decodedWebP(t, file); first.At(1, 1) != red || first.At(7, 3) != clear {
		t.Errorf("Decode returned %v, %v", first.At(1, 1), first.At(7, 3))
	}
}

func TestWebPCanvasesEndEarly(t *testing.T) {
	t.Parallel()
	all := image.Rect(0, 0, 8, 4)
	file := riffFile(extended(flagAnimation, 8, 4), animHead(0),
		frameWebP(all, 10, 0, solid(t, 8, color.NRGBA{1, 2, 3, 255})), frameWebP(all, 10, 0, lossyHead(8, 4)))
	info, err := check(file, "webp", imaging.Options{})
	test.Must(t, err)
	var errs []error
	for _, err := range imaging.WebPCanvases(bytes.NewReader(file), info) {
		errs = append(errs, err)
	}
	if len(errs) != 2 || errs[0] != nil || verdictOf(errs[1]) != refused {
		t.Errorf("got %v", errs)
	}
	for canvas, err := range imaging.WebPCanvases(bytes.NewReader(file), info) {
		if err != nil || canvas.Image == nil {
			t.Errorf("got %v", err)
		}
		break
	}
}

func TestDamagedWebPIsRefused(t *testing.T) {
	t.Parallel()
	lossy, exact := drawWebP(t, shaded(64, 64), webp.Options{}), drawWebP(t, shaded(64, 64), webp.Options{Lossless: true})
	for name, file := range map[string][]byte{
		"no pixels":               riffFile(lossyHead(64, 64)),
		"no lossless pixels":      riffFile(losslessHead(64, 64)),
		"no alpha":                riffFile(extended(flagAlpha, 64, 64), webpChunk("ALPH", nil), bitstream(drawWebP(t, opaque(64, 64), webp.Options{}))),
		"lossy and half a file":   riffFile(extended(flagAlpha, 64, 64), webpChunk("VP8 ", lossy[bytes.Index(lossy, []byte("VP8 "))+8:len(lossy)*3/4])),
		"lossless, half a file":   riffFile(webpChunk("VP8L", exact[20:len(exact)/2])),
		"too many coefficients":   riffFile(webpChunk("VP8 ", append(lossyHead(64, 64)[8:], make([]byte, 17<<20)...))),
		"an animation, no pixels": flatAnimation(2, 30, 20),
	} {
		info, err := check(file, "webp", imaging.Options{})
		test.Must(t, err, name)
		if _, err := imaging.Decode(bytes.NewReader(file), info); verdictOf(err) != refused {
			t.Errorf("%s: got %v (%s)", name, err, verdictOf(err))
		}
	}
}

// TestWebPBombs: an image without pixels costs at most the memory of its canvas. The test is not
// parallel, because it reads counters of the process.
func TestWebPBombs(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		most uint64 // bytes
	}{
		"lossy":     {riffFile(lossyHead(7000, 7000)), 80 << 20},
		"lossless":  {riffFile(losslessHead(7000, 7000)), 1 << 20},
		"alpha":     {riffFile(extended(flagAlpha, 7000, 7000), webpChunk("ALPH", []byte{1, 0x2F}), lossyHead(7000, 7000)), 1 << 20},
		"animation": {flatAnimation(1000, 400, 400), 2 << 20},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		info, err := check(c.file, "webp", imaging.Options{})
		test.Must(t, err, name)
		_, err = imaging.Decode(bytes.NewReader(c.file), info)
		runtime.ReadMemStats(&after)
		test.Equal(t, verdictOf(err), refused, name, err)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > c.most {
			t.Errorf("%s: allocated %d bytes", name, allocated)
		}
	}
}
