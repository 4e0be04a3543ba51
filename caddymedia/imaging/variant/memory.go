package variant

import (
	"image"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// decodedMemory returns about the most bytes needed to decode a picture. It follows the allocations
// of the decoders of the standard library.
func decodedMemory(info imaging.Info) int64 {
	pixels := int64(info.Width) * int64(info.Height)
	switch info.Format {
	case imaging.JPEG:
		return pixels * decodedJPEG(info) / 2
	case imaging.PNG:
		return pixels * decodedPNG(info) / 2
	case imaging.GIF:
		const palette = 8 << 10
		return info.FramePixels + pixels + int64(info.Frames)*palette // an interlaced frame is copied
	default:
		return 0
	}
}

// decodedJPEG returns the bytes per two pixels.
func decodedJPEG(info imaging.Info) int64 {
	sum := int64(info.Samples)
	if info.Progressive {
		const coefficient = 4 // for each sample
		sum += int64(info.Samples) * coefficient
	}
	if info.RGB || info.Components == 4 {
		sum += 8 // another image
	}
	return sum
}

// decodedPNG returns the bytes per two pixels.
func decodedPNG(info imaging.Info) int64 {
	sum := int64(8)
	if info.Deep {
		sum = 16
	}
	if info.Interlaced {
		sum *= 2 // each pass is a separate image
	}
	return sum
}

// convertedMemory returns about the most additional bytes needed to convert the pixels for an
// encoder.
func convertedMemory(info imaging.Info) int64 {
	pixels := int64(info.Width) * int64(info.Height)
	if info.Format == imaging.GIF {
		const canvas = 4
		return pixels * canvas * 2 // a frame may need the canvas before it
	}
	turned := info.Orientation > imaging.Upright
	odd := !keepsSubsampling(image.Pt(info.Width, info.Height), info.Orientation)
	planes := info.Format == imaging.JPEG && info.Components != 4 && !info.RGB
	switch {
	case planes && turned && odd && info.Components == 3:
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

// uses returns the possible uses of an encoder for a picture, as far as its header shows. The one
// that needs the least memory is first.
func uses(info imaging.Info) []webp.Use {
	switch {
	case info.Format == imaging.GIF && info.Frames > 1:
		return []webp.Use{webp.Frames}
	case info.Format == imaging.JPEG && (info.Components == 4 || info.RGB):
		return []webp.Use{webp.Opaque, webp.Lossless}
	case info.Format == imaging.JPEG:
		return []webp.Use{webp.Planes, webp.Opaque}
	default:
		return []webp.Use{webp.Opaque, webp.Pixels, webp.Lossless}
	}
}
