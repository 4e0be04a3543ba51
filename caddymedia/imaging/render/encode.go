package render

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// encode returns the file of an output.
func (j *job) encode(ctx context.Context, o *output, d *decoded) ([]byte, error) {
	if o.animated {
		animation := d.animation(o.view, o.whole())
		frames := animation.Frames
		animation.Frames = func(yield func(*image.NRGBA, time.Duration) bool) {
			for frame, shown := range frames { // the animation ends early if ctx is done
				if j.slot.pause(ctx) != nil || !yield(frame, shown) {
					return
				}
			}
		}
		return j.encoder.Animate(ctx, animation, j.webpOptions(o))
	}
	var img image.Image
	if o.whole() {
		img = d.whole()
	} else {
		img = d.scaled(o.view)
	}
	if o.Format == imaging.WebP {
		return j.encodeWebP(ctx, o, img)
	}
	file, err := encodeFile(o, img, func() error { return j.slot.pause(ctx) })
	if err != nil {
		return nil, err
	}
	file, err = imaging.WithProfile(file, o.Format, j.info.Profile)
	return bytes.Clone(file), err // without the spare capacity, as it waits for the other outputs
}

func (j *job) webpOptions(o *output) webp.Options {
	return webp.Options{Quality: o.Quality, Effort: o.Effort, Profile: j.info.Profile}
}

// encodeWebP encodes an image as WebP. One of few colours is encoded lossy and, if the job holds
// the memory for it, lossless. The smaller result is returned.
func (j *job) encodeWebP(ctx context.Context, o *output, img image.Image) ([]byte, error) {
	options := j.webpOptions(o)
	if grey, ok := img.(*image.Gray); ok {
		img = greyPlanes(grey)
	}
	lossy, err := j.encoder.Encode(ctx, img, options)
	if err != nil {
		return nil, err
	}
	pixels, ok := img.(*image.NRGBA)
	if !ok || o.use != webp.Lossless || !hasFewColors(pixels) {
		return lossy, nil
	}
	options.Lossless = true
	exact, err := j.encoder.Encode(ctx, img, options)
	if err == nil && len(exact) <= len(lossy) {
		return exact, nil
	}
	return lossy, nil // one of them is enough, for example after a time-out
}

// encodeFile encodes a still image in a format other than WebP. pause is called while it writes.
func encodeFile(o *output, img image.Image, pause func() error) ([]byte, error) {
	file := &stoppableBuffer{err: pause}
	var err error
	switch o.Format {
	case imaging.JPEG:
		err = encodeJPEG(file, img, o.Quality)
	case imaging.PNG:
		err = encodePNG(file, img)
	case imaging.GIF:
		err = encodeGIF(file, img)
	default:
		err = fmt.Errorf("%s is not encoded", o.Format)
	}
	return file.Bytes(), err
}

// stoppableBuffer fails once err returns an error, which stops an encoder.
type stoppableBuffer struct {
	bytes.Buffer
	err func() error
}

func (b *stoppableBuffer) Write(p []byte) (int, error) {
	if err := b.err(); err != nil {
		return 0, err
	}
	return b.Buffer.Write(p)
}

func encodeJPEG(w io.Writer, img image.Image, quality int) error {
	if quality == 0 {
		quality = webp.DefaultQuality
	}
	if pixels, ok := img.(*image.NRGBA); ok {
		img = onWhite(pixels)
	}
	return jpeg.Encode(w, img, &jpeg.Options{Quality: quality})
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

func encodePNG(w io.Writer, img image.Image) error {
	switch planes := img.(type) {
	case *image.Gray:
		return png.Encode(w, img)
	case *image.YCbCr:
		img = straight(planes)
	}
	pixels := img.(*image.NRGBA) // the only other form
	if exact := exactPalette(pixels); exact != nil {
		return png.Encode(w, exact)
	}
	return png.Encode(w, pixels)
}

func encodeGIF(w io.Writer, img image.Image) error {
	pixels, ok := img.(*image.NRGBA)
	if !ok {
		pixels = straight(img)
	}
	return gif.Encode(w, paletted(pixels), nil)
}
