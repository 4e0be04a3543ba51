package render

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"io"
	"iter"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/icc"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// ErrPanic means that a decoder or an encoder panicked on an image.
var ErrPanic = errors.New("panic")

// decoded is an image in memory, not turned.
type decoded struct {
	info imaging.Info
	in   io.ReadSeeker
	// still is the image or its first frame: *image.YCbCr or *image.Gray, or *image.NRGBA.
	still  image.Image
	gif    *gif.GIF // nil for other formats
	failed error    // of reading frames again
	toSRGB *icc.Transform
	source *scale.Source
}

// decode decodes all of an image within a time.
func (s *slot) decode(ctx context.Context, r io.ReadSeeker, info imaging.Info) (d *decoded, err error) {
	err = s.timed(ctx, r, func(timed io.ReadSeeker) (err error) {
		d, err = decodeAll(timed, info)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.in = &stoppableReader{r, ctx}
	return d, nil
}

// check is decode for a caller that needs no pixels.
func (s *slot) check(ctx context.Context, r io.ReadSeeker, info imaging.Info) error {
	return s.timed(ctx, r, func(timed io.ReadSeeker) error {
		intact, err := guarded(func() (bool, error) { return imaging.IsIntact(timed, info), nil })
		if !intact && err == nil {
			_, err = decodeAll(timed, info)
		}
		return err
	})
}

// timed calls f with a reader of an image that fails after the time for decoding.
func (s *slot) timed(ctx context.Context, r io.ReadSeeker, f func(io.ReadSeeker) error) error {
	// A short time for encoders does not count, because an image that is not decoded is refused.
	err := s.clock.limited(ctx, max(s.queue.limits.Time, defaultTime), func(ctx context.Context) error {
		return f(&stoppableReader{r, ctx})
	})
	if errors.Is(err, ErrTime) {
		return fmt.Errorf("%w: %w", err, &imaging.TooLargeError{Message: "the image takes too long to be decoded"})
	}
	return err
}

func decodeAll(r io.ReadSeeker, info imaging.Info) (*decoded, error) {
	return guarded(func() (*decoded, error) {
		d := &decoded{info: info, in: r}
		var err error
		switch {
		case info.Format == imaging.GIF:
			d.gif, err = imaging.DecodeGIF(r, info)
		case info.Format == imaging.WebP && info.Frames > 1:
			// All frames are decoded, as a check. The first canvas is kept.
			var canvas imaging.Canvas
			for canvas, err = range imaging.WebPCanvases(r, info) {
				if err == nil && d.still == nil {
					d.still = crop(canvas.Image, canvas.Image.Rect)
				}
			}
		default:
			d.still, err = imaging.Decode(r, info)
		}
		if err != nil {
			return nil, err
		}
		return d, nil
	})
}

// prepare converts the still image to a form for encoders and for scaling. Its error is that of
// reading the image.
func (d *decoded) prepare() (err error) {
	if d.gif == nil {
		if d.toSRGB, err = d.info.ToSRGB(d.in); d.toSRGB != nil {
			d.still = converted(d.still, d.toSRGB)
		}
		d.still = unified(d.still, d.info.Format)
		return err
	}
	for canvas := range canvases(d.gif) {
		d.still = canvas
		break
	}
	return nil
}

// whole returns the still image in its full size.
func (d *decoded) whole() image.Image { return upright(d.still, d.info.Orientation) }

// scaled returns a view of the still image.
func (d *decoded) scaled(v scale.View) image.Image {
	if d.source == nil {
		d.source = scale.New(d.still)
	}
	return d.source.Scale(v, turn(d.info.Orientation))
}

// animation returns the composed frames, in a view of them. Those of a WebP are decoded again. If
// that fails, the animation ends early, and d.failed is the reason.
func (d *decoded) animation(v scale.View, whole bool) webp.Animation {
	a := webp.Animation{Width: d.info.Width, Height: d.info.Height, Loops: d.info.Loops}
	if d.gif != nil {
		a.Loops, a.Frames = plays(d.gif.LoopCount), canvases(d.gif)
	} else {
		a.Frames = func(yield func(*image.NRGBA, time.Duration) bool) {
			for canvas, err := range imaging.WebPCanvases(d.in, d.info) {
				if d.failed = err; err != nil || !yield(d.frame(canvas.Image), canvas.Shown) {
					return
				}
			}
		}
	}
	if whole {
		return a
	}
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

// frame returns a canvas of an animation in the colours of its outputs. The canvas itself goes on
// to the next frame.
func (d *decoded) frame(canvas *image.NRGBA) *image.NRGBA {
	if d.toSRGB == nil {
		return canvas
	}
	canvas = crop(canvas, canvas.Rect)
	d.toSRGB.Pixels(canvas.Pix)
	return canvas
}

// guarded converts a panic of f, which works on untrusted bytes, to an error.
func guarded[T any](f func() (T, error)) (result T, err error) {
	err = guard.CallAs(ErrPanic, func() (err error) {
		result, err = f()
		return err
	})
	return result, err
}

// plays returns the number of plays of a GIF, where 0 means endless. The repetitions of image/gif
// are -1 for none, and 0 for endless.
func plays(repeat int) int {
	switch repeat {
	case 0:
		return 0
	case -1:
		return 1
	}
	return repeat + 1
}

// canvases composes the frames of a GIF (GIF89a, section 23). It yields the same image each time,
// modified in between. Pixels that are not drawn are transparent, whatever the background colour,
// as in every browser. Like browsers it replaces durations below 2 hundredths of a second by 10.
func canvases(g *gif.GIF) iter.Seq2[*image.NRGBA, time.Duration] {
	return func(yield func(*image.NRGBA, time.Duration) bool) {
		canvas := image.NewNRGBA(image.Rect(0, 0, g.Config.Width, g.Config.Height))
		for i, frame := range g.Image {
			area := frame.Bounds().Intersect(canvas.Rect)
			var before *image.NRGBA
			if g.Disposal[i] == gif.DisposalPrevious {
				before = crop(canvas, area)
			}
			drawFrame(canvas, frame, area)
			shown := g.Delay[i]
			if shown < 2 {
				shown = 10
			}
			if !yield(canvas, time.Duration(shown)*10*time.Millisecond) {
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
