// Package webp encodes pictures as WebP. It never decodes what others made.
//
// There is one [Encoder] in a build. With cgo on Linux it is libwebp, whose sources
// github.com/chai2010/webp carries; elsewhere it is github.com/deepteams/webp, which is
// pure Go and gives files of about the same size and looks. It needs two to three times the
// processor time on amd64, and more memory.
package webp

import (
	"context"
	"errors"
	"fmt"
	"image"
	"iter"
	"time"
)

// MaxSide is the longest side in pixels that the format can hold.
const MaxSide = 16383

// Encoder makes WebP files. It is safe for concurrent use.
type Encoder interface {
	// Name tells which one it is, with its version, for a log.
	Name() string

	// Encode makes the file of a still picture: an *image.YCbCr of ratio 4:2:0 in the
	// full range that JPEG has, which is always lossy, or an *image.NRGBA. Its bounds
	// begin at 0, 0. The planes of an *image.YCbCr are given away: Encode may change
	// them. An *image.NRGBA stays as it is.
	//
	// It stops soon after ctx is done, with the error of ctx, where the encoder can: see
	// [Encoder.Stops]. An encoder that cannot stop gives that error at its end.
	Encode(ctx context.Context, img image.Image, opts Options) ([]byte, error)

	// Animate makes the file of an animation. It stops between frames at the latest.
	Animate(ctx context.Context, a Animation, opts Options) ([]byte, error)

	// Stops tells whether an Encode can be stopped on its way.
	Stops() bool

	// Memory is about the most bytes that a task takes, beside the picture itself. Noise
	// may take twice as much.
	Memory(t Task) int64
}

// Task is what memory is asked for.
type Task struct {
	// Width and Height in pixels.
	Width, Height int
	// Bytes of the file that the picture was decoded from: they say how much detail
	// there is, which is what lossy encoders need memory for.
	Bytes int64
	// Quality of lossy encoding. 0 means [DefaultQuality].
	Quality int
	// Use is how the picture is encoded.
	Use Use
}

// Use is what an encoder is used for.
type Use int

// The uses of an encoder.
const (
	Planes   Use = iota // Encode of an *image.YCbCr
	Pixels              // Encode of an *image.NRGBA, lossy
	Lossless            // Encode of an *image.NRGBA, lossless
	Frames              // Animate
	Opaque              // Encode of an *image.NRGBA without transparency, lossy
)

// Options say how a picture is encoded. The zero value means the defaults.
type Options struct {
	// Quality of lossy encoding, 1 to 100. 0 means [DefaultQuality].
	Quality int
	// Effort trades time for size. Empty means [Normal].
	Effort Effort
	// Lossless keeps every visible pixel of an *image.NRGBA as it is.
	Lossless bool
	// Profile is an ICC profile to go with the picture; nil for none.
	Profile []byte
}

// DefaultQuality is the quality where none is given.
const DefaultQuality = 80

// Effort is how hard an encoder tries to make a small file.
type Effort string

// The efforts: what they cost beside Normal, on photographs. In pure Go it is 0.8 of the
// time for 5 % larger, and 1.3 times for 8 % smaller files.
const (
	Fast   Effort = "fast"   // a third of the time, 8 % larger
	Normal Effort = "normal" // libwebp's method 4
	Small  Effort = "small"  // 2.5 times the time, 2 to 4 % smaller
)

// ParseEffort reads an effort; an empty one is [Normal].
func ParseEffort(s string) (Effort, error) {
	switch e := Effort(s); e {
	case "":
		return Normal, nil
	case Fast, Normal, Small:
		return e, nil
	}
	return "", fmt.Errorf("%q is none of fast, normal, small", s)
}

// Animation is a sequence of pictures.
type Animation struct {
	// Width and Height of every frame in pixels.
	Width, Height int
	// Loops is how often it plays; 0 is for ever.
	Loops int
	// Frames gives whole canvases and how long each is shown. An image may be used again
	// for the next one as soon as it is asked for.
	Frames iter.Seq2[*image.NRGBA, time.Duration]
}

// ErrTooWide is a picture with a side over [MaxSide].
var ErrTooWide = errors.New("a side is longer than the 16,383 pixels that WebP can hold")
