package variant

import (
	"image"
	"image/gif"

	"github.com/caddymedia/media/caddymedia/imaging"
)

// Upright is the step between decoding and encoding, for benchmarks.
func Upright(img image.Image, info imaging.Info) image.Image { return upright(img, info) }

// Compose composes the frames of a GIF, for benchmarks.
func Compose(g *gif.GIF) {
	for range animation(g).Frames {
	}
}

// Memory returns the estimated bytes for decoding a picture and converting it.
func Memory(info imaging.Info) (decoding, converting int64) {
	return decodedMemory(info), convertedMemory(info)
}
