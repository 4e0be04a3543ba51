package sample

import (
	"bytes"
	"image/jpeg"
	"sync"

	"github.com/caddymedia/media/caddymedia/internal/imaging/webp"
)

// SlowPicture takes an encoder several seconds at the effort "small". It needs more memory
// than a picture may use by default.
var SlowPicture = sync.OnceValue(func() string {
	if encoder, err := webp.New(); err == nil && !encoder.Stops() {
		return PhotoJPEG(7200, 5000) // small is not so slow in Go
	}
	return PhotoJPEG(6000, 4000)
})

// PhotoJPEG returns a JPEG file of a Photo.
func PhotoJPEG(width, height int) string {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, Photo(width, height), &jpeg.Options{Quality: 80}); err != nil {
		panic(err) // it writes to memory
	}
	return b.String()
}
