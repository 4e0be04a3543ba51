// Package webp encodes images as WebP. It never decodes foreign files. Begin with [New].
//
// A build has one [Encoder]. With cgo on Linux it is libwebp, whose sources are in
// github.com/chai2010/webp. Elsewhere it is github.com/deepteams/webp in pure Go. Its files have
// about the same size and quality. It needs two to three times the processor time on amd64, and
// more memory.
package webp

import (
	"context"
	"errors"
	"fmt"
	"image"
	"iter"
	"math"
	"time"
)

// MaxSide is the longest side in pixels that the format can hold.
const MaxSide = 16383

// Encoder makes WebP files. It is safe for concurrent use.
type Encoder interface {
	// Name returns the name and version of the encoder, for logs.
	Name() string

	// Encode returns the file of a still image: an *image.YCbCr of ratio 4:2:0 in the full range
	// of JPEG, which is always lossy, or an *image.NRGBA. Its bounds must begin at 0, 0. Encode may
	// change the planes of an *image.YCbCr, but not an *image.NRGBA.
	//
	// Encode stops soon after ctx is done, with the error of ctx, if the encoder can: see
	// [Encoder.Stops]. Other encoders return that error at the end.
	Encode(ctx context.Context, img image.Image, opts Options) ([]byte, error)

	// Animate returns the file of an animation. It stops between frames at the latest.
	Animate(ctx context.Context, a Animation, opts Options) ([]byte, error)

	// Stops reports whether a running Encode can be stopped.
	Stops() bool

	// Memory returns about the most bytes that a task needs, not counting the image itself. Noise
	// may need twice as much.
	Memory(t Task) int64
}

// Task describes an encoding, to estimate its memory.
type Task struct {
	// Width and Height in pixels.
	Width, Height int
	// Bytes is the size of the file that the image was decoded from. It is a measure of detail,
	// for which lossy encoders need memory.
	Bytes int64
	// Quality of lossy encoding. 0 means [DefaultQuality].
	Quality int
	// Use is the way of encoding.
	Use Use
}

// Use is a way to use an encoder.
type Use int

// The uses of an encoder.
const (
	Planes   Use = iota // Encode of an *image.YCbCr
	Pixels              // Encode of an *image.NRGBA, lossy
	Lossless            // Encode of an *image.NRGBA, lossless
	Frames              // Animate
	Opaque              // Encode of an *image.NRGBA without transparency, lossy
)

// Options are the parameters of encoding. The zero value means the defaults.
type Options struct {
	// Quality of lossy encoding, 1 to 100. 0 means [DefaultQuality].
	Quality int
	// Effort trades time for size. Empty means [Normal].
	Effort Effort
	// Lossless preserves every visible pixel of an *image.NRGBA.
	Lossless bool
	// Profile is an ICC profile to embed; nil for none.
	Profile []byte
}

// DefaultQuality is the quality used if none is set.
const DefaultQuality = 80

// Effort is the processor time spent on making a file small.
type Effort string

// The efforts, with their cost in libwebp relative to Normal on photographs. In pure Go, Fast takes
// 0.8 of the time for 5 % larger files, and Small takes 1.3 times as long for 8 % smaller ones.
const (
	Fast   Effort = "fast"   // a third of the time, 8 % larger
	Normal Effort = "normal" // libwebp's method 4
	Small  Effort = "small"  // 2.5 times the time, 2 to 4 % smaller
)

// Animation is a sequence of images.
type Animation struct {
	// Width and Height of every frame in pixels.
	Width, Height int
	// Loops is the number of plays; 0 means endless.
	Loops int
	// Frames yields whole canvases with their duration. The next iteration may reuse the image.
	Frames iter.Seq2[*image.NRGBA, time.Duration]
}

// ErrTooWide means that a side of the image is over [MaxSide].
var ErrTooWide = errors.New("a side is longer than the 16,383 pixels that WebP can hold")

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
	var whole bool
	switch img := img.(type) {
	case *image.NRGBA:
		if err := checkSize(img.Rect); err != nil {
			return err
		}
		whole = holds(img.Pix, img.Stride, 4*img.Rect.Dx(), img.Rect.Dy())
	case *image.YCbCr:
		if err := checkSize(img.Rect); err != nil {
			return err
		}
		if img.SubsampleRatio != image.YCbCrSubsampleRatio420 {
			return errRatio
		}
		w, h := img.Rect.Dx(), img.Rect.Dy()
		cw, ch := (w+1)/2, (h+1)/2
		whole = holds(img.Y, img.YStride, w, h) && holds(img.Cb, img.CStride, cw, ch) && holds(img.Cr, img.CStride, cw, ch)
	default:
		return fmt.Errorf("a %T is not encoded", img)
	}
	if !whole {
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

// each checks the frames of an animation and calls add with each, with the times at which it
// appears and disappears. It returns the time after the last frame.
func (a Animation) each(ctx context.Context, add func(img *image.NRGBA, from, to time.Duration) error) (time.Duration, error) {
	var now time.Duration
	frames := 0
	for img, shown := range a.Frames {
		if ctx.Err() != nil {
			return 0, stopped(ctx)
		}
		if err := checkImage(img); err != nil {
			return 0, err
		}
		if size := img.Rect.Size(); size.X != a.Width || size.Y != a.Height {
			return 0, fmt.Errorf("a frame of %d x %d in an animation of %d x %d", size.X, size.Y, a.Width, a.Height)
		}
		if now > maxPlay {
			return 0, errPlay
		}
		next := now + min(max(shown, 0), maxShown)
		if err := add(img, now, next); err != nil {
			return 0, err
		}
		now = next
		frames++
	}
	if ctx.Err() != nil {
		return 0, stopped(ctx)
	}
	if frames == 0 {
		return 0, errFrames
	}
	return now, nil
}

// Limits of the animation chunks ANIM and ANMF of the format.
const (
	maxPlays = 1<<16 - 1
	maxShown = (1<<24 - 1) * time.Millisecond
	maxPlay  = math.MaxInt32*time.Millisecond - maxShown
)

// plays limits the number of plays of an animation.
func plays(n int) int { return min(max(n, 0), maxPlays) }

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
