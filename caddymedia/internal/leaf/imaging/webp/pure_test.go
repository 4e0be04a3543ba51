//go:build !(cgo && linux)

package webp_test

import (
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

// TestCutModesAreNoticed: the library keeps only the lowest 19 bits of the length of the modes.
func TestCutModesAreNoticed(t *testing.T) {
	t.Parallel()
	file := encode(t, draw(640, 480), webp.Options{})
	imagingtest.Must(t, webp.CheckFile(file))
	const at = 20 // the tag of 3 bytes, with the length above 5 other bits
	tag := uint24(file[at:])
	for _, length := range []int{0, 1, tag >> 6, tag>>5 - 100} {
		cut := length<<5 | tag&0x1F
		file[at], file[at+1], file[at+2] = byte(cut), byte(cut>>8), byte(cut>>16)
		imagingtest.Fails(t, webp.CheckFile(file), length, "of", tag>>5, "bytes pass")
	}
}
