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

// errTime is the end of an encoder's time.
var errTime = errors.New("encoding takes too long")

// job is one picture at its place.
type job struct {
	encoder webp.Encoder
	place   *place
	in      io.ReadSeeker
	info    imaging.Info
	need    need
	options webp.Options
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
	pixels, ok := img.(*image.NRGBA)
	if !ok || j.need.lossless > j.place.line.limits.Memory || !hasFewColors(pixels) {
		return j.encodeLossy(ctx, img)
	}
	if j.place.memory < j.need.lossless { // decoded again, to hold nothing while waiting for more
		if err := j.place.change(ctx, j.need.lossless); err != nil {
			return nil, err
		}
		if img, err = j.decode(); err != nil {
			return nil, err
		}
	}
	return j.encodeBoth(ctx, img)
}

// decode gives the picture as an encoder takes it.
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

// encodeBoth gives the smaller one of lossy and lossless.
func (j *job) encodeBoth(ctx context.Context, img image.Image) ([]byte, error) {
	return j.encode(ctx, func(ctx context.Context) ([]byte, error) {
		options := j.options
		options.Lossless = true
		exact, err := j.encoder.Encode(ctx, img, options)
		if err != nil {
			return nil, err
		}
		lossy, err := j.encoder.Encode(ctx, img, j.options)
		if err != nil || len(exact) <= len(lossy) {
			return exact, err
		}
		return lossy, nil
	})
}

// encode runs an encoder within its time. What fails is the variant, not the picture,
// unless the caller has left.
func (j *job) encode(ctx context.Context, f func(context.Context) ([]byte, error)) ([]byte, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, j.place.line.limits.Time, errTime)
	defer cancel()
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

// ErrPanic is a decoder that made no sense of a picture, in a way its author did not
// foresee.
var ErrPanic = errors.New("panic")

// guarded makes a panic of f, whose work is on a stranger's bytes, an error of that work.
func guarded[T any](f func() (T, error)) (result T, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanic, value, debug.Stack())
		}
	}()
	return f()
}
