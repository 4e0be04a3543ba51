package render

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

// encode returns the file of an output.
func (j *job) encode(ctx context.Context, o *output, d *decoded) ([]byte, error) {
	options := webp.Options{Quality: o.Quality, Effort: o.Effort, Profile: j.info.Profile}
	if o.animated {
		animation := d.animation(o.view, o.whole())
		frames := animation.Frames
		animation.Frames = func(yield func(*image.NRGBA, time.Duration) bool) {
			for frame, shown := range frames { // the animation ends early if ctx is done
				if ctx.Err() != nil || !yield(frame, shown) {
					return
				}
			}
		}
		return j.encoder.Animate(ctx, animation, options)
	}
	var img image.Image
	if o.whole() {
		img = d.whole()
	} else {
		img = d.scaled(o.view)
	}
	if o.Format == imaging.WebP {
		return j.encodeWebP(ctx, img, options, o.use)
	}
	if o.Format == ThumbHash {
		return thumbHash(straight(img)), nil
	}
	file, err := encodeFile(ctx, o, img)
	if err != nil {
		return nil, err
	}
	file, err = imaging.WithProfile(file, o.Format, j.info.Profile)
	return bytes.Clone(file), err // without the spare capacity, as it waits for the other outputs
}

// encodeWebP encodes an image as WebP. One of few colours is encoded lossy and, if the job holds
// the memory for it, lossless. The smaller result is returned.
func (j *job) encodeWebP(ctx context.Context, img image.Image, options webp.Options, use webp.Use) ([]byte, error) {
	if grey, ok := img.(*image.Gray); ok {
		img = greyPlanes(grey)
	}
	lossy, err := j.encoder.Encode(ctx, img, options)
	if err != nil {
		return nil, err
	}
	pixels, ok := img.(*image.NRGBA)
	if !ok || use != webp.Lossless || !hasFewColors(pixels) {
		return lossy, nil
	}
	options.Lossless = true
	exact, err := j.encoder.Encode(ctx, img, options)
	if err == nil && len(exact) <= len(lossy) {
		return exact, nil
	}
	return lossy, nil // one of them is enough, for example after a time-out
}

// encodeFile encodes a still image in a format other than WebP.
func encodeFile(ctx context.Context, o *output, img image.Image) ([]byte, error) {
	file := &stoppableBuffer{ctx: ctx}
	var err error
	switch o.Format {
	case imaging.JPEG:
		if pixels, ok := img.(*image.NRGBA); ok {
			img = onWhite(pixels)
		}
		err = jpeg.Encode(file, img, &jpeg.Options{Quality: cmp.Or(o.Quality, webp.DefaultQuality)})
	case imaging.PNG:
		if _, ok := img.(*image.Gray); !ok {
			pixels := straight(img)
			img = pixels
			if exact := exactPalette(pixels); exact != nil {
				img = exact
			}
		}
		err = png.Encode(file, img)
	default:
		err = fmt.Errorf("%s is not encoded", o.Format)
	}
	return file.Bytes(), err
}

// stoppableBuffer fails once its context is done, which stops an encoder.
type stoppableBuffer struct {
	bytes.Buffer
	ctx context.Context //nolint:containedctx // of an encoder, which takes none
}

func (b *stoppableBuffer) Write(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.Buffer.Write(p)
}

// onWhite returns an image without transparency, on white. It may share the samples of the image.
func onWhite(img *image.NRGBA) *image.RGBA {
	if img.Opaque() {
		return &image.RGBA{Pix: img.Pix, Stride: img.Stride, Rect: img.Rect}
	}
	out := image.NewRGBA(img.Rect)
	draw.Draw(out, out.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(out, out.Rect, img, img.Rect.Min, draw.Over)
	return out
}
