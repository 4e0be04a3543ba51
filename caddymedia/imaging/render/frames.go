package render

import (
	"context"
	"image"
	"image/gif"
	"iter"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// paced yields frames, and yields to other images before each. It ends early if ctx is done.
func (s *slot) paced(ctx context.Context, frames iter.Seq2[*image.NRGBA, time.Duration]) iter.Seq2[*image.NRGBA, time.Duration] {
	return func(yield func(*image.NRGBA, time.Duration) bool) {
		for frame, shown := range frames {
			if s.pause(ctx) != nil || !yield(frame, shown) {
				return
			}
		}
	}
}

// gifAnimation returns the composed frames of a GIF with their timing.
func gifAnimation(g *gif.GIF) webp.Animation {
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

// webpAnimation returns the composed frames of a WebP, which are decoded again. If that fails, the
// animation ends early, and d.failed is the reason.
func (d *decoded) webpAnimation() webp.Animation {
	return webp.Animation{
		Width: d.info.Width, Height: d.info.Height, Loops: d.info.Loops,
		Frames: func(yield func(*image.NRGBA, time.Duration) bool) {
			for canvas, err := range imaging.WebPCanvases(d.in, d.info) {
				if err != nil {
					d.failed = err
					return
				}
				if !yield(canvas.Image, canvas.Shown) {
					return
				}
			}
		},
	}
}

// scaledAnimation returns an animation of a view of all frames.
func scaledAnimation(a webp.Animation, v scale.View) webp.Animation {
	scaled := a
	scaled.Width, scaled.Height = v.Size.X, v.Size.Y
	scaled.Frames = func(yield func(*image.NRGBA, time.Duration) bool) {
		for canvas, shown := range a.Frames {
			frame := scale.New(canvas).Scale(v, scale.Turn{}).(*image.NRGBA) // the form of the canvas
			if !yield(frame, shown) {
				return
			}
		}
	}
	return scaled
}

// loops converts the repetitions of image/gif (-1 for none) to a number of plays. 0 means endless
// in both.
func loops(repeat int) int {
	switch repeat {
	case 0:
		return 0
	case -1:
		return 1
	}
	return repeat + 1
}

// delay returns the duration of a frame from hundredths of a second. Like browsers it replaces
// values below 2 by 10.
func delay(hundredths int) time.Duration {
	if hundredths < 2 {
		hundredths = 10
	}
	return time.Duration(hundredths) * 10 * time.Millisecond
}

// firstCanvas returns the first composed frame of a GIF.
func firstCanvas(g *gif.GIF) *image.NRGBA {
	for canvas := range canvases(g) {
		return canvas
	}
	return nil // image/gif never decodes an image without a frame
}

// canvases composes the frames of a GIF (GIF89a, section 23). It yields the same image each time,
// modified in between. Pixels that are not drawn are transparent, whatever the background colour,
// as in every browser.
func canvases(g *gif.GIF) iter.Seq[*image.NRGBA] {
	return func(yield func(*image.NRGBA) bool) {
		canvas := image.NewNRGBA(image.Rect(0, 0, g.Config.Width, g.Config.Height))
		for i, frame := range g.Image {
			area := frame.Bounds().Intersect(canvas.Rect)
			var before *image.NRGBA
			if g.Disposal[i] == gif.DisposalPrevious {
				before = crop(canvas, area)
			}
			drawFrame(canvas, frame, area)
			if !yield(canvas) {
				return
			}
			switch g.Disposal[i] {
			case gif.DisposalPrevious:
				copyArea(canvas, before, area)
			case gif.DisposalBackground:
				copyArea(canvas, image.NewNRGBA(area), area)
			}
		}
	}
}

// drawFrame draws the visible pixels of a frame.
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

// crop returns a copy of an area of the canvas.
func crop(canvas *image.NRGBA, area image.Rectangle) *image.NRGBA {
	out := image.NewNRGBA(area)
	copyArea(out, canvas, area)
	return out
}

// copyArea copies an area common to both images.
func copyArea(to, from *image.NRGBA, area image.Rectangle) {
	for y := area.Min.Y; y < area.Max.Y; y++ {
		copy(to.Pix[to.PixOffset(area.Min.X, y):], from.Pix[from.PixOffset(area.Min.X, y):][:4*area.Dx()])
	}
}
