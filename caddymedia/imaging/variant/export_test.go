package variant

import (
	"image"
	"image/gif"

	"github.com/caddymedia/media/caddymedia/imaging"
)

// Upright is the step between decoding and encoding, for benchmarks.
func Upright(img image.Image, info imaging.Info) image.Image { return upright(img, info) }

// Compose puts the frames of a GIF together, for benchmarks.
func Compose(g *gif.GIF) {
	for range animation(g).Frames {
	}
}

// Weights are what decoding a picture and converting it are thought to take, in bytes.
func Weights(info imaging.Info) (decoding, converting int64) {
	return decodedMemory(info), convertedMemory(info)
}
