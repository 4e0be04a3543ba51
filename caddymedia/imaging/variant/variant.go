// Package variant decodes pictures whole, which proves that they are, and makes the WebP
// that is stored beside them: upright, with colour profile and alpha, moving where the
// picture moves. A [Maker] bounds how many pictures are worked on at a time, and in how
// much memory.
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

// Suffix is what the name of a variant has behind that of its picture.
const Suffix = ".webp"

// Options say how a variant is made. The zero value means the defaults.
type Options struct {
	// Quality of lossy encoding, 1 to 100. 0 means [webp.DefaultQuality].
	Quality int
	// Effort trades time for size. Empty means [webp.Normal].
	Effort webp.Effort
}

// ErrNone tells that a picture is whole, but no variant of it can be made.
var ErrNone = errors.New("no variant")

// Maker makes variants. It is safe for concurrent use.
type Maker struct {
	encoder webp.Encoder
	line    *line
	owner   string
}

// NewMaker gives a Maker that works within limits. Without an encoder it can only check.
func NewMaker(encoder webp.Encoder, limits Limits) *Maker {
	return &Maker{encoder: encoder, line: newLine(limits.withDefaults())}
}

// For returns a Maker with the same limits whose pictures count for owner, an account for instance.
// Owners whose pictures wait take turns.
func (m *Maker) For(owner string) *Maker {
	return &Maker{encoder: m.encoder, line: m.line, owner: owner}
}

// Waiting returns how many pictures wait to be worked on.
func (m *Maker) Waiting() int { return m.line.queue.Waiting() }

// Working returns how many pictures are worked on.
func (m *Maker) Working() int { return m.line.queue.Busy() }

// Check decodes all of a picture that passed [imaging.CheckImage] with info.
//
// The error is an [*imaging.ContentError] for a picture that is damaged, an
// [*imaging.TooLargeError] for one that needs more memory than all pictures together may
// take, [ErrBusy], [ErrPanic], that of ctx, or wraps a failure of r.
func (m *Maker) Check(ctx context.Context, r io.ReadSeeker, info imaging.Info) error {
	memory := decodedMemory(info)
	if err := m.fits(memory); err != nil {
		return err
	}
	p, err := m.line.enter(ctx, m.owner, info, memory)
	if err != nil {
		return err
	}
	defer p.leave()
	in := &stopping{r, ctx.Err}
	if info.Format == imaging.GIF {
		_, err = guarded(func() (*gif.GIF, error) { return imaging.DecodeGIF(in, info) })
	} else {
		_, err = guarded(func() (image.Image, error) { return imaging.Decode(in, info) })
	}
	return err
}

func (m *Maker) fits(memory int64) error {
	if memory <= m.line.limits.Memory {
		return nil
	}
	return &imaging.TooLargeError{Message: fmt.Sprintf(
		"the picture takes %d MiB to be decoded, at most %d are set aside", memory>>20, m.line.limits.Memory>>20)}
}

// Make is [Maker.Check] and gives the bytes of the variant. Its error may also be
// [ErrNone], with the reason.
func (m *Maker) Make(ctx context.Context, r io.ReadSeeker, info imaging.Info, opts Options) ([]byte, error) {
	j := &job{
		encoder: m.encoder, limits: m.line.limits, in: &stopping{r, ctx.Err}, info: info,
		options: webp.Options{Quality: opts.Quality, Effort: opts.Effort, Profile: info.Profile},
	}
	if none := j.cannot(); none != nil {
		if err := m.Check(ctx, r, info); err != nil {
			return nil, err
		}
		return nil, none
	}
	var err error
	if j.place, err = m.line.enter(ctx, m.owner, info, j.firstMemory()); err != nil {
		return nil, err
	}
	defer j.place.leave()
	return j.run(ctx)
}

// stopping ends the reading, and with it the decoding, for a caller who has left.
type stopping struct {
	io.ReadSeeker
	err func() error
}

func (s *stopping) Read(p []byte) (int, error) {
	if err := s.err(); err != nil {
		return 0, err
	}
	return s.ReadSeeker.Read(p)
}
