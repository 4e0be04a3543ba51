package scale_test

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"math"
	"runtime"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
)

func TestConstant(t *testing.T) {
	t.Parallel()
	for _, value := range []float64{0, 1, 127, 254, 255} {
		at := func(_, _ float64, c int) float64 { return math.Abs(value - float64(c)) }
		for _, side := range []int{1, 2, 3, 9, 64, 301} {
			for name, img := range drawn(side, 2*side+1, at) {
				t.Run(fmt.Sprintf("%s %v %d", name, value, side), func(t *testing.T) {
					t.Parallel()
					s := scale.New(img)
					for _, box := range []scale.Box{{Width: 1}, {Width: 7, Height: 7, Cover: true}, {Height: 40}, {}} {
						got := s.Scale(box.View(side, 2*side+1), scale.Turn{})
						want := at
						if _, straight := got.(*image.NRGBA); straight {
							want = opaque(at)
							if name == "alpha" {
								want = visible(at)
							}
						}
						compare(t, got, 0, 0, want)
					}
				})
			}
		}
	}
}

// visible is at, without the colours of invisible pixels.
func visible(at channel) channel {
	return func(x, y float64, c int) float64 {
		if at(x, y, 3) == 0 {
			return 0
		}
		return at(x, y, c)
	}
}

// TestGradient checks positions: a linear gradient stays where it is. A shift by half a pixel would
// be 2 levels.
func TestGradient(t *testing.T) {
	t.Parallel()
	const width, height = 403, 301
	at := func(x, y float64, c int) float64 {
		if c == 1 {
			return 255 - 255*y/height
		}
		return 130*x/width + 120*y/height
	}
	for name, img := range drawn(width, height, opaque(at)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scale.New(img)
			for _, turn := range turns {
				for _, box := range []scale.Box{
					{Width: 160},
					{Width: 161},
					{Width: 97},
					{Width: 50},
					{Width: 333, Height: 333},
					{},
					{Width: 90, Height: 50, Cover: true},
					{Width: 399, Height: 299, Cover: true},
					{Width: 51, Height: 60, Cover: true},
				} {
					w, h := width, height
					if turn.Transpose {
						w, h = h, w
					}
					v := box.View(w, h)
					want := opaque(seen(at, v, turn, width, height))
					compare(t, s.Scale(v, turn), 5, 1.1, want)
				}
			}
		})
	}
}

// seen returns the values of a stored image at the points of a copy.
func seen(at channel, v scale.View, turn scale.Turn, width, height float64) channel {
	return func(x, y float64, c int) float64 {
		x = v.From.X + x*v.From.Width/float64(v.Size.X)
		y = v.From.Y + y*v.From.Height/float64(v.Size.Y)
		if turn.Transpose {
			x, y = y, x
		}
		if turn.FlipX {
			x = width - x
		}
		if turn.FlipY {
			y = height - y
		}
		return at(x, y, c)
	}
}

// TestTurns compares each copy of a stored image with the copy of the upright one.
func TestTurns(t *testing.T) {
	t.Parallel()
	waves := func(x, y float64, c int) float64 {
		return 128 + 60*math.Sin(x/(3+float64(c))+y/9) + 60*math.Cos(y/(5-float64(c)))
	}
	for _, size := range []image.Point{{120, 90}, {121, 91}, {120, 91}, {121, 90}, {1, 1}, {2, 75}} {
		for name, stored := range map[string]image.Image{
			"grey": grey(size.X, size.Y, waves), "opaque": pixels(size.X, size.Y, opaque(waves)), "alpha": pixels(size.X, size.Y, waves),
		} {
			for o, turn := range turns {
				t.Run(fmt.Sprintf("%s %v as %d", name, size, o+1), func(t *testing.T) {
					t.Parallel()
					upright := turned(stored, turn)
					u := upright.Bounds().Size()
					from, to := scale.New(stored), scale.New(upright)
					for _, box := range []scale.Box{{}, {Width: 50}, {Width: 33, Height: 33}, {Width: 40, Height: 40, Cover: true}, {Width: 100, Height: 81, Cover: true}} {
						v := box.View(u.X, u.Y)
						got, want := samples(from.Scale(v, turn)), samples(to.Scale(v, scale.Turn{}))
						for i := range want {
							if d := int(got[i]) - int(want[i]); d < -1 || d > 1 {
								t.Fatalf("%+v: byte %d is %d, not %d", box, i, got[i], want[i])
							}
						}
					}
				})
			}
		}
	}
}

