package scale_test

import (
	"image"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging/scale"
)

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
		if got.Bounds() != (image.Rectangle{Max: v.Size}) {
			t.Errorf("the copy is %v, not %v", got.Bounds(), v.Size)
		}
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
