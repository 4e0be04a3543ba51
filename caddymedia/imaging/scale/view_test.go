package scale_test

import (
	"fmt"
	"image"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging/scale"
)

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
			if got, want := c.box.View(c.width, c.height), (scale.View{From: c.from, Size: c.size}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
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
