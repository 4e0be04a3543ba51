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
		if pixels, ok := img.(*image.NRGBA); ok && frame.opaque { // as in browsers
			for i := 3; i < len(pixels.Pix); i += 4 {
				pixels.Pix[i] = 255
			}
		}
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

// WebP stores the luma and chroma of BT.601 in the range of video, 16 to 235 and 16 to 240 (RFC
// 6386, section 9.2). JPEG uses the full range.
var fullLuma, fullChroma = rangeTable(16, 219, 0), rangeTable(128, 224, 128)

// rangeTable maps samples to the full range. from is the sample that becomes to, and steps the
// width of the range.
func rangeTable(from, steps, to int) (table [256]byte) {
	for i := range table {
		rounded := (2*255*(i-from) + steps*(2*to+1)) / (2 * steps)
		table[i] = byte(min(max(rounded, 0), 255))
	}
	return table
}

// fullRange converts planes in place to the full range of JPEG.
func fullRange(img *image.YCbCr) *image.YCbCr {
	convert := func(plane []byte, table *[256]byte) {
		for i, v := range plane {
			plane[i] = table[v]
		}
	}
	convert(img.Y, &fullLuma)
	convert(img.Cb, &fullChroma)
	convert(img.Cr, &fullChroma)
	return img
}

// straightWebP returns the pixels of a decoded frame with straight alpha.
func straightWebP(img image.Image) *image.NRGBA {
	switch img := img.(type) {
	case *image.NRGBA:
		return img
	case *image.NYCbCrA:
		out := fromVideo(&img.YCbCr)
		for y := range img.Rect.Dy() {
			row := out.Pix[y*out.Stride:]
			for x, a := range img.A[y*img.AStride:][:img.Rect.Dx()] {
				row[4*x+3] = a
			}
		}
		return out
	case *image.YCbCr:
		return fromVideo(img)
	}
	return image.NewNRGBA(img.Bounds()) // the decoder returns no other type
}

// Factors of BT.601 from the range of video to red, green and blue, in 65536ths.
const (
	fromLuma  = 76309
	redOfCr   = 104597
	greenOfCb = -25675
	greenOfCr = -53279
	blueOfCb  = 132201
)

// fromVideo converts planes of ratio 4:2:0 in the range of video to opaque pixels. Each chroma
// sample counts for the four pixels that it covers.
func fromVideo(img *image.YCbCr) *image.NRGBA {
	out := image.NewNRGBA(image.Rectangle{Max: img.Rect.Size()})
	for y := range out.Rect.Dy() {
		luma := img.Y[y*img.YStride:][:out.Rect.Dx()]
		cb, cr := img.Cb[y/2*img.CStride:], img.Cr[y/2*img.CStride:]
		to := out.Pix[y*out.Stride:][:out.Stride]
		for x, l := range luma {
			light := fromLuma*(int32(l)-16) + 1<<15
			b, r := int32(cb[x/2])-128, int32(cr[x/2])-128
			p := to[4*x : 4*x+4 : 4*x+4]
			p[0] = clip(light + redOfCr*r)
			p[1] = clip(light + greenOfCb*b + greenOfCr*r)
			p[2] = clip(light + blueOfCb*b)
			p[3] = 255
		}
	}
	return out
}

// clip returns the whole part of 65536ths, within the range of a sample.
func clip(v int32) byte { return byte(min(max(v>>16, 0), 255)) }

// drawFrame draws a frame on the canvas.
func drawFrame(canvas, pixels *image.NRGBA, frame webpFrame) {
	area := frame.area
	for y := range area.Dy() {
		from := pixels.Pix[y*pixels.Stride:][:4*area.Dx()]
		to := canvas.Pix[canvas.PixOffset(area.Min.X, area.Min.Y+y):][:len(from)]
		if !frame.blend {
			copy(to, from)
			continue
		}
		for ; len(from) > 0; from, to = from[4:], to[4:] {
			switch alpha := uint32(from[3]); alpha {
			case 0:
			case 255:
				copy(to[:4], from)
			default:
				blend(to[:4:4], from[:4:4], alpha)
			}
		}
	}
}

// blend draws one pixel of straight alpha over another.
func blend(to, from []byte, alpha uint32) {
	below := uint32(to[3]) * (255 - alpha) // in 255ths, as is all
	all := 255*alpha + below
	for i := range 3 {
		to[i] = byte((255*alpha*uint32(from[i]) + below*uint32(to[i]) + all/2) / all)
	}
	to[3] = byte((all + 127) / 255)
}
