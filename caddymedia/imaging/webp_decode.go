package imaging

import (
	"errors"
	"image"
	"io"
	"iter"
	"time"

	"golang.org/x/image/webp"
)

// Canvas is a composed frame of an animation.
type Canvas struct {
	Image *image.NRGBA
	Shown time.Duration
}

// WebPCanvases composes the frames of a WebP image that passed [CheckImage]. Each frame is
// decoded when it is asked for. The image is the same each time, modified in between. Pixels that
// are not drawn are transparent, whatever the background colour, as in every browser. A still
// image is one frame.
//
// An error is that of [Decode], and the last element.
func WebPCanvases(r io.ReadSeeker, info Info) iter.Seq2[Canvas, error] {
	return func(yield func(Canvas, error) bool) {
		canvas := image.NewNRGBA(image.Rect(0, 0, info.Width, info.Height))
		for i, frame := range info.frames {
			img, err := decodeFrame(r, info, i)
			if err != nil {
				yield(Canvas{}, err)
				return
			}
			drawFrame(canvas, straightWebP(img), frame)
			if !yield(Canvas{canvas, frame.shown}, nil) {
				return
			}
			if frame.dispose {
				for y := frame.area.Min.Y; y < frame.area.Max.Y; y++ {
					clear(canvas.Pix[canvas.PixOffset(frame.area.Min.X, y):][:4*frame.area.Dx()])
				}
			}
		}
	}
}

// decodeWebP returns the pixels of a still image, or the first canvas of an animation. A lossy
// image without alpha becomes planes of ratio 4:2:0 in the full range of JPEG, every other one
// pixels with straight alpha.
func decodeWebP(r io.ReadSeeker, info Info) (image.Image, error) {
	if info.frames[0].area != image.Rect(0, 0, info.Width, info.Height) {
		for canvas, err := range WebPCanvases(r, info) {
			return canvas.Image, err
		}
	}
	img, err := decodeFrame(r, info, 0)
	if err != nil {
		return nil, err
	}
	if planes, ok := img.(*image.YCbCr); ok {
		return fullRange(planes), nil
	}
	return straightWebP(img), nil
}

// maxPartition is the size from which the decoder refuses the coefficients of a lossy image.
const maxPartition = 1 << 24

// decodeFrame decodes one frame as if it were a still image of its own. The decoder thus sees no
// other parts of the file than those recorded by the walk.
func decodeFrame(r io.ReadSeeker, info Info, i int) (image.Image, error) {
	frame := info.frames[i]
	in := &stripReader{in: r, layout: frame.file()}
	img, err := webp.Decode(in)
	switch {
	case err == nil:
		return img, nil
	case in.err != nil && !errors.Is(in.err, io.EOF):
		return nil, in.err
	case !frame.lossless && frame.image.to-frame.image.from > maxPartition:
		return nil, contentErrorf("the WebP image uses a feature that is not supported")
	}
	return nil, contentErrorf("the WebP image is damaged: not all of it can be decoded")
}

// file returns the layout of a file with the frame alone.
func (f *webpFrame) file() layout {
	parts, extended := []span{f.image}, []byte(nil)
	if f.alpha != (span{}) {
		parts = []span{f.alpha, f.image}
		extended = append(riffHead("VP8X", 10), webpAlpha, 0, 0, 0)
		for _, side := range []int{f.area.Dx() - 1, f.area.Dy() - 1} {
			extended = append(extended, byte(side), byte(side>>8), byte(side>>16))
		}
	}
	var l layout
	for _, p := range parts {
		l.keep(p.from, p.to)
	}
	size := int64(riffHeader+len(extended)) + l.kept
	l.insert(0, append(append(riffHead("RIFF", size-riffChunk), "WEBP"...), extended...))
	return l
}
