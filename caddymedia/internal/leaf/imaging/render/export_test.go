package render

import (
	"image"
	"image/gif"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
)

// Upright is the step between decoding and encoding, for benchmarks.
func Upright(img image.Image, info imaging.Info) image.Image {
	return upright(unified(img, info.Format), info.Orientation)
}

// Compose composes the frames of a GIF, for benchmarks.
func Compose(g *gif.GIF) {
	for range canvases(g) {
	}
}

// MakingMemory returns the estimated bytes for making outputs.
func MakingMemory(m *Maker, info imaging.Info, outputs ...Output) int64 {
	return m.plan(nil, info, outputs).initialMemory()
}

// Memory returns the estimated bytes for decoding an image and converting it.
func Memory(info imaging.Info) (decoding, converting int64) {
	return decodedMemory(info), convertedMemory(info)
}
