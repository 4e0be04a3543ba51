package webp

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"time"
)

var (
	errEmpty  = errors.New("a picture without pixels")
	errOrigin = errors.New("a picture that does not begin at 0, 0")
	errShape  = errors.New("a picture with fewer samples than its size needs")
	errRatio  = errors.New("a picture whose planes are not 4:2:0")
	errFrames = errors.New("an animation without a frame")
	errPlay   = errors.New("an animation of more than 24 days")
)

// prepare checks what Encode was given, and fills the options in. An encoder written in C
// relies on it.
func prepare(ctx context.Context, img image.Image, opts Options) (Options, error) {
	if ctx.Err() != nil {
		return opts, stopped(ctx)
	}
	if err := checkImage(img); err != nil {
		return opts, err
	}
	return opts.filled()
}

func checkImage(img image.Image) error {
	switch img := img.(type) {
	case *image.NRGBA:
		return checkPixels(img)
	case *image.YCbCr:
		return checkPlanes(img)
	}
	return fmt.Errorf("a %T is not encoded", img)
}

func checkPixels(img *image.NRGBA) error {
	if err := checkSize(img.Rect); err != nil {
		return err
	}
	if !holds(img.Pix, img.Stride, 4*img.Rect.Dx(), img.Rect.Dy()) {
		return errShape
	}
	return nil
}

func checkPlanes(img *image.YCbCr) error {
	if err := checkSize(img.Rect); err != nil {
		return err
	}
	if img.SubsampleRatio != image.YCbCrSubsampleRatio420 {
		return errRatio
	}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	cw, ch := (w+1)/2, (h+1)/2
	if !holds(img.Y, img.YStride, w, h) || !holds(img.Cb, img.CStride, cw, ch) || !holds(img.Cr, img.CStride, cw, ch) {
		return errShape
	}
	return nil
}

func checkSize(r image.Rectangle) error {
	switch {
	case r.Empty():
		return errEmpty
	case r.Min != image.Point{}:
		return errOrigin
	case r.Dx() > MaxSide, r.Dy() > MaxSide:
		return ErrTooWide
	}
	return nil
}

// holds tells whether there are so many rows of so many bytes.
func holds(samples []byte, stride, width, height int) bool {
	return stride >= width && stride <= math.MaxInt32 && len(samples) >= (height-1)*stride+width
}

// filled checks the options and puts the defaults in.
func (o Options) filled() (Options, error) {
	if o.Quality == 0 {
		o.Quality = DefaultQuality
	}
	if o.Quality < 1 || o.Quality > 100 {
		return o, fmt.Errorf("a quality of %d is not from 1 to 100", o.Quality)
	}
	var err error
	o.Effort, err = ParseEffort(string(o.Effort))
	return o, err
}

// prepareAnimation checks what Animate was given, except the frames, which come later.
func prepareAnimation(ctx context.Context, a Animation, opts Options) (Options, error) {
	if ctx.Err() != nil {
		return opts, stopped(ctx)
	}
	if err := checkSize(image.Rect(0, 0, a.Width, a.Height)); err != nil {
		return opts, err
	}
	if a.Width < 0 || a.Height < 0 {
		return opts, errEmpty
	}
	return opts.filled()
}

func checkFrame(ctx context.Context, a Animation, img *image.NRGBA) error {
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	if err := checkPixels(img); err != nil {
		return err
	}
	if size := img.Rect.Size(); size.X != a.Width || size.Y != a.Height {
		return fmt.Errorf("a frame of %d x %d in an animation of %d x %d", size.X, size.Y, a.Width, a.Height)
	}
	return nil
}

// checkEnd is for when the frames have come.
func checkEnd(ctx context.Context, frames int) error {
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	if frames == 0 {
		return errFrames
	}
	return nil
}

// What the format has room for (Animation chunks ANIM and ANMF).
const (
	maxPlays = 1<<16 - 1
	maxShown = (1<<24 - 1) * time.Millisecond
	maxPlay  = math.MaxInt32*time.Millisecond - maxShown
)

// plays bounds how often an animation plays.
func plays(n int) int { return min(max(n, 0), maxPlays) }

// bounded bounds how long a frame is shown.
func bounded(d time.Duration) time.Duration { return min(max(d, 0), maxShown) }

// stopped is the error of a ctx that is done, with its cause.
func stopped(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("encoding as WebP: %w", cause)
	}
	return fmt.Errorf("encoding as WebP: %w: %w", err, cause)
}

// Detailed photographs of so many pixels need more than the 512 KiB that a file has for
// their modes.
const (
	largePixels = 28_000_000
	largeFine   = 21_000_000 // above fineQuality
	fineQuality = 85
)

// manyModes tells whether the modes of a lossy picture may not fit into its file.
func manyModes(pixels, quality int) bool {
	return pixels >= largePixels || pixels >= largeFine && quality > fineQuality
}

// cost is what an encoder takes, in tenths of a byte of memory.
type cost struct {
	pixel int64 // for each pixel
	input int64 // for each byte of the file that the picture was decoded from
}

// memory is what a task costs, and what a small picture takes anyway. At a fine quality
// detail costs twice as much.
func (c cost) memory(t Task) int64 {
	detail := c.input * t.Bytes
	if t.Quality > fineQuality {
		detail *= 2
	}
	return 1<<20 + (int64(t.Width)*int64(t.Height)*c.pixel+detail)/10
}
