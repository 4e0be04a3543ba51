package render

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"io"
	"runtime/debug"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
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
	source *scale.Source
}

// decode decodes all of an image within a time.
func (s *slot) decode(ctx context.Context, r io.ReadSeeker, info imaging.Info) (*decoded, error) {
	limit := s.queue.limits.decodingTime()
	bounded, cancel := s.within(ctx, limit, limit)
	defer cancel()
	d, err := decodeAll(s.reader(bounded, r), info)
	if errors.Is(err, ErrTime) {
		return nil, fmt.Errorf("%w: %w", err, &imaging.TooLargeError{Message: "the image takes too long to be decoded"})
	}
	if err != nil {
		return nil, err
	}
	d.in = s.reader(ctx, r)
	return d, nil
}

func decodeAll(r io.ReadSeeker, info imaging.Info) (*decoded, error) {
	return guarded(func() (*decoded, error) {
		d := &decoded{info: info, in: r}
		var err error
		switch {
		case info.Format == imaging.GIF:
			d.gif, err = imaging.DecodeGIF(r, info)
		case info.Format == imaging.WebP && info.Frames > 1:
			err = d.decodeFrames()
		default:
			d.still, err = imaging.Decode(r, info)
		}
		if err != nil {
			return nil, err
		}
		return d, nil
	})
}

// decodeFrames decodes all frames of an animated WebP, as a check, and keeps the first canvas.
func (d *decoded) decodeFrames() error {
	for canvas, err := range imaging.WebPCanvases(d.in, d.info) {
		if err != nil {
			return err
		}
		if d.still == nil {
			d.still = crop(canvas.Image, canvas.Image.Rect)
		}
	}
	return nil
}

// prepare converts the still image to a form for encoders and for scaling.
func (d *decoded) prepare() {
	if d.gif != nil {
		d.still = firstCanvas(d.gif)
		return
	}
	d.still = unified(d.still, d.info.Format)
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

// animation returns the composed frames, in a view of them.
func (d *decoded) animation(v scale.View, whole bool) webp.Animation {
	var a webp.Animation
	if d.gif != nil {
		a = gifAnimation(d.gif)
	} else {
		a = d.webpAnimation()
	}
	if whole {
		return a
	}
	return scaledAnimation(a, v)
}

// guarded converts a panic of f, which works on untrusted bytes, to an error.
func guarded[T any](f func() (T, error)) (result T, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanic, value, debug.Stack())
		}
	}()
	return f()
}
