// Package webp encodes images as WebP. It never decodes foreign files.
//
// A build has one [Encoder]. With cgo on Linux it is libwebp, whose sources are in
// github.com/chai2010/webp. Elsewhere it is github.com/deepteams/webp in pure Go. Its files have
// about the same size and quality. It needs two to three times the processor time on amd64, and
// more memory.
package webp

import (
	"context"
	"errors"
	"image"
	"iter"
	"time"
)

// MaxSide is the longest side in pixels that the format can hold.
const MaxSide = 16383

// Encoder makes WebP files. It is safe for concurrent use.
type Encoder interface {
	// Name returns the name and version of the encoder, for logs.
	Name() string

	// Encode returns the file of a still image: an *image.YCbCr of ratio 4:2:0 in the full range
	// of JPEG, which is always lossy, or an *image.NRGBA. Its bounds must begin at 0, 0. Encode may
	// change the planes of an *image.YCbCr, but not an *image.NRGBA.
	//
	// Encode stops soon after ctx is done, with the error of ctx, if the encoder can: see
	// [Encoder.Stops]. Other encoders return that error at the end.
	Encode(ctx context.Context, img image.Image, opts Options) ([]byte, error)

	// Animate returns the file of an animation. It stops between frames at the latest.
	Animate(ctx context.Context, a Animation, opts Options) ([]byte, error)

	// Stops reports whether a running Encode can be stopped.
	Stops() bool

	// Memory returns about the most bytes that a task needs, not counting the image itself. Noise
	// may need twice as much.
	Memory(t Task) int64
}

// Task describes an encoding, to estimate its memory.
type Task struct {
	// Width and Height in pixels.
	Width, Height int
	// Bytes is the size of the file that the image was decoded from. It is a measure of detail,
	// for which lossy encoders need memory.
	Bytes int64
	// Quality of lossy encoding. 0 means [DefaultQuality].
	Quality int
	// Use is the way of encoding.
	Use Use
}

// Use is a way to use an encoder.
type Use int

// The uses of an encoder.
const (
	Planes   Use = iota // Encode of an *image.YCbCr
	Pixels              // Encode of an *image.NRGBA, lossy
	Lossless            // Encode of an *image.NRGBA, lossless
	Frames              // Animate
	Opaque              // Encode of an *image.NRGBA without transparency, lossy
)

// Options are the parameters of encoding. The zero value means the defaults.
type Options struct {
	// Quality of lossy encoding, 1 to 100. 0 means [DefaultQuality].
	Quality int
	// Effort trades time for size. Empty means [Normal].
	Effort Effort
	// Lossless preserves every visible pixel of an *image.NRGBA.
	Lossless bool
	// Profile is an ICC profile to embed; nil for none.
	Profile []byte
}

// DefaultQuality is the quality used if none is set.
const DefaultQuality = 80

// Effort is the processor time spent on making a file small.
type Effort string

// The efforts, with their cost in libwebp relative to Normal on photographs. In pure Go, Fast takes
// 0.8 of the time for 5 % larger files, and Small takes 1.3 times as long for 8 % smaller ones.
const (
	Fast   Effort = "fast"   // a third of the time, 8 % larger
	Normal Effort = "normal" // libwebp's method 4
	Small  Effort = "small"  // 2.5 times the time, 2 to 4 % smaller
)

// Animation is a sequence of images.
type Animation struct {
	// Width and Height of every frame in pixels.
	Width, Height int
	// Loops is the number of plays; 0 means endless.
	Loops int
	// Frames yields whole canvases with their duration. The next iteration may reuse the image.
	Frames iter.Seq2[*image.NRGBA, time.Duration]
}

// ErrTooWide means that a side of the image is over [MaxSide].
var ErrTooWide = errors.New("a side is longer than the 16,383 pixels that WebP can hold")
