package variant

import (
	"image"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// decodedMemory is about the most bytes that it takes to decode a picture, by what the
// decoders of the standard library allocate.
func decodedMemory(info imaging.Info) int64 {
	pixels := int64(info.Width) * int64(info.Height)
	switch info.Format {
	case imaging.JPEG:
		return pixels * decodedJPEG(info) / 2
	case imaging.PNG:
		return pixels * decodedPNG(info) / 2
	case imaging.GIF:
		const palette = 8 << 10
		return info.FramePixels + pixels + int64(info.Frames)*palette // a frame that is interlaced is copied
	default:
		return 0
	}
}

// decodedJPEG counts for two pixels.
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

// decodedPNG counts for two pixels.
func decodedPNG(info imaging.Info) int64 {
	sum := int64(8)
	if info.Deep {
		sum = 16
	}
	if info.Interlaced {
		sum *= 2 // each pass is an image of its own
	}
	return sum
}

// convertedMemory is about the most bytes that it takes besides to bring the pixels into
// the form of an encoder.
func convertedMemory(info imaging.Info) int64 {
	pixels := int64(info.Width) * int64(info.Height)
	if info.Format == imaging.GIF {
		const canvas = 4
		return pixels * canvas * 2 // a frame may ask for what was there before
	}
	turned := info.Orientation > imaging.Upright
	odd := !turnsEvenly(image.Pt(info.Width, info.Height), info.Orientation)
	planes := info.Format == imaging.JPEG && info.Components != 4 && !info.RGB
	switch {
	case planes && turned && odd && info.Components == 3:
		return pixels * 9 // its chroma, all of its pixels, and these turned
	case planes && turned:
		return pixels * 5 / 2
	case planes:
		return pixels // its chroma
	case turned:
		return pixels * 8
	default:
		return pixels * 4
	}
}

// uses are how an encoder may be used for a picture, as far as its header tells, the one
// that takes the least memory first.
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
