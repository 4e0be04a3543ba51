// Package render decodes images completely, as a check, and makes other images of them: the WebP
// variants stored beside them, and renditions in other sizes. They are upright, have the colour
// profile and alpha, and no metadata. As WebP they are animated if the image is. A [Maker] bounds
// the number of images being processed and their memory.
package render

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// Suffix is appended to the name of an image to name its variant.
const Suffix = ".webp"

// Options are the parameters of a variant. The zero value means the defaults.
type Options struct {
	// Quality of lossy encoding, 1 to 100. 0 means [webp.DefaultQuality].
	Quality int
	// Effort trades time for size. Empty means [webp.Normal].
	Effort webp.Effort
}

// Output describes an image to make.
type Output struct {
	// Format of the file: JPEG, PNG, GIF or WebP. Only WebP may be animated. In JPEG, alpha becomes
	// white.
	Format imaging.Format
	// Box is the size. The zero value keeps that of the image.
	Box scale.Box
	// Quality of lossy encoding, 1 to 100. 0 means [webp.DefaultQuality].
	Quality int
	// Effort of WebP trades time for size. Empty means [webp.Normal].
	Effort webp.Effort
	// FirstFrame makes a still image of the first frame if no animation can be made, for example
	// in time. Otherwise the result is [ErrNone]. It is set for renditions, which can be made later,
	// and not for variants.
	FirstFrame bool
}

// Variant returns the output of a variant.
func Variant(opts Options) Output {
	return Output{Format: imaging.WebP, Quality: opts.Quality, Effort: opts.Effort}
}

// Made is the result of an [Output]: the bytes of a file, or an error that wraps [ErrNone] or
// [ErrBusy].
//
// ErrBusy means that the outputs before took longer than a third of [Limits.Wait] while the images
// of other owners waited. It is only an error of outputs with FirstFrame, which may be made later. An
// output that takes too long wraps ErrNone and [ErrTime].
type Made struct {
	File []byte
	Err  error
}

// ErrNone means that an image is intact, but that an output of it cannot be made.
var ErrNone = errors.New("cannot be made")

// Maker makes variants and renditions. It is safe for concurrent use.
type Maker struct {
	encoder webp.Encoder
	queue   *workQueue
	owner   string
	most    int // the workers that the owner may have, or 0
	notLong bool
}

// NewMaker returns a Maker that works within limits. Without an encoder it can only check.
func NewMaker(encoder webp.Encoder, limits Limits) *Maker {
	return &Maker{encoder: encoder, queue: newQueue(limits.withDefaults())}
}

// For returns a Maker with the same limits whose images count for owner, such as an account. The
// queue serves owners in rotation.
func (m *Maker) For(owner string) *Maker {
	return &Maker{encoder: m.encoder, queue: m.queue, owner: owner}
}

// Waiting returns the number of images in the queue.
func (m *Maker) Waiting() int {
	return m.queue.slots.Waiting() + m.queue.requests.Waiting() + m.queue.long.Waiting()
}

// Working returns the number of images being processed.
func (m *Maker) Working() int { return m.queue.slots.Busy() }

// Check decodes all of an image that passed [imaging.CheckImage] with info.
//
// The error is an [*imaging.ContentError] for a damaged image, or an [*imaging.TooLargeError] for
// one that needs more memory or time than the limits; with more time it wraps [ErrTime] too. It may
// also be [ErrBusy], [ErrPanic] or that of ctx, or wrap a failure of r.
func (m *Maker) Check(ctx context.Context, r io.ReadSeeker, info imaging.Info) error {
	memory := decodedMemory(info)
	if err := m.fits(memory); err != nil {
		return err
	}
	s, err := m.acquire(ctx, info, memory)
	if err != nil {
		return err
	}
	defer s.release()
	_, err = s.decode(ctx, r, info)
	return err
}

func (m *Maker) fits(memory int64) error {
	if memory <= m.queue.limits.Memory {
		return nil
	}
	return &imaging.TooLargeError{Message: fmt.Sprintf(
		"the image takes %d MiB to be decoded, at most %d are set aside", memory>>20, m.queue.limits.Memory>>20)}
}

// Make does the work of [Maker.Check] and makes the outputs, in their order. It decodes the image
// once for all of them. Its error is that of Check, and then there are no results. If the outputs
// together need more memory than the limit, some become [ErrNone]: those with a Box first.
func (m *Maker) Make(ctx context.Context, r io.ReadSeeker, info imaging.Info, outputs ...Output) ([]Made, error) {
	j := m.plan(r, info, outputs)
	if !j.feasible() {
		if err := m.Check(ctx, r, info); err != nil {
			return nil, err
		}
		return j.results(), nil
	}
	var err error
	if j.slot, err = m.acquire(ctx, info, j.initialMemory()); err != nil {
		return nil, err
	}
	defer j.slot.release()
	if err := j.run(ctx); err != nil {
		return nil, err
	}
	return j.results(), nil
}

// Feasible returns an error that wraps [ErrNone] if it is known without decoding the image that an
// output cannot be made.
func (m *Maker) Feasible(info imaging.Info, o Output) error {
	return m.plan(nil, info, []Output{o}).outputs[0].err
}

// plan returns the job for outputs.
func (m *Maker) plan(r io.ReadSeeker, info imaging.Info, outputs []Output) *job {
	j := &job{
		encoder: m.encoder, limits: m.queue.limits, in: r, info: info,
		outputs: make([]output, len(outputs)),
	}
	for i, o := range outputs {
		j.plan(&j.outputs[i], o)
	}
	return j
}

// stoppableReader fails once err returns an error, which stops a decoder.
type stoppableReader struct {
	io.ReadSeeker
	err func() error
}

func (s *stoppableReader) Read(p []byte) (int, error) {
	if err := s.err(); err != nil {
		return 0, err
	}
	return s.ReadSeeker.Read(p)
}

// reader returns a reader of r that yields to other images, and fails once ctx is done.
func (s *slot) reader(ctx context.Context, r io.ReadSeeker) *stoppableReader {
	return &stoppableReader{r, func() error { return s.pause(ctx) }}
}
