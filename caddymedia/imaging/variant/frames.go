package variant

import (
	"image"
	"image/gif"
	"iter"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// animation gives the frames of a GIF as they are seen, and how they are played.
func animation(g *gif.GIF) webp.Animation {
	return webp.Animation{
		Width: g.Config.Width, Height: g.Config.Height, Loops: loops(g.LoopCount),
		Frames: func(yield func(*image.NRGBA, time.Duration) bool) {
			i := 0
			for canvas := range canvases(g) {
				if !yield(canvas, delay(g.Delay[i])) {
					return
				}
				i++
			}
		},
	}
}

// loops turns image/gif's count of repetitions, -1 for none, into one of plays. Both have
// 0 for no end.
func loops(repeat int) int {
	switch repeat {
	case 0:
		return 0
	case -1:
		return 1
	}
	return repeat + 1
}

// delay gives a frame's time, which a GIF counts in hundredths of a second. Browsers show
// one of less than 2 of them for a tenth of a second, and so shall the variant be shown.
func delay(hundredths int) time.Duration {
	if hundredths < 2 {
		hundredths = 10
	}
	return time.Duration(hundredths) * 10 * time.Millisecond
}

// firstCanvas is how a GIF looks before it moves.
func firstCanvas(g *gif.GIF) *image.NRGBA {
	for canvas := range canvases(g) {
		return canvas
	}
	return nil // image/gif never decodes a picture without a frame
}

// canvases puts the frames of a GIF together (GIF89a, section 23). All are one image that
// changes. Where nothing is drawn it is transparent, as in every browser, whatever the
// background colour.
func canvases(g *gif.GIF) iter.Seq[*image.NRGBA] {
	return func(yield func(*image.NRGBA) bool) {
		canvas := image.NewNRGBA(image.Rect(0, 0, g.Config.Width, g.Config.Height))
		for i, frame := range g.Image {
			area := frame.Bounds().Intersect(canvas.Rect)
			var before *image.NRGBA
			if g.Disposal[i] == gif.DisposalPrevious {
				before = part(canvas, area)
			}
			drawFrame(canvas, frame, area)
			if !yield(canvas) {
				return
			}
			switch g.Disposal[i] {
			case gif.DisposalPrevious:
				put(canvas, before, area)
			case gif.DisposalBackground:
				put(canvas, image.NewNRGBA(area), area)
			}
		}
	}
}

// drawFrame draws what is visible of a frame.
func drawFrame(canvas *image.NRGBA, frame *image.Paletted, area image.Rectangle) {
	colors := straightPalette(frame.Palette)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		to := canvas.Pix[canvas.PixOffset(area.Min.X, y):]
		for x, index := range frame.Pix[frame.PixOffset(area.Min.X, y):][:area.Dx()] {
			if c := colors[index]; c[3] != 0 {
				*(*[4]byte)(to[4*x:]) = c
			}
		}
	}
}

// part copies an area of the canvas.
func part(canvas *image.NRGBA, area image.Rectangle) *image.NRGBA {
	out := image.NewNRGBA(area)
	put(out, canvas, area)
	return out
}

// put copies an area that both images have.
func put(to, from *image.NRGBA, area image.Rectangle) {
	for y := area.Min.Y; y < area.Max.Y; y++ {
		copy(to.Pix[to.PixOffset(area.Min.X, y):], from.Pix[from.PixOffset(area.Min.X, y):][:4*area.Dx()])
	}
}
