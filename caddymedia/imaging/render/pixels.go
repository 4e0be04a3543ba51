package render

import (
	"image"
	"image/color"
	"image/draw"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
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
	if isPlanar(img, o) {
		if grey, ok := img.(*image.Gray); ok {
			return greyPlanes(grey, o)
		}
		return orientPlanes(subsampled(img.(*image.YCbCr)), o) // the only other planes
	}
	pixels := straight(img)
	if o <= 1 {
		return pixels
	}
	size := pixels.Bounds()
	r := raster{pixels.Pix, pixels.Stride, size.Dx(), size.Dy(), 4}.oriented(o)
	return &image.NRGBA{Pix: r.pix, Stride: r.stride, Rect: image.Rect(0, 0, r.width, r.height)}
}

// keepsSubsampling reports whether each chroma sample still covers the same four pixels after the
// turn. Reading an odd side backwards would move them by half a sample.
func keepsSubsampling(size image.Point, o imaging.Orientation) bool {
	return (size.X%2 == 0 || !flipsX(o)) && (size.Y%2 == 0 || !flipsY(o))
}

func orientPlanes(img *image.YCbCr, o imaging.Orientation) *image.YCbCr {
	if o <= 1 {
		return img
	}
	size := img.Bounds()
	width, height := size.Dx(), size.Dy()
	halfWidth, halfHeight := (width+1)/2, (height+1)/2
	y := raster{img.Y, img.YStride, width, height, 1}.oriented(o)
	cb := raster{img.Cb, img.CStride, halfWidth, halfHeight, 1}.oriented(o)
	cr := raster{img.Cr, img.CStride, halfWidth, halfHeight, 1}.oriented(o)
	return &image.YCbCr{
		Y: y.pix, Cb: cb.pix, Cr: cr.pix, YStride: y.stride, CStride: cb.stride,
		SubsampleRatio: image.YCbCrSubsampleRatio420, Rect: image.Rect(0, 0, y.width, y.height),
	}
}

// greyPlanes returns a grey image as planes with neutral chroma.
func greyPlanes(img *image.Gray, o imaging.Orientation) *image.YCbCr {
	size := img.Bounds()
	y := raster{img.Pix, img.Stride, size.Dx(), size.Dy(), 1}
	if o > 1 {
		y = y.oriented(o)
	}
	half := (y.width + 1) / 2
	chroma := make([]byte, half*((y.height+1)/2))
	for i := range chroma {
		chroma[i] = 128
	}
	return &image.YCbCr{
		Y: y.pix, Cb: chroma, Cr: append([]byte(nil), chroma...), YStride: y.stride, CStride: half,
		SubsampleRatio: image.YCbCrSubsampleRatio420, Rect: image.Rect(0, 0, y.width, y.height),
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
	for _, plane := range []struct{ to, from *[]byte }{{&out.Cb, &img.Cb}, {&out.Cr, &img.Cr}} {
		*plane.to = make([]byte, out.CStride*((size.Dy()+1)/2))
		subsample(*plane.to, *plane.from, img.CStride, size.Size(), shift)
	}
	return &out
}

func subsample(to, from []byte, stride int, size image.Point, shift [2]uint) {
	for y := 0; y < size.Y; y += 2 {
		above := from[y>>shift[1]*stride:]
		below := from[min(y+1, size.Y-1)>>shift[1]*stride:]
		for x := 0; x < size.X; x += 2 {
			l, r := x>>shift[0], min(x+1, size.X-1)>>shift[0]
			sum := int(above[l]) + int(above[r]) + int(below[l]) + int(below[r])
			to[0], to = byte((sum+2)/4), to[1:]
		}
	}
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
		return fromPalette(img)
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

func fromPalette(img *image.Paletted) *image.NRGBA {
	colors := straightPalette(img.Palette)
	size := img.Bounds()
	out := image.NewNRGBA(size)
	for y := range size.Dy() {
		to := out.Pix[y*out.Stride:][:out.Stride]
		for x, index := range img.Pix[y*img.Stride:][:size.Dx()] {
			*(*[4]byte)(to[4*x:]) = colors[index]
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

// raster is an array of samples of size bytes each, row by row.
type raster struct {
	pix           []byte
	stride        int // bytes from row to row
	width, height int // in samples
	size          int // 1 or 4
}

// tile is the side of the squares in which images are turned. Reading down a column then stays
// within the processor's cache.
const tile = 32

// oriented returns r as viewed under an EXIF orientation. The rows of the result are contiguous.
// Its sample at x, y is the sample of r at start + x*right + y*down.
func (r raster) oriented(o imaging.Orientation) raster {
	out := raster{width: r.width, height: r.height, size: r.size}
	left, top := 0, 0
	right, down := r.size, r.stride
	if flipsX(o) {
		left, right = (r.width-1)*r.size, -right
	}
	if flipsY(o) {
		top, down = (r.height-1)*r.stride, -down
	}
	if o >= 5 {
		out.width, out.height = r.height, r.width
		right, down = down, right
	}
	out.stride = out.width * r.size
	out.pix = make([]byte, out.stride*out.height)
	for y := 0; y < out.height; y += tile {
		for x := 0; x < out.width; x += tile {
			square := image.Rect(x, y, min(x+tile, out.width), min(y+tile, out.height))
			r.orientTile(out, square, left+top, right, down)
		}
	}
	return out
}

func (r raster) orientTile(out raster, square image.Rectangle, start, right, down int) {
	for y := square.Min.Y; y < square.Max.Y; y++ {
		from := start + y*down + square.Min.X*right
		to := out.pix[y*out.stride+square.Min.X*r.size : y*out.stride+square.Max.X*r.size]
		if r.size == 1 {
			for i := range to {
				to[i] = r.pix[from]
				from += right
			}
			continue
		}
		for i := 0; i < len(to); i += 4 {
			*(*[4]byte)(to[i:]) = [4]byte(r.pix[from:])
			from += right
		}
	}
}

// flipsX and flipsY report whether an orientation reads the stored rows, or columns, backwards
// (Exif 3.0, tag 0x0112).
func flipsX(o imaging.Orientation) bool { return o == 2 || o == 3 || o == 7 || o == 8 }
func flipsY(o imaging.Orientation) bool { return o == 3 || o == 4 || o == 6 || o == 7 }

// turn returns how to turn a scaled image for viewing.
func turn(o imaging.Orientation) scale.Turn {
	return scale.Turn{FlipX: flipsX(o), FlipY: flipsY(o), Transpose: o >= 5}
}
