package render

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/palette"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// encode returns the file of an output.
func (j *job) encode(ctx context.Context, o *output, d *decoded) ([]byte, error) {
	if o.animated {
		animation := d.animation(o.view, o.whole())
		animation.Frames = j.slot.paced(ctx, animation.Frames)
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
		img = greyPlanes(grey, imaging.Upright)
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
	if exact := palette.Exact(pixels); exact != nil {
		return png.Encode(w, exact)
	}
	return png.Encode(w, pixels)
}

func encodeGIF(w io.Writer, img image.Image) error {
	pixels, ok := img.(*image.NRGBA)
	if !ok {
		pixels = straight(img)
	}
	return gif.Encode(w, palette.Paletted(pixels), nil)
}

// fewColors is the largest number of colours for which lossless encoding is tried as well. For
// drawings and screenshots it is often both smaller and exact.
const fewColors = 256

// hasFewColors reports whether an image has at most fewColors colours. Invisible ones count as
// one.
func hasFewColors(img *image.NRGBA) bool {
	var seen colorSet
	size := img.Bounds()
	last := uint32(1) // no visible colour: its alpha is 0
	for y := range size.Dy() {
		row := img.Pix[y*img.Stride:][:4*size.Dx()]
		for ; len(row) > 0; row = row[4:] {
			c := binary.BigEndian.Uint32(row)
			if c == last {
				continue
			}
			last = c
			if c&0xFF == 0 {
				c = 0
			}
			if !seen.add(c) {
				return false
			}
		}
	}
	return true
}

// colorSet is a hash table of up to fewColors colours.
type colorSet struct {
	slots [4 * fewColors]uint32 // any value is a colour, so used marks the occupied slots
	used  [4 * fewColors]bool
	count int
}

// add adds a colour. It reports whether there are still few.
func (s *colorSet) add(c uint32) bool {
	i := (c * 0x9E3779B1) >> 22 // the golden ratio spreads over the 1,024 slots
	for s.used[i] {
		if s.slots[i] == c {
			return true
		}
		i = (i + 1) % uint32(len(s.slots))
	}
	s.slots[i], s.used[i] = c, true
	s.count++
	return s.count <= fewColors
}
