package scale_test

import (
	"bytes"
	"fmt"
	"image"
	"math"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging/scale"
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
