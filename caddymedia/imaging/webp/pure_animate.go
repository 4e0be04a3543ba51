//go:build !(cgo && linux)

package webp

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"time"
)

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
	var now time.Duration
	for img, shown := range a.Frames {
		if err := checkFrame(ctx, a, img); err != nil {
			return nil, err
		}
		if now > maxPlay {
			return nil, errPlay
		}
		// Durations are summed up before they are cut to milliseconds, so that errors do not add
		// up.
		next := now + bounded(shown)
		if err := s.add(ctx, img, next.Milliseconds()-now.Milliseconds(), opts); err != nil {
			return nil, err
		}
		now = next
	}
	if err := checkEnd(ctx, len(s.frames)); err != nil {
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
	chunks = append(chunks, chunk{}, chunk{animationID, animationHead(a.Loops)})
	for _, f := range s.frames {
		if transparent(f.chunks) {
			flags |= hasAlpha
		}
		chunks = append(chunks, chunk{frameID, f.data()})
	}
	chunks[0] = chunk{extendedID, extendedHead(flags, a.Width, a.Height)}
	return assemble(chunks)
}

// animationHead returns an ANIM chunk with a transparent background, which no viewer uses, and the
// number of plays.
func animationHead(loops int) []byte {
	return binary.LittleEndian.AppendUint16(make([]byte, 4), uint16(plays(loops)))
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
