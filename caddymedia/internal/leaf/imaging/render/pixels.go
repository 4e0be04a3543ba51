package render

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/icc"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
)

// unified returns a decoded image in one of the forms that this package works on: planes of a
// JPEG, or pixels with straight alpha. It may reuse the samples of img.
func unified(img image.Image, format imaging.Format) image.Image {
	switch img.(type) {
	case *image.YCbCr:
		return img
	case *image.Gray:
		if format == imaging.JPEG {
			return img
		}
	}
	return straight(img)
}

// converted returns a decoded image in the colours of sRGB. It may reuse the samples of img.
func converted(img image.Image, to *icc.Transform) image.Image {
	var pixels *image.NRGBA
	switch img := img.(type) {
	case *image.Gray:
		to.Grey(img.Pix)
		return img
	case *image.CMYK:
		pixels = &image.NRGBA{Pix: img.Pix, Stride: img.Stride, Rect: img.Rect}
	default:
		pixels = straight(img)
	}
	to.Pixels(pixels.Pix)
	return pixels
}

// isPlanar reports whether upright returns planes.
func isPlanar(img image.Image, o imaging.Orientation) bool {
	switch img.(type) {
	case *image.YCbCr:
		return keepsSubsampling(img.Bounds().Size(), o)
	case *image.Gray:
		return true
	}
	return false
}

// upright returns a unified image in a form for the WebP encoder, with its orientation applied:
// planes of ratio 4:2:0 where possible, otherwise pixels. It may reuse the samples of img.
func upright(img image.Image, o imaging.Orientation) image.Image {
	if planes, ok := img.(*image.YCbCr); ok && isPlanar(img, o) {
		img = subsampled(planes)
	} else if _, ok := img.(*image.Gray); !ok {
		img = straight(img)
	}
	if o > imaging.Upright {
		img = scale.Turned(img, turn(o))
	}
	if grey, ok := img.(*image.Gray); ok {
		return greyPlanes(grey)
	}
	return img
}

// keepsSubsampling reports whether each chroma sample still covers the same four pixels after the
// turn. Reading an odd side backwards would move them by half a sample.
func keepsSubsampling(size image.Point, o imaging.Orientation) bool {
	t := turn(o)
	return (size.X%2 == 0 || !t.FlipX) && (size.Y%2 == 0 || !t.FlipY)
}

// greyPlanes returns a grey image as planes with neutral chroma.
func greyPlanes(img *image.Gray) *image.YCbCr {
	size := img.Bounds().Size()
	half := (size.X + 1) / 2
	chroma := bytes.Repeat([]byte{128}, half*((size.Y+1)/2))
	return &image.YCbCr{
		Y: img.Pix, Cb: chroma, Cr: bytes.Clone(chroma), YStride: img.Stride, CStride: half,
		SubsampleRatio: image.YCbCrSubsampleRatio420, Rect: image.Rectangle{Max: size},
	}
}

// shifts are the bits of x and y that a chroma sample covers.
var shifts = map[image.YCbCrSubsampleRatio][2]uint{
	image.YCbCrSubsampleRatio444: {0, 0},
	image.YCbCrSubsampleRatio422: {1, 0},
	image.YCbCrSubsampleRatio440: {0, 1},
	image.YCbCrSubsampleRatio411: {2, 0},
	image.YCbCrSubsampleRatio410: {2, 1},
}

// subsampled returns planes of ratio 4:2:0. Each chroma sample is the mean of the four pixels that
// it covers.
func subsampled(img *image.YCbCr) *image.YCbCr {
	if img.SubsampleRatio == image.YCbCrSubsampleRatio420 {
		return img
	}
	shift := shifts[img.SubsampleRatio]
	size := img.Bounds()
	out := *img
	out.SubsampleRatio = image.YCbCrSubsampleRatio420
	out.CStride = (size.Dx() + 1) / 2
	for _, plane := range []*[]byte{&out.Cb, &out.Cr} {
		from := *plane
		to := make([]byte, 0, out.CStride*((size.Dy()+1)/2))
		for y := 0; y < size.Dy(); y += 2 {
			above := from[y>>shift[1]*img.CStride:]
			below := from[min(y+1, size.Dy()-1)>>shift[1]*img.CStride:]
			for x := 0; x < size.Dx(); x += 2 {
				l, r := x>>shift[0], min(x+1, size.Dx()-1)>>shift[0]
				sum := int(above[l]) + int(above[r]) + int(below[l]) + int(below[r])
				to = append(to, byte((sum+2)/4))
			}
		}
		*plane = to
	}
	return &out
}

// straight returns the pixels of any image with straight (not premultiplied) alpha.
func straight(img image.Image) *image.NRGBA {
	size := img.Bounds()
	switch img := img.(type) {
	case *image.NRGBA:
		return img
	case *image.RGBA: // the decoders return it for opaque images, where both are the same
		return &image.NRGBA{Pix: img.Pix, Stride: img.Stride, Rect: img.Rect}
	case *image.NRGBA64:
		return highBytes(img.Pix, img.Stride, size)
	case *image.RGBA64: // opaque as well
		return highBytes(img.Pix, img.Stride, size)
	case *image.Paletted:
		out, colors := image.NewNRGBA(size), straightPalette(img.Palette)
		for y := range size.Dy() {
			to := row(out, y)
			for x, index := range img.Pix[y*img.Stride:][:size.Dx()] {
				*(*[4]byte)(to[4*x:]) = colors[index]
			}
		}
		return out
	}
	out := image.NewRGBA(size) // image/draw has a fast path for it
	draw.Draw(out, size, img, size.Min, draw.Src)
	return &image.NRGBA{Pix: out.Pix, Stride: out.Stride, Rect: out.Rect}
}

// highBytes drops the lower half of 16-bit samples.
func highBytes(pix []byte, stride int, size image.Rectangle) *image.NRGBA {
	out := image.NewNRGBA(size)
	for y := range size.Dy() {
		from := pix[y*stride:]
		to := out.Pix[y*out.Stride:][:out.Stride]
		for i := range to {
			to[i] = from[2*i]
		}
	}
	return out
}

// straightPalette returns a colour for every index. Indices beyond the palette are transparent.
func straightPalette(p color.Palette) *[256][4]byte {
	var colors [256][4]byte
	for i, c := range p[:min(len(p), len(colors))] {
		n := color.NRGBAModel.Convert(c).(color.NRGBA) // the type that the model returns
		colors[i] = [4]byte{n.R, n.G, n.B, n.A}
	}
	return &colors
}

// turn returns how to turn a scaled image for viewing: which orientations read the stored rows or
// columns backwards (Exif 3.0, tag 0x0112).
func turn(o imaging.Orientation) scale.Turn {
	return scale.Turn{
		FlipX:     o == 2 || o == 3 || o == 7 || o == 8,
		FlipY:     o == 3 || o == 4 || o == 6 || o == 7,
		Transpose: o >= 5,
	}
}
