package variant

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"io"
	"runtime/debug"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// maxShown limits the displayed pixels of an animation. However small a frame is, an encoder visits
// the whole canvas for it, at some 100 million pixels per second.
const maxShown = 400_000_000

// errTime is the cause when an encoder exceeds its time.
var errTime = errors.New("encoding takes too long")

// job makes the variant of one picture.
type job struct {
	encoder webp.Encoder
	limits  Limits
	slot    *slot
	in      io.ReadSeeker
	info    imaging.Info
	options webp.Options
}

// feasible returns ErrNone with the reason if no variant of the picture can be made.
func (j *job) feasible() error {
	switch {
	case max(j.info.Width, j.info.Height) > webp.MaxSide:
		return fmt.Errorf("%w: %w", ErrNone, webp.ErrTooWide)
	case j.info.ColorLoss != "":
		return fmt.Errorf("%w: %s", ErrNone, j.info.ColorLoss)
	case j.info.Format == imaging.PNG && j.info.Animated:
		return fmt.Errorf("%w: it is an animated PNG", ErrNone)
	case j.info.Animated && int64(j.info.Width)*int64(j.info.Height)*int64(j.info.Frames) > maxShown:
		return fmt.Errorf("%w: its %d frames show too many pixels", ErrNone, j.info.Frames)
	}
	return j.fits(uses(j.info)[0])
}

// fits returns ErrNone if a use of the encoder needs more memory than the limit.
func (j *job) fits(use webp.Use) error {
	if memory := j.memory(use); memory > j.limits.Memory {
		return fmt.Errorf("%w: making it takes %d MiB, at most %d are set aside", ErrNone, memory>>20, j.limits.Memory>>20)
	}
	return nil
}

// memory returns the bytes needed to decode and encode the picture.
func (j *job) memory(use webp.Use) int64 {
	return decodedMemory(j.info) + convertedMemory(j.info) + j.encoder.Memory(webp.Task{
		Width: j.info.Width, Height: j.info.Height, Bytes: j.info.End, Quality: j.options.Quality, Use: use,
	})
}

// initialMemory returns the bytes to acquire before the use of the encoder is known. It is enough
// for every use, unless another worker would not get its share.
func (j *job) initialMemory() int64 {
	var least, most int64
	for i, use := range uses(j.info) {
		memory := j.memory(use)
		if i == 0 {
			least = memory
		}
		most = max(most, memory)
	}
	if most <= j.limits.Memory/int64(j.limits.Workers) {
		return most
	}
	return least
}

func (j *job) run(ctx context.Context) ([]byte, error) {
	if j.info.Format == imaging.GIF && j.info.Frames > 1 {
		g, err := j.decodeGIF()
		if err != nil {
			return nil, err
		}
		return j.encode(ctx, func(ctx context.Context) ([]byte, error) {
			return j.encoder.Animate(ctx, animation(g), j.options)
		})
	}
	img, err := j.decode()
	if err != nil {
		return nil, err
	}
	use := j.use(img)
	if err := j.fits(use); err != nil {
		return nil, err
	}
	if memory := j.memory(use); memory > j.slot.memory() {
		// The job may hold no memory while it waits for more, so the picture is decoded again.
		if err := j.slot.change(ctx, memory); err != nil {
			return nil, err
		}
		if img, err = j.decode(); err != nil {
			return nil, err
		}
	}
	if use == webp.Lossless {
		return j.encodeBoth(ctx, img)
	}
	return j.encodeLossy(ctx, img)
}

// use returns how to encode a decoded picture. It is lossless only if there is memory for that.
func (j *job) use(img image.Image) webp.Use {
	pixels, ok := img.(*image.NRGBA)
	switch {
	case !ok:
		return webp.Planes
	case j.fits(webp.Lossless) == nil && hasFewColors(pixels):
		return webp.Lossless
	case pixels.Opaque():
		return webp.Opaque
	default:
		return webp.Pixels
	}
}

// decode returns the picture in the form that the encoder needs.
func (j *job) decode() (image.Image, error) {
	if j.info.Format == imaging.GIF {
		g, err := j.decodeGIF()
		if err != nil {
			return nil, err
		}
		return firstCanvas(g), nil
	}
	return guarded(func() (image.Image, error) {
		img, err := imaging.Decode(j.in, j.info)
		if err != nil {
			return nil, err
		}
		return upright(img, j.info), nil
	})
}

func (j *job) decodeGIF() (*gif.GIF, error) {
	return guarded(func() (*gif.GIF, error) { return imaging.DecodeGIF(j.in, j.info) })
}

func (j *job) encodeLossy(ctx context.Context, img image.Image) ([]byte, error) {
	return j.encode(ctx, func(ctx context.Context) ([]byte, error) {
		return j.encoder.Encode(ctx, img, j.options)
	})
}

// encodeBoth encodes lossy and lossless and returns the smaller result.
func (j *job) encodeBoth(ctx context.Context, img image.Image) ([]byte, error) {
	return j.encode(ctx, func(ctx context.Context) ([]byte, error) {
		lossy, err := j.encoder.Encode(ctx, img, j.options)
		if err != nil {
			return nil, err
		}
		options := j.options
		options.Lossless = true
		exact, err := j.encoder.Encode(ctx, img, options)
		if err != nil || len(exact) > len(lossy) {
			return lossy, nil //nolint:nilerr // one of them is enough, for example after a time-out
		}
		return exact, nil
	})
}

// encode runs an encoder within its time limit. Its error is ErrNone, unless the caller has left.
func (j *job) encode(ctx context.Context, f func(context.Context) ([]byte, error)) ([]byte, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, j.limits.Time, errTime)
	defer cancel()
	bounded, stop := context.WithCancelCause(bounded)
	defer stop(nil)
	go j.slot.limitContended(bounded, stop)
	file, err := guarded(func() ([]byte, error) { return f(bounded) })
	switch {
	case err == nil:
		return file, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(context.Cause(bounded), errTime):
		return nil, fmt.Errorf("%w: %w", ErrNone, errTime)
	default:
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
}

// ErrPanic means that a decoder or an encoder panicked on a picture.
var ErrPanic = errors.New("panic")

// guarded converts a panic of f, which works on untrusted bytes, to an error.
func guarded[T any](f func() (T, error)) (result T, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanic, value, debug.Stack())
		}
	}()
	return f()
}
