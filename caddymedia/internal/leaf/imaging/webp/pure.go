//go:build !(cgo && linux)

package webp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/draw"
	"runtime/debug"
	"time"

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

const (
	animationID = "ANIM"
	frameID     = "ANMF"
	alphaID     = "ALPH"
	// overwrite is a flag of a frame: its transparent pixels replace those of the canvas.
	overwrite = 0x02
)

// Animate does not use the animations of the library, which lose transparency and accept no method.
func (pure) Animate(ctx context.Context, a Animation, opts Options) ([]byte, error) {
	opts, err := prepareAnimation(ctx, a, opts)
	if err != nil {
		return nil, err
	}
	var s sequence
	_, err = a.each(ctx, func(img *image.NRGBA, from, to time.Duration) error {
		// Times are cut to milliseconds, not durations, so that errors do not add up.
		return s.add(ctx, img, to.Milliseconds()-from.Milliseconds(), opts)
	})
	if err != nil {
		return nil, err
	}
	file, err := s.file(a)
	if err != nil || len(opts.Profile) == 0 {
		return file, err
	}
	return withProfile(file, opts.Profile)
}

// sequence is an animation under construction.
type sequence struct {
	frames []frame
	canvas *image.NRGBA // after the last frame
}

// frame is the changed part of the canvas.
type frame struct {
	area   image.Rectangle
	shown  int64 // milliseconds
	chunks []chunk
}

func (s *sequence) add(ctx context.Context, img *image.NRGBA, shown int64, opts Options) error {
	area := img.Rect
	if s.canvas == nil {
		s.canvas = image.NewNRGBA(img.Rect)
	} else {
		area = changed(s.canvas, img)
	}
	if area.Empty() {
		last := &s.frames[len(s.frames)-1]
		if last.shown+shown <= maxShown.Milliseconds() {
			last.shown += shown
			return nil
		}
		area = image.Rect(0, 0, 1, 1)
	}
	part := &image.NRGBA{
		Pix:    img.Pix[img.PixOffset(area.Min.X, area.Min.Y):],
		Stride: img.Stride,
		Rect:   image.Rectangle{Max: area.Size()},
	}
	file, err := encodeWhole(ctx, part, opts)
	if err != nil {
		return err
	}
	chunks, err := parse(file)
	if err != nil {
		return err
	}
	s.frames = append(s.frames, frame{area, shown, chunks})
	for y := area.Min.Y; y < area.Max.Y; y++ {
		copy(row(s.canvas, area, y), row(img, area, y))
	}
	return nil
}

// row returns the pixels of an image in a row of an area.
func row(img *image.NRGBA, area image.Rectangle, y int) []byte {
	return img.Pix[img.PixOffset(area.Min.X, y):][:4*area.Dx()]
}

// changed returns the area in which two images of the same size differ. Its origin is even, as the
// format demands.
func changed(a, b *image.NRGBA) image.Rectangle {
	var area image.Rectangle
	size := b.Rect.Size()
	for y := range size.Y {
		was, is := row(a, b.Rect, y), row(b, b.Rect, y)
		if bytes.Equal(was, is) {
			continue
		}
		left, right := 0, size.X
		for ; [4]byte(was[4*left:]) == [4]byte(is[4*left:]); left++ {
		}
		for ; [4]byte(was[4*right-4:]) == [4]byte(is[4*right-4:]); right-- {
		}
		area = area.Union(image.Rect(left, y, right, y+1))
	}
	area.Min.X &^= 1
	area.Min.Y &^= 1
	return area
}

// file assembles the animation. A single frame becomes a still image.
func (s *sequence) file(a Animation) ([]byte, error) {
	if len(s.frames) == 1 {
		return assemble(s.frames[0].chunks)
	}
	flags := byte(hasAnimation)
	chunks := make([]chunk, 0, 2+len(s.frames))
	// A transparent background, which no viewer uses, and the number of plays.
	head := binary.LittleEndian.AppendUint16(make([]byte, 4), uint16(plays(a.Loops)))
	chunks = append(chunks, chunk{}, chunk{animationID, head})
	for _, f := range s.frames {
		if transparent(f.chunks) {
			flags |= hasAlpha
		}
		chunks = append(chunks, chunk{frameID, f.data()})
	}
	chunks[0] = chunk{extendedID, extendedHead(flags, a.Width, a.Height)}
	return assemble(chunks)
}

func (f frame) data() []byte {
	inner := f.chunks
	if inner[0].id == extendedID {
		inner = inner[1:]
	}
	b := make([]byte, 0, 16+sizeOf(inner))
	b = appendUint24(appendUint24(b, f.area.Min.X/2), f.area.Min.Y/2)
	b = appendUint24(appendUint24(b, f.area.Dx()-1), f.area.Dy()-1)
	b = appendUint24(b, int(f.shown))
	return appendChunks(append(b, overwrite), inner)
}

// transparent reports whether the chunks of a still image have alpha.
func transparent(chunks []chunk) bool {
	for _, c := range chunks {
		if c.id == alphaID {
			return true
		}
	}
	head, err := extended(chunks)
	return err == nil && head[0]&hasAlpha != 0
}
