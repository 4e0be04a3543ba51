package render

import (
	"context"
	"errors"
	"fmt"

	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// ErrTime means that decoding an image, or making an output of it, takes too long.
var ErrTime = errors.New("it takes too long")

// errContended means that an encoder takes long and other images wait.
var errContended = fmt.Errorf("%w: this one takes long and others wait", ErrBusy)

// makeAll makes the outputs. Its error is that of ctx or of reading the image.
//
// Each output has a time limit of its own, so that many renditions cannot cost an image its variant.
// While other images wait, no rendition begins after the contended time. Those that have begun are
// finished.
func (j *job) makeAll(ctx context.Context, d *decoded) error {
	late, cancel := context.WithTimeout(ctx, j.slot.queue.contendedTime())
	defer cancel()
	for _, o := range j.inOrder() {
		if o.FirstFrame && late.Err() != nil && j.slot.held.Contended() {
			o.err = errContended
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
// image.
func (j *job) make(ctx context.Context, o *output, d *decoded) error {
	contended := j.limits.Time
	if !o.FirstFrame { // losing a variant, which is optional, is better than refusing an upload
		contended = j.slot.queue.contendedTime()
	}
	bounded, cancel := j.slot.within(ctx, j.limits.Time, contended)
	defer cancel()
	file, err := guarded(func() ([]byte, error) { return j.encode(bounded, o, d) })
	cause := context.Cause(bounded)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case d.failed != nil: // the whole image was decoded before
		return fmt.Errorf("reading the frames again: %w", d.failed)
	case err == nil:
		o.file = file
	case errors.Is(cause, errContended), errors.Is(cause, ErrTime):
		o.err = fmt.Errorf("%w: %w", ErrNone, ErrTime)
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
