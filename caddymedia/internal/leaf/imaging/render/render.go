// Package render decodes images completely, as a check, and makes other images of them: the WebP
// variants stored beside them, and renditions in other sizes. They are upright, have the colour
// profile and alpha, and no metadata. As WebP they are animated if the image is. The package stores
// nothing, which packages upload and derived do. Begin with [Maker], which bounds the number of
// images being processed and their memory.
package render

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/storagedrivers/queue"
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
	// Format of the file: JPEG, PNG or WebP, or [ThumbHash]. Only WebP may be animated. In JPEG, alpha
	// becomes white.
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
	// Still makes no animation. It is set together with FirstFrame.
	Still bool
}

// Variant returns the output of a variant.
func Variant(opts Options) Output {
	return Output{Format: imaging.WebP, Quality: opts.Quality, Effort: opts.Effort}
}

// Made is the result of an [Output]: the bytes of a file, or an error that wraps [ErrNone] or
// [ErrBusy].
//
// ErrBusy means that the outputs before took longer than [Limits.Time], or that the machine is busy
// with other work. It is only an error of outputs with FirstFrame, which may be made later. An
// output that takes too long wraps ErrNone and [ErrTime].
type Made struct {
	File []byte
	Err  error
}

// ErrNone means that an image is intact, but that an output of it cannot be made.
var ErrNone = errors.New("cannot be made")

// Maker makes variants and renditions. It is safe for concurrent use.
type Maker struct {
	// Clock measures the work of decoders and encoders. [NewMaker] sets [ThreadTime].
	Clock Clock

	encoder webp.Encoder
	queue   *workQueue
	party   queue.Party
}

// NewMaker returns a Maker that works within limits. Without an encoder it can only check.
func NewMaker(encoder webp.Encoder, limits Limits) *Maker {
	return &Maker{Clock: ThreadTime, encoder: encoder, queue: newQueue(limits.withDefaults())}
}

// EncodesWebP reports whether the Maker has an encoder for WebP.
func (m *Maker) EncodesWebP() bool { return m.encoder != nil }

// For returns a Maker with the same limits whose images count for a party, such as an account. The
// queue serves owners in rotation, and so the clients of each.
func (m *Maker) For(party queue.Party) *Maker {
	return &Maker{Clock: m.Clock, encoder: m.encoder, queue: m.queue, party: party}
}

// Waiting returns the number of images in the queue.
func (m *Maker) Waiting() int {
	return m.queue.workers.Waiting() + m.queue.requests.Waiting() + m.queue.long.Waiting()
}

// Working returns the number of images being processed.
func (m *Maker) Working() int { return m.queue.workers.Busy() + m.queue.long.Busy() }

// Check decodes all of an image that passed [imaging.CheckImage] with info, unless it is sure
// without that to be whole.
//
// The error is an [*imaging.ContentError] for a damaged image, or an [*imaging.TooLargeError] for
// one that needs more memory or time than the limits; with more time it wraps [ErrTime] too. It may
// also wrap [ErrBusy], [ErrPanic], that of ctx, or a failure of r.
func (m *Maker) Check(ctx context.Context, r io.ReadSeeker, info imaging.Info) error {
	memory, most := decodedMemory(info), m.queue.limits.Memory
	if memory > most {
		return &imaging.TooLargeError{Message: fmt.Sprintf(
			"the image takes %d MiB to be decoded, at most %d are set aside", memory>>20, most>>20)}
	}
	s, err := m.acquire(ctx, info, memory)
	if err != nil {
		return err
	}
	defer s.release()
	return s.check(ctx, r, info)
}

