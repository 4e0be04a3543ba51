//go:build !(cgo && linux)

package webp

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	"runtime/debug"

	"github.com/deepteams/webp"
)

// pure is an encoder in Go. It cannot be stopped or limited to one processor.
type pure struct{}

// New returns the encoder of this build.
func New() (Encoder, error) { return pure{}, nil }

const purePath = "github.com/deepteams/webp"

func (pure) Name() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return purePath
	}
	for _, m := range info.Deps {
		if m.Path == purePath {
			return purePath + " " + m.Version
		}
	}
	return purePath
}

func (pure) Stops() bool { return false }

func (pure) Encode(ctx context.Context, img image.Image, opts Options) ([]byte, error) {
	opts, err := prepare(ctx, img, opts)
	if err != nil {
		return nil, err
	}
	if planes, ok := img.(*image.YCbCr); ok {
		img, opts.Lossless = opaque(planes), false
	}
	file, err := encodeWhole(ctx, img, opts)
	if err != nil || len(opts.Profile) == 0 {
		return file, err
	}
	return withProfile(file, opts.Profile)
}

// opaque converts planes to pixels. The library would convert each pixel several times.
func opaque(planes *image.YCbCr) *image.RGBA {
	img := image.NewRGBA(planes.Rect)
	draw.Draw(img, img.Rect, planes, image.Point{}, draw.Src)
	return img
}

// safePixels is the number of pixels below which the prediction modes always fit. A file has 512
// KiB for the modes. If they need more, the library writes a broken file, and has no setting
// against it. Images with manyModes are encoded with the few modes of Fast, which fit up to some
// 100 million pixels. The files of all images from safePixels on are checked.
const safePixels = 4_000_000

// encodeWhole encodes an image so that its modes fit.
func encodeWhole(ctx context.Context, img image.Image, opts Options) ([]byte, error) {
	size := img.Bounds().Size()
	pixels := size.X * size.Y
	if opts.Lossless || pixels < safePixels {
		return encode(ctx, img, opts)
	}
	if manyModes(pixels, opts.Quality) {
		opts.Effort = Fast
	}
	file, err := encode(ctx, img, opts)
	if err != nil {
		return nil, err
	}
	err = checkFile(file)
	if err != nil && opts.Effort != Fast {
		opts.Effort = Fast
		if file, err = encode(ctx, img, opts); err == nil {
			err = checkFile(file)
		}
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}

// checkFile decodes an encoded file, which fails if its modes were cut.
func checkFile(file []byte) error {
	if _, err := webp.Decode(bytes.NewReader(file)); err != nil {
		return fmt.Errorf("checking the encoded image: %w", err)
	}
	return nil
}

func encode(ctx context.Context, img image.Image, opts Options) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, stopped(ctx)
	}
	var file bytes.Buffer
	if err := webp.Encode(&file, img, settings(opts)); err != nil {
		return nil, fmt.Errorf("encoding as WebP: %w", err)
	}
	if ctx.Err() != nil {
		return nil, stopped(ctx)
	}
	if pixels, ok := img.(*image.NRGBA); ok && opts.Lossless && pixels.Opaque() {
		clearAlpha(file.Bytes())
	}
	return file.Bytes(), nil
}

// clearAlpha clears the alpha flag of a lossless file, which the library always sets (RFC 9649,
// section 3.4: bit 28 after the signature).
func clearAlpha(file []byte) {
	const at = fileHeader + chunkHeader + 4
	if len(file) > at {
		file[at] &^= 1 << 4
	}
}

// settings returns the settings of the library. For lossless encoding, methods other than the
// default save no time and make larger files.
func settings(opts Options) *webp.EncoderOptions {
	s := webp.DefaultOptions()
	if opts.Lossless {
		s.Lossless, s.Method, s.Quality = true, 4, 75
		return s
	}
	s.Quality = float32(opts.Quality)
	switch opts.Effort {
	case Fast:
		s.Method = 1
	case Small:
		s.Method = 4
	default:
		s.Method = 3
	}
	return s
}

// costs were measured with photographs, noise and drawings.
var costs = map[Use]cost{
	Planes: {120, 250}, Opaque: {100, 100}, Pixels: {530, 0}, Lossless: {750, 0}, Frames: {1380, 0},
}

func (pure) Memory(t Task) int64 { return costs[t.Use].memory(t) }
