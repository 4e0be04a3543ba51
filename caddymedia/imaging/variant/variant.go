// Package variant decodes pictures completely, as a check, and makes the WebP variants stored
// beside them. A variant is upright, has the colour profile and alpha, and is animated if the
// picture is. A [Maker] bounds the number of pictures being processed and their memory.
package variant

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"io"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// Suffix is appended to the name of a picture to name its variant.
const Suffix = ".webp"

// Options are the parameters of a variant. The zero value means the defaults.
type Options struct {
	// Quality of lossy encoding, 1 to 100. 0 means [webp.DefaultQuality].
	Quality int
	// Effort trades time for size. Empty means [webp.Normal].
	Effort webp.Effort
}

// ErrNone means that a picture is intact, but no variant of it can be made.
var ErrNone = errors.New("no variant")

// Maker makes variants. It is safe for concurrent use.
type Maker struct {
	encoder webp.Encoder
	queue   *workQueue
	owner   string
}

// NewMaker returns a Maker that works within limits. Without an encoder it can only check.
func NewMaker(encoder webp.Encoder, limits Limits) *Maker {
	return &Maker{encoder: encoder, queue: newQueue(limits.withDefaults())}
}

// For returns a Maker with the same limits whose pictures count for owner, such as an account. The
// queue serves owners in rotation.
func (m *Maker) For(owner string) *Maker {
	return &Maker{encoder: m.encoder, queue: m.queue, owner: owner}
}

// Waiting returns the number of pictures in the queue.
func (m *Maker) Waiting() int { return m.queue.slots.Waiting() }

// Working returns the number of pictures being processed.
func (m *Maker) Working() int { return m.queue.slots.Busy() }

// Check decodes all of a picture that passed [imaging.CheckImage] with info.
//
// The error is an [*imaging.ContentError] for a damaged picture, or an [*imaging.TooLargeError] for
// one that needs more memory than the limit. It may also be [ErrBusy], [ErrPanic] or that of ctx,
// or wrap a failure of r.
func (m *Maker) Check(ctx context.Context, r io.ReadSeeker, info imaging.Info) error {
	memory := decodedMemory(info)
	if err := m.fits(memory); err != nil {
		return err
	}
	s, err := m.queue.acquire(ctx, m.owner, info, memory)
	if err != nil {
		return err
	}
	defer s.release()
	in := &stoppableReader{r, ctx.Err}
	if info.Format == imaging.GIF {
		_, err = guarded(func() (*gif.GIF, error) { return imaging.DecodeGIF(in, info) })
	} else {
		_, err = guarded(func() (image.Image, error) { return imaging.Decode(in, info) })
	}
	return err
}

func (m *Maker) fits(memory int64) error {
	if memory <= m.queue.limits.Memory {
		return nil
	}
	return &imaging.TooLargeError{Message: fmt.Sprintf(
		"the picture takes %d MiB to be decoded, at most %d are set aside", memory>>20, m.queue.limits.Memory>>20)}
}

// Make does the work of [Maker.Check] and returns the bytes of the variant. Its error may also be
// [ErrNone], with the reason.
func (m *Maker) Make(ctx context.Context, r io.ReadSeeker, info imaging.Info, opts Options) ([]byte, error) {
	j := &job{
		encoder: m.encoder, limits: m.queue.limits, in: &stoppableReader{r, ctx.Err}, info: info,
		options: webp.Options{Quality: opts.Quality, Effort: opts.Effort, Profile: info.Profile},
	}
	if none := j.feasible(); none != nil {
		if err := m.Check(ctx, r, info); err != nil {
			return nil, err
		}
		return nil, none
	}
	var err error
	if j.slot, err = m.queue.acquire(ctx, m.owner, info, j.initialMemory()); err != nil {
		return nil, err
	}
	defer j.slot.release()
	return j.run(ctx)
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