// Make does the work of [Maker.Check] and makes the outputs, in their order. It decodes the image
// once for all of them. Its error is that of Check, and then there are no results. If the outputs
// together need more memory than the limit, some become [ErrNone]: those with a Box first.
func (m *Maker) Make(ctx context.Context, r io.ReadSeeker, info imaging.Info, outputs ...Output) ([]Made, error) {
	j := m.plan(r, info, outputs)
	if len(j.inOrder()) == 0 {
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

// plan returns the job for outputs. Those that cannot be made have ErrNone with the reason.
func (m *Maker) plan(r io.ReadSeeker, info imaging.Info, outputs []Output) *job {
	j := &job{
		encoder: m.encoder, limits: m.queue.limits, in: r, info: info,
		outputs: make([]output, len(outputs)),
	}
	size := info.UprightSize()
	for i, o := range outputs {
		planned := &j.outputs[i]
		planned.Output = o
		if planned.whole() {
			planned.view.Size = size
		} else {
			planned.view = o.Box.View(size.X, size.Y)
		}
		planned.err = j.possible(planned)
	}
	return j
}

// stoppableReader fails once its context is done, which stops a decoder.
type stoppableReader struct {
	io.ReadSeeker
	ctx context.Context //nolint:containedctx // of a decoder, which takes none
}

func (s *stoppableReader) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.ReadSeeker.Read(p)
}

// maxShown limits the displayed pixels of an animation. However small a frame is, the whole canvas
// is visited for it, at some 100 million pixels per second.
const maxShown = 400_000_000

// job makes the outputs of one image.
type job struct {
	encoder webp.Encoder
	limits  Limits
	slot    *slot
	in      io.ReadSeeker
	info    imaging.Info
	outputs []output
}

// output is an [Output] being made.
type output struct {
	Output
	// view is the part and the size of the upright image.
	view     scale.View
	animated bool
	use      webp.Use // how to encode it, once the image is decoded
	file     []byte
	err      error // wraps ErrNone or ErrBusy
}

// whole reports whether the output has the size of the image.
func (o *output) whole() bool { return o.Box == scale.Box{} }

// possible returns ErrNone with the reason if an output cannot be made.
func (j *job) possible(o *output) error {
	side := max(o.view.Size.X, o.view.Size.Y)
	switch {
	case o.Format == imaging.WebP && side > webp.MaxSide:
		return fmt.Errorf("%w: %w", ErrNone, webp.ErrTooWide)
	case j.info.ColorLoss != "":
		return fmt.Errorf("%w: %s", ErrNone, j.info.ColorLoss)
	case j.info.Format == imaging.PNG && j.info.Animated && !o.FirstFrame:
		return fmt.Errorf("%w: it is an animated PNG", ErrNone)
	}
	if j.info.Frames > 1 && j.info.Format != imaging.PNG && o.Format == imaging.WebP && !o.Still {
		o.animated, o.use = true, webp.Frames
		err := j.fits(j.memory(o, webp.Frames))
		if int64(j.info.Width)*int64(j.info.Height)*int64(j.info.Frames) > maxShown {
			err = fmt.Errorf("%w: its %d frames show too many pixels", ErrNone, j.info.Frames)
		}
		if err == nil || !o.FirstFrame {
			return err
		}
		o.animated = false
	}
	o.use = j.uses(o)[0]
	return j.fits(j.memory(o, o.use))
}

// fits returns ErrNone if an output needs more memory than the limit.
func (j *job) fits(memory int64) error {
	if memory > j.limits.Memory {
		return fmt.Errorf("%w: making it takes %d MiB, at most %d are set aside", ErrNone, memory>>20, j.limits.Memory>>20)
	}
	return nil
}

func (j *job) results() []Made {
	made := make([]Made, len(j.outputs))
	for i := range j.outputs {
		made[i] = Made{j.outputs[i].file, j.outputs[i].err}
	}
	return made
}

// run makes the outputs.
func (j *job) run(ctx context.Context) error {
	d, err := j.decode(ctx)
	if err != nil {
		return err
	}
	if memory := j.neededMemory(d); memory > j.slot.request.Units {
		// The job may hold no memory while it waits for more, so the image is decoded again.
		if err := j.slot.acquire(ctx, memory); err != nil {
			return err
		}
		if d, err = j.decode(ctx); err != nil {
			return err
		}
	}
	return j.makeAll(ctx, d)
}

func (j *job) decode(ctx context.Context) (*decoded, error) {
	d, err := j.slot.decode(ctx, j.in, j.info)
	if err != nil {
		return nil, err
	}
	return guarded(func() (*decoded, error) { return d, d.prepare() })
}

// use returns how to encode an output of a decoded image. It is lossless only if that needs no
// more memory than limit.
func (j *job) use(o *output, d *decoded, limit int64) webp.Use {
	if o.animated {
		return webp.Frames
	}
	pixels, ok := d.still.(*image.NRGBA)
	switch {
	case !ok && isPlanar(d.still, j.info.Orientation):
		return webp.Planes
	case !ok:
		return webp.Opaque
	case j.memory(o, webp.Lossless) <= limit && (!o.whole() || hasFewColors(pixels)):
		return webp.Lossless
	case pixels.Opaque():
		return webp.Opaque
	default:
		return webp.Pixels
	}
}

// ErrTime means that decoding an image, or making an output of it, takes too long.
var ErrTime = errors.New("it takes too long")

// errLate means that the outputs of an image take long together.
var errLate = fmt.Errorf("%w: the other outputs of the image take long", ErrBusy)

// makeAll makes the outputs. Its error is that of make.
//
// Each output has a time limit of its own, so that many renditions cannot cost an image its
// variant. After the limit no rendition begins, so that they cannot cost others their turn.
func (j *job) makeAll(ctx context.Context, d *decoded) error {
	late, cancel := context.WithTimeout(ctx, j.limits.Time)
	defer cancel()
	for _, o := range j.inOrder() {
		if o.FirstFrame && late.Err() != nil {
			o.err = errLate
			continue
		}
		if o.whole() {
			d.source = nil // frees the halved planes, as no scaled output follows
		}
		if err := j.make(ctx, o, d); err != nil {
			return err
		}
		if o.animated && o.FirstFrame && errors.Is(o.err, ErrNone) {
			if err := j.makeStill(ctx, o, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// inOrder returns the outputs that may be made, in the order of making. Those of the whole image
// are last, since encoding it may change its samples.
func (j *job) inOrder() []*output {
	var scaled, whole []*output
	for i := range j.outputs {
		switch o := &j.outputs[i]; {
		case o.err != nil:
		case o.whole():
			whole = append(whole, o)
		default:
			scaled = append(scaled, o)
		}
	}
	return append(scaled, whole...)
}

// make makes an output within time limits of its own. Its error is that of ctx or of reading the
// image, or ErrBusy.
func (j *job) make(ctx context.Context, o *output, d *decoded) error {
	var file []byte
	var ended error // the reason why the time has ended
	err := j.slot.clock.limited(ctx, j.limits.Time, func(ctx context.Context) (err error) {
		file, err = guarded(func() ([]byte, error) { return j.encode(ctx, o, d) })
		ended = context.Cause(ctx)
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case d.failed != nil: // the whole image was decoded before
		return fmt.Errorf("reading the frames again: %w", d.failed)
	case err == nil:
		o.file = file
	case errors.Is(ended, ErrTime):
		o.err = fmt.Errorf("%w: %w", ErrNone, ErrTime)
	case errors.Is(ended, ErrBusy) && o.FirstFrame:
		o.err = ended
	case errors.Is(ended, ErrBusy):
		return ended
	default:
		o.err = fmt.Errorf("%w: %w", ErrNone, err)
	}
	return nil
}

// makeStill makes the first frame of an animation that could not be encoded, within the memory for
// the animation. Its error is that of make.
func (j *job) makeStill(ctx context.Context, o *output, d *decoded) error {
	memory := j.memory(o, webp.Frames)
	o.animated = false
	o.use = j.use(o, d, memory)
	if j.memory(o, o.use) > memory {
		return nil // the error of the animation stays
	}
	o.err = nil
	return j.make(ctx, o, d)
}
