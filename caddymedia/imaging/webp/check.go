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
	errEmpty  = errors.New("an image without pixels")
	errOrigin = errors.New("an image that does not begin at 0, 0")
	errShape  = errors.New("an image with fewer samples than its size needs")
	errRatio  = errors.New("an image whose planes are not 4:2:0")
	errFrames = errors.New("an animation without a frame")
	errPlay   = errors.New("an animation of more than 24 days")
)

// prepare checks the arguments of Encode and returns the options with their defaults. The C encoder
// relies on these checks.
func prepare(ctx context.Context, img image.Image, opts Options) (Options, error) {
	if ctx.Err() != nil {
		return opts, stopped(ctx)
	}
	if err := checkImage(img); err != nil {
		return opts, err
	}
	return opts.withDefaults()
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

// holds reports whether samples hold height rows of width bytes.
func holds(samples []byte, stride, width, height int) bool {
	return stride >= width && stride <= math.MaxInt32 && len(samples) >= (height-1)*stride+width
}

// withDefaults checks the options and fills in the defaults.
func (o Options) withDefaults() (Options, error) {
	if o.Quality == 0 {
		o.Quality = DefaultQuality
	}
	if o.Quality < 1 || o.Quality > 100 {
		return o, fmt.Errorf("a quality of %d is not from 1 to 100", o.Quality)
	}
	switch o.Effort {
	case "":
		o.Effort = Normal
	case Fast, Normal, Small:
	default:
		return o, fmt.Errorf("an effort of %q is none of fast, normal, small", o.Effort)
	}
	return o, nil
}

// prepareAnimation is prepare for the arguments of Animate, except the frames, which come later.
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
	return opts.withDefaults()
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

// checkEnd is called after the last frame.
func checkEnd(ctx context.Context, frames int) error {
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	if frames == 0 {
		return errFrames
	}
	return nil
}

// Limits of the animation chunks ANIM and ANMF of the format.
const (
	maxPlays = 1<<16 - 1
	maxShown = (1<<24 - 1) * time.Millisecond
	maxPlay  = math.MaxInt32*time.Millisecond - maxShown
)

// plays limits the number of plays of an animation.
func plays(n int) int { return min(max(n, 0), maxPlays) }

// bounded limits the duration of a frame.
func bounded(d time.Duration) time.Duration { return min(max(d, 0), maxShown) }

// stopped returns the error of a ctx that is done, with its cause.
func stopped(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("encoding as WebP: %w", cause)
	}
	return fmt.Errorf("encoding as WebP: %w: %w", err, cause)
}

// Detailed photographs of this many pixels need more than the 512 KiB that a file has for
// prediction modes (the first partition).
const (
	largePixels = 28_000_000
	largeFine   = 21_000_000 // above fineQuality
	fineQuality = 85
)

// manyModes reports whether the prediction modes of a lossy image may not fit into its file.
func manyModes(pixels, quality int) bool {
	return pixels >= largePixels || pixels >= largeFine && quality > fineQuality
}

// cost is the memory that an encoder needs, in tenths of a byte.
type cost struct {
	pixel int64 // for each pixel
	input int64 // for each byte of the file that the image was decoded from
}

// memory returns the bytes for a task, with a fixed part for small images. At high quality,
// detail costs twice as much.
func (c cost) memory(t Task) int64 {
	detail := c.input * t.Bytes
	if t.Quality > fineQuality {
		detail *= 2
	}
	return 1<<20 + (int64(t.Width)*int64(t.Height)*c.pixel+detail)/10
}
