package render

import (
	"context"
	"fmt"
	"image"
	"io"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

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

// plan sets an output, with ErrNone and the reason if it cannot be made.
func (j *job) plan(planned *output, o Output) {
	*planned = output{Output: o}
	size := j.info.UprightSize()
	if planned.whole() {
		planned.view.Size = size
	} else {
		planned.view = o.Box.View(size.X, size.Y)
	}
	planned.err = j.possible(planned)
}

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
	if j.info.Frames > 1 && j.info.Format != imaging.PNG && o.Format == imaging.WebP {
		err := j.animate(o)
		if err == nil || !o.FirstFrame {
			return err
		}
		o.animated = false
	}
	o.use = j.uses(o)[0]
	return j.fits(j.memory(o, o.use))
}

// animate makes an output an animation, or returns ErrNone with the reason.
func (j *job) animate(o *output) error {
	o.animated, o.use = true, webp.Frames
	if int64(j.info.Width)*int64(j.info.Height)*int64(j.info.Frames) > maxShown {
		return fmt.Errorf("%w: its %d frames show too many pixels", ErrNone, j.info.Frames)
	}
	return j.fits(j.memory(o, webp.Frames))
}

// fits returns ErrNone if an output needs more memory than the limit.
func (j *job) fits(memory int64) error {
	if memory > j.limits.Memory {
		return fmt.Errorf("%w: making it takes %d MiB, at most %d are set aside", ErrNone, memory>>20, j.limits.Memory>>20)
	}
	return nil
}

// feasible reports whether any output may be made.
func (j *job) feasible() bool {
	for i := range j.outputs {
		if j.outputs[i].err == nil {
			return true
		}
	}
	return false
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
	if memory := j.neededMemory(d); memory > j.slot.memory() {
		// The job may hold no memory while it waits for more, so the image is decoded again.
		if err := j.slot.change(ctx, memory); err != nil {
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
	return guarded(func() (*decoded, error) {
		d.prepare()
		return d, nil
	})
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