// samples returns the samples of an image, plane by plane.
func samples(img image.Image) []byte {
	switch img := img.(type) {
	case *image.Gray:
		return img.Pix
	case *image.NRGBA:
		return img.Pix
	case *image.YCbCr:
		return bytes.Join([][]byte{img.Y, img.Cb, img.Cr}, nil)
	}
	return nil
}

// TestFullSize checks that a crop copies the pixels.
func TestFullSize(t *testing.T) {
	t.Parallel()
	const width, height = 41, 30
	for name, stored := range drawn(width, height, noise) {
		for o, turn := range turns {
			t.Run(fmt.Sprintf("%s as %d", name, o+1), func(t *testing.T) {
				t.Parallel()
				w, h := width, height
				if turn.Transpose {
					w, h = h, w
				}
				s := scale.New(stored)
				for _, box := range []scale.Box{{}, {Width: 22, Height: 100, Cover: true}, {Width: 22, Height: 17, Cover: true}} {
					v := box.View(w, h)
					if v.From.Width != float64(v.Size.X) {
						continue
					}
					got, want := s.Scale(v, turn), seen(noise, v, turn, width, height)
					if p, is := got.(*image.YCbCr); is {
						got = &image.Gray{Pix: p.Y, Stride: p.YStride, Rect: p.Rect}
					}
					if name == "opaque" {
						want = opaque(want)
					}
					compare(t, got, 0, 0, want)
				}
			})
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	broken := planes(4, 4, image.YCbCrSubsampleRatio420, func(_, _ float64, _ int) float64 { return 0 })
	broken.SubsampleRatio = -1
	for name, img := range map[string]image.Image{
		"another type": image.NewRGBA(image.Rect(0, 0, 3, 3)), "empty": image.NewGray(image.Rect(2, 2, 2, 9)), "unknown ratio": broken,
	} {
		if scale.New(img) != nil {
			t.Errorf("%s: it became a source", name)
		}
	}
}

func TestView(t *testing.T) {
	t.Parallel()
	box := func(width, height int) scale.Box { return scale.Box{Width: width, Height: height} }
	cover := func(width, height int) scale.Box { return scale.Box{Width: width, Height: height, Cover: true} }
	for _, c := range []struct {
		box           scale.Box
		width, height int
		from          scale.Area
		size          image.Point
	}{
		{box(320, 320), 4000, 3000, scale.Area{Width: 4000, Height: 3000}, image.Pt(320, 240)},
		{box(320, 320), 3000, 4000, scale.Area{Width: 3000, Height: 4000}, image.Pt(240, 320)},
		{box(320, 100), 4000, 3000, scale.Area{Width: 4000, Height: 3000}, image.Pt(133, 100)},
		{box(320, 0), 4001, 3001, scale.Area{Width: 4001, Height: 3001}, image.Pt(320, 240)},
		{box(0, 240), 4001, 3001, scale.Area{Width: 4001, Height: 3001}, image.Pt(320, 240)},
		{box(0, 0), 4000, 3000, scale.Area{Width: 4000, Height: 3000}, image.Pt(4000, 3000)},
		{box(5000, 5000), 4000, 3000, scale.Area{Width: 4000, Height: 3000}, image.Pt(4000, 3000)},
		{box(3, 3), 1000, 167, scale.Area{Width: 1000, Height: 167}, image.Pt(3, 1)}, // 0.501
		{box(10, 10), 1000, 149, scale.Area{Width: 1000, Height: 149}, image.Pt(10, 1)},
		{box(10, 10), 1000, 150, scale.Area{Width: 1000, Height: 150}, image.Pt(10, 2)},
		{box(100, 100), 20000, 1, scale.Area{Width: 20000, Height: 1}, image.Pt(100, 1)},
		{box(100, 100), 1, 20000, scale.Area{Width: 1, Height: 20000}, image.Pt(1, 100)},
		{box(0, 0), 20000, 100, scale.Area{Width: 20000, Height: 100}, image.Pt(16383, 82)},
		{box(0, 50), 40000, 100, scale.Area{Width: 40000, Height: 100}, image.Pt(16383, 41)},
		{box(90000, 90000), 50000000, 1, scale.Area{Width: 50000000, Height: 1}, image.Pt(16383, 1)},
		{box(1, 1), 1, 1, scale.Area{Width: 1, Height: 1}, image.Pt(1, 1)},
		{cover(1, 1), 1, 1, scale.Area{Width: 1, Height: 1}, image.Pt(1, 1)},
		{cover(200, 200), 4000, 3000, scale.Area{X: 500, Width: 3000, Height: 3000}, image.Pt(200, 200)},
		{cover(200, 200), 3000, 4000, scale.Area{Y: 500, Width: 3000, Height: 3000}, image.Pt(200, 200)},
		{cover(400, 300), 4000, 3000, scale.Area{Width: 4000, Height: 3000}, image.Pt(400, 300)},
		{cover(400, 100), 4000, 3000, scale.Area{Y: 1000, Width: 4000, Height: 1000}, image.Pt(400, 100)},
		{cover(200, 200), 100, 1000, scale.Area{Y: 400, Width: 100, Height: 200}, image.Pt(100, 200)},
		{cover(200, 200), 1000, 101, scale.Area{X: 400, Width: 200, Height: 101}, image.Pt(200, 101)},
		{cover(200, 200), 205, 200, scale.Area{X: 2, Width: 200, Height: 200}, image.Pt(200, 200)},
		{cover(200, 200), 50, 60, scale.Area{Width: 50, Height: 60}, image.Pt(50, 60)},
		{cover(20000, 20000), 20000, 10, scale.Area{X: 1808, Width: 16383, Height: 10}, image.Pt(16383, 10)},
		{cover(200, 0), 4000, 3000, scale.Area{Width: 4000, Height: 3000}, image.Pt(200, 150)},
		{cover(0, 150), 4000, 3000, scale.Area{Width: 4000, Height: 3000}, image.Pt(200, 150)},
	} {
		t.Run(fmt.Sprintf("%v of %dx%d", c.box, c.width, c.height), func(t *testing.T) {
			t.Parallel()
			imagingtest.Equal(t, c.box.View(c.width, c.height), (scale.View{From: c.from, Size: c.size}))
		})
	}
}

// FuzzView checks the properties of every view: inside the image, never enlarged, in proportion.
func FuzzView(f *testing.F) {
	f.Add(320, 240, true, 4000, 3000)
	f.Add(0, 7, false, 1, 60000)
	f.Add(-1, 20000, true, 30000, 3)
	f.Fuzz(func(t *testing.T, boxWidth, boxHeight int, cover bool, width, height int) {
		const most = 1<<31 - 1
		if width < 1 || height < 1 || width >= most || height >= most {
			return
		}
		v := scale.Box{Width: boxWidth, Height: boxHeight, Cover: cover}.View(width, height)
		const tiny = 1e-3
		from := v.From
		if from.X < 0 || from.Y < 0 || from.X+from.Width > float64(width)+tiny || from.Y+from.Height > float64(height)+tiny {
			t.Errorf("%+v is outside of %dx%d", v, width, height)
		}
		if v.Size.X < 1 || v.Size.Y < 1 || v.Size.X > 16383 || v.Size.Y > 16383 ||
			boxWidth > 0 && v.Size.X > boxWidth || boxHeight > 0 && v.Size.Y > boxHeight {
			t.Errorf("the size is %v", v.Size)
		}
		across, down := from.Width/float64(v.Size.X), from.Height/float64(v.Size.Y)
		if across < 1 || down < 1 && v.Size.Y > 1 && height > v.Size.Y {
			t.Errorf("enlarged by %v, %v", across, down)
		}
	})
}

// TestMemory is not parallel, because it reads counters of the process.
func TestMemory(t *testing.T) {
	for _, size := range []image.Point{{800, 600}, {100, 4000}, {4000, 100}, {50, 50}} {
		all := image.Rectangle{Max: size}
		white := image.NewNRGBA(all)
		draw.Draw(white, all, image.White, image.Point{}, draw.Src)
		for name, img := range map[string]image.Image{
			"4:2:0": image.NewYCbCr(all, image.YCbCrSubsampleRatio420), "4:4:4": image.NewYCbCr(all, image.YCbCrSubsampleRatio444),
			"grey": image.NewGray(all), "opaque": white, "alpha": image.NewNRGBA(all),
		} {
			for _, box := range []scale.Box{{Width: 100}, {Width: size.X * 26 / 100}, {Width: size.X * 2 / 3}, {Width: size.X - 1}} {
				t.Run(fmt.Sprintf("%s %v to %d", name, size, box.Width), func(t *testing.T) {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					out := scale.New(img).Scale(box.View(size.X, size.Y), scale.Turn{})
					runtime.ReadMemStats(&after)
					got := int64(after.TotalAlloc-before.TotalAlloc) - int64(len(samples(out)))
					most := scale.Memory(size.X, size.Y, samplesOfTwo(img))
					const small = 32 << 10
					if got > most+small {
						t.Errorf("allocated %d bytes, but the estimate is %d", got, most)
					}
				})
			}
		}
	}
	if got := scale.Memory(4000, 3000, 8); got > 20<<20 {
		t.Errorf("the estimate for 12 megapixels is %d bytes", got)
	}
}

// samplesOfTwo returns the number of samples of two pixels.
func samplesOfTwo(img image.Image) int {
	switch img := img.(type) {
	case *image.Gray:
		return 2
	case *image.YCbCr:
		x, y := subsampling(img.SubsampleRatio)
		return max(3, 2+4/(x*y))
	default:
		return 8
	}
}

// FuzzScale makes copies of images of all types, sizes and positions. The views are also ones that
// no box has.
func FuzzScale(f *testing.F) {
	f.Add([]byte("some samples"), uint16(40), uint16(30), 12, 12, true, 0.0, 0.0, 0.0, uint8(2))
	f.Add([]byte{0, 1, 2, 200}, uint16(1), uint16(500), 0, 7, false, -1.0, 3.0, 1e300, uint8(77))
	f.Fuzz(func(t *testing.T, content []byte, width, height uint16, boxWidth, boxHeight int, cover bool, x, y, side float64, kind uint8) {
		const most = 600
		size := image.Pt(int(width%most)+1, int(height%most)+1)
		corner := image.Pt(int(kind%5), int(kind%3))
		img := filled(image.Rectangle{Min: corner, Max: corner.Add(size)}, content, int(kind)%8)
		turn := turns[kind>>3%8]
		s := scale.New(img)
		w, h := size.X, size.Y
		if turn.Transpose {
			w, h = h, w
		}
		v := scale.Box{Width: boxWidth, Height: boxHeight, Cover: cover}.View(w, h)
		got := s.Scale(v, turn)
		imagingtest.Equal(t, got.Bounds(), (image.Rectangle{Max: v.Size}), "the copy is", "not", v.Size)
		v.From = scale.Area{X: x, Y: y, Width: side, Height: side}
		s.Scale(v, turn)
	})
}

// filled returns an image of one of eight kinds.
func filled(r image.Rectangle, content []byte, kind int) image.Image {
	fill := func(pix []byte) {
		for i := range pix {
			if len(content) > 0 {
				pix[i] = content[i%len(content)]
			}
		}
	}
	switch kind {
	case 6:
		img := image.NewGray(r)
		fill(img.Pix)
		return img
	case 7:
		img := image.NewNRGBA(r)
		fill(img.Pix)
		return img
	default:
		img := image.NewYCbCr(r, ratios[kind])
		fill(img.Y)
		fill(img.Cb)
		fill(img.Cr)
		return img
	}
}
