package render

import (
	"cmp"
	"fmt"
	"image"
	"slices"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

// decodedMemory returns about the most bytes needed to decode an image. It follows the allocations
// of the decoders of the standard library and of golang.org/x/image.
func decodedMemory(info imaging.Info) int64 {
	pixels := int64(info.Width) * int64(info.Height)
	switch info.Format {
	case imaging.JPEG:
		bytes := int64(info.Samples) // of two pixels
		if info.Progressive {
			bytes += 4 * int64(info.Samples) // a coefficient for each sample
		}
		if info.RGB || info.Components == 4 {
			bytes += 8 // another image
		}
		return pixels * bytes / 2
	case imaging.PNG:
		bytes := int64(4) // of a pixel
		if info.Deep {
			bytes *= 2
		}
		if info.Interlaced {
			bytes *= 2 // each pass is a separate image
		}
		return pixels * bytes
	case imaging.GIF:
		const palette = 8 << 10
		return info.FramePixels + int64(info.Frames)*palette
	case imaging.WebP:
		if decodesToPlanes(info) {
			return pixels * 3 / 2
		}
		const (
			canvas  = 4
			samples = 12        // of the largest frame
			codes   = 40        // for each pixel of a hostile image
			most    = 150 << 20 // of codes
		)
		return pixels*(canvas+samples) + min(pixels*codes, most)
	default:
		return 0
	}
}

// isPlanarInfo reports whether an image is planes of luma and chroma once its pixels are prepared.
func isPlanarInfo(info imaging.Info) bool {
	return decodesToPlanes(info) && (!info.Converts() || info.Components == 1)
}

// decodesToPlanes reports whether an image is decoded to planes of luma and chroma.
func decodesToPlanes(info imaging.Info) bool {
	switch info.Format {
	case imaging.JPEG:
		return info.Components != 4 && !info.RGB
	case imaging.WebP:
		return !info.Lossless && !info.Alpha && info.Frames == 1
	default:
		return false
	}
}

// convertedMemory returns about the most additional bytes needed to convert the pixels for an
// encoder.
func convertedMemory(info imaging.Info) int64 {
	pixels := int64(info.Width) * int64(info.Height)
	if info.Format == imaging.GIF {
		const canvas = 4
		if info.Frames > 1 {
			return pixels * canvas * 3 // the first one, that of a frame and the one before it
		}
		return pixels * canvas * 2 // a frame may need the canvas before it
	}
	turned := info.Orientation > imaging.Upright
	odd := !keepsSubsampling(image.Pt(info.Width, info.Height), info.Orientation)
	planes := isPlanarInfo(info)
	switch {
	case planes && turned && odd && info.Components != 1:
		return pixels * 9 // full chroma, and the same turned
	case planes && turned:
		return pixels * 5 / 2
	case planes:
		return pixels // subsampled chroma
	case turned:
		return pixels * 8
	default:
		return pixels * 4
	}
}

// colorMemory returns the bytes needed to convert the colours.
func colorMemory(info imaging.Info) int64 {
	memory := info.ColorMemory()
	if info.Converts() && info.Frames > 1 {
		memory += 4 * int64(info.Width) * int64(info.Height) // a frame
	}
	return memory
}

// uses returns the possible uses of an encoder for an output, as far as the header of the image
// shows. The one that needs the least memory is first.
func (j *job) uses(o *output) []webp.Use {
	switch {
	case o.animated:
		return []webp.Use{webp.Frames}
	case isPlanarInfo(j.info):
		return []webp.Use{webp.Planes, webp.Opaque}
	case j.info.Format == imaging.JPEG:
		return []webp.Use{webp.Opaque, webp.Lossless}
	default:
		return []webp.Use{webp.Opaque, webp.Pixels, webp.Lossless}
	}
}

// task returns the encoding of an output.
func (j *job) task(o *output, use webp.Use) webp.Task {
	t := webp.Task{
		Width: o.view.Size.X, Height: o.view.Size.Y, Bytes: j.info.End, Quality: o.Quality, Use: use,
	}
	if !o.whole() {
		t.Bytes = int64(float64(t.Bytes) * float64(t.Width) * float64(t.Height) /
			(float64(j.info.Width) * float64(j.info.Height)))
	}
	return t
}

// memory returns the bytes needed to decode the image, and to scale and encode an output.
func (j *job) memory(o *output, use webp.Use) int64 {
	memory := decodedMemory(j.info) + convertedMemory(j.info) + colorMemory(j.info)
	task := j.task(o, use)
	pixels := int64(task.Width) * int64(task.Height)
	if !o.whole() {
		samples := 8 // of two pixels as they are scaled
		if isPlanarInfo(j.info) {
			samples = cmp.Or(j.info.Samples, 3) // 3 are those of a WebP
		}
		scaling := scale.Memory(j.info.Width, j.info.Height, samples)
		if use == webp.Frames {
			scaling *= 2 // outputs of the first frame keep its halves
		}
		memory += scaling + 4*pixels
	}
	if o.Format != imaging.WebP {
		const (
			converted = 4 // bytes of other samples for each pixel
			growing   = 3 // a buffer of up to twice the file, and its copy
		)
		return memory + pixels*converted + growing*j.fileMemory(o)
	}
	return memory + j.encoder.Memory(task)
}

// fileMemory returns about the most bytes of the file of an output.
func (j *job) fileMemory(o *output) int64 {
	pixels := int64(o.view.Size.X) * int64(o.view.Size.Y)
	switch {
	case o.animated:
		return 2*pixels + 2*j.task(o, webp.Frames).Bytes
	case o.Format == imaging.PNG:
		return 4 * pixels
	default:
		return 2 * pixels
	}
}

// total returns the memory for outputs that are made in this order, each encoded in the way that
// use returns. Their files wait in memory for the last one.
func (j *job) total(outputs []*output, use func(*output) webp.Use) int64 {
	var most, files int64
	for _, o := range outputs {
		most = max(most, files+j.memory(o, use(o)))
		files += j.fileMemory(o)
	}
	return most
}

// share returns the memory for all outputs. While that is over the limit, the first one in the
// order of making becomes ErrNone. A variant is the last.
func (j *job) share() int64 {
	for outputs := j.inOrder(); ; outputs = outputs[1:] {
		memory := j.total(outputs, func(o *output) webp.Use { return o.use })
		if memory <= j.limits.Memory {
			return memory
		}
		outputs[0].err = fmt.Errorf("%w: there is not enough memory for all outputs of the image", ErrNone)
	}
}

// initialMemory returns the bytes to acquire before the uses of the encoder are known. It is enough
// for every use, unless another worker would not get its share. Outputs over the limit together
// become ErrNone.
func (j *job) initialMemory() int64 {
	least := j.share()
	most := j.total(j.inOrder(), func(o *output) webp.Use {
		return slices.MaxFunc(j.uses(o), func(a, b webp.Use) int { return cmp.Compare(j.memory(o, a), j.memory(o, b)) })
	})
	if most <= j.limits.Memory/int64(j.limits.Workers) {
		return most
	}
	return least
}

// neededMemory sets the uses of the encoder for a decoded image and returns the memory for them.
// Outputs over the limit become ErrNone.
func (j *job) neededMemory(d *decoded) int64 {
	for _, o := range j.inOrder() {
		o.use = j.use(o, d, j.limits.Memory)
		o.err = j.fits(j.memory(o, o.use))
	}
	return j.share()
}
