package variant

import (
	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// decodedMemory is about the most bytes that it takes to decode a picture and to bring
// its pixels into the form of an encoder, by what the decoders of the standard library
// allocate.
func decodedMemory(info imaging.Info) int64 {
	pixels := int64(info.Width) * int64(info.Height)
	turned := info.Orientation > 1
	switch info.Format {
	case imaging.JPEG:
		return pixels * jpegBytes(info, turned) / 2
	case imaging.GIF:
		const canvas = 4
		return info.FramePixels + pixels*canvas*2 // a frame may ask for what was there before
	case imaging.PNG:
		return pixels * pngBytes(info, turned)
	default:
		return 0
	}
}

// jpegBytes counts for two pixels.
func jpegBytes(info imaging.Info, turned bool) int64 {
	var planes, converted int64
	switch {
	case info.Components == 1:
		planes, converted = 2, 1
	case info.Components == 4:
		planes, converted = 8+8, 8
	case info.Chroma420:
		planes, converted = 3, 0
	default: // halved, or RGB
		planes, converted = 6, 8
	}
	sum := planes + converted
	if info.Progressive {
		const coefficient = 4 // for each sample
		sum += planes * coefficient
	}
	if turned {
		sum += max(3, converted)
	}
	return sum
}

func pngBytes(info imaging.Info, turned bool) int64 {
	sum := int64(4)
	if info.Deep {
		sum += 8
	}
	if info.Interlaced {
		sum += sum / 2 // the last pass has half of the pixels
	}
	if turned {
		sum += 4
	}
	return sum
}

// uses are how an encoder may be used for a picture, as far as its header tells, the one
// that takes the least memory first.
func uses(info imaging.Info) []webp.Use {
	switch {
	case info.Format == imaging.GIF && info.Frames > 1:
		return []webp.Use{webp.Frames}
	case info.Format == imaging.JPEG && info.Components == 4:
		return []webp.Use{webp.Opaque, webp.Lossless}
	case info.Format == imaging.JPEG:
		return []webp.Use{webp.Planes}
	default:
		return []webp.Use{webp.Opaque, webp.Pixels, webp.Lossless}
	}
}
