package derived

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// RenditionRequest asks for a rendition of a stored image.
type RenditionRequest struct {
	Alias     *item.Alias
	Rendition *item.Rendition
	// Filename of the image, relative to the alias.
	Filename string
	// WebP prefers WebP where the alias negotiates.
	WebP bool
	// Owner shares the bounded work, such as the address of the client.
	Owner string
	// Hold, if set, keeps the uploader and its storages open until release is called. It is called
	// for work that may go on without its callers.
	Hold func() (release func(), err error)
}

// OpenRendition opens a rendition by open, a method of the storage of the alias. The error is
// fs.ErrNotExist if there is no such image, [render.ErrNone] if its format is not decoded, and
// [ErrNotMade] if the rendition has to be made by [Maker.MakeRendition]. An SVG is its own
// rendition. The image is returned as far as it was found, also with an error.
func (r *RenditionRequest) OpenRendition(
	ctx context.Context, open func(context.Context, string) (*storagedrivers.Object, error),
) (object *storagedrivers.Object, image storagedrivers.Info, err error) {
	if naming.Extension(r.Filename) == "svg" {
		if object, err = open(ctx, r.Alias.Key(r.Filename)); err != nil {
			return nil, image, err
		}
		return object, object.Info, nil
	}
	if image, err = r.Alias.Storage.Stat(ctx, r.Alias.Key(r.Filename)); err != nil {
		return nil, image, err
	}
	if !imaging.FormatOf(naming.Extension(r.Filename)).Decodable() || r.Alias.IsVariant(r.Filename) {
		return nil, image, fmt.Errorf("%w: images of this format are not decoded", render.ErrNone)
	}
	if !r.Alias.StoresRenditions(r.Filename) {
		return nil, image, ErrNotMade
	}
	object, err = open(ctx, r.Alias.RenditionKey(r.Filename, r.file(), image))
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotMade
	}
	return object, image, err
}

// ErrNotMade means that a rendition is not stored yet.
var ErrNotMade = errors.New("the rendition is not made yet")

// errNoFolder means that the alias has no folder for renditions, so that its thumbnails are not
// stored.
var errNoFolder = errors.New("the alias has no folder for renditions")

// UnstoredError means that a rendition was made, but cannot be stored.
type UnstoredError struct {
	// File is the rendition. It must not be changed.
	File []byte
	Err  error
}

// Error returns the reason.
func (e *UnstoredError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the storage.
func (e *UnstoredError) Unwrap() error { return e.Err }

func (r *RenditionRequest) file() item.RenditionFile {
	return r.Rendition.FileOf(r.Filename, r.WebP)
}

// makingTime bounds the waiting for the making of a rendition, and the making.
const makingTime = 10 * time.Minute

// MakeRendition makes a rendition and stores it. Concurrent calls for one rendition make it once.
// The work goes on without its callers: one that leaves, or that has waited for
// [render.Limits.Wait].
//
// The error is fs.ErrNotExist if there is no such image. If the image cannot be rendered,
// [IsUnrenderable] reports it; it is not tried again for some minutes. The error wraps
// [render.ErrBusy] if the queue is full or the caller has waited too long. It is a [*SlowError] if
// the work takes too long, which is not tried again for a while. It is an [*UnstoredError] if the
// rendition cannot be stored. Otherwise it is that of the storage, or of ctx.
func (m *Maker) MakeRendition(ctx context.Context, r *RenditionRequest) error {
	folder := r.Alias.RenditionLocation().Join(r.Alias.RenditionFolder(r.Filename)).String()
	name := folder + "/" + r.Rendition.Name + "." + r.file().Fingerprint()
	return m.once(ctx, name, func() error {
		if r.Hold != nil {
			release, err := r.Hold()
			if err != nil {
				return err
			}
			defer release()
		}
		return m.makeRendition(context.WithoutCancel(ctx), r)
	})
}

// once calls f for all concurrent callers of a name, and returns its error. It returns earlier,
// with the cause of ctx or an error that wraps [render.ErrBusy], if ctx is done or the caller has
// waited for [render.Limits.Wait].
func (m *Maker) once(ctx context.Context, name string, f func() error) error {
	made := m.making.DoChan(name, func() (any, error) {
		err := guard.CallAs(render.ErrPanic, f)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: %w", render.ErrBusy, err)
		}
		return nil, err
	})
	patience := time.NewTimer(m.Images.Wait())
	defer patience.Stop()
	select {
	case result := <-made:
		return result.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-patience.C:
		return fmt.Errorf("%w: the image is still being made", render.ErrBusy)
	}
}

// makeRendition is MakeRendition for one caller without a limit of waiting. A failure is returned
// again for a while.
func (m *Maker) makeRendition(ctx context.Context, r *RenditionRequest) error {
	image, err := r.Alias.Storage.Stat(ctx, r.Alias.Key(r.Filename))
	if err != nil {
		return err
	}
	name := r.Alias.Storage.Location().Join(r.Alias.RenditionKey(r.Filename, r.file(), image)).String()
	return m.attempt(ctx, name, r.Owner, func(ctx context.Context, maker *render.Maker) error {
		return m.renderLocked(ctx, r, image, maker)
	})
}

// attempt calls f when an image may be made at the request of owner. A failure by a name is
// returned again for a while.
func (m *Maker) attempt(
	ctx context.Context, name, owner string, f func(context.Context, *render.Maker) error,
) error {
	known, _ := m.Memory.attempts.Get(name)
	err := known.failed(m.Now())
	if err != nil {
		return err
	}
	if !known.long {
		err = m.admit(ctx, owner, false, f)
		known.long = errors.Is(err, render.ErrLong)
	}
	if known.long {
		m.Memory.attempts.Add(name, known)
		err = m.admit(ctx, owner, true, f)
	}
	if err = known.end(err, m.Now()); known.failed(m.Now()) != nil {
		m.Memory.attempts.Add(name, known)
	}
	return err
}

// admit calls f when an image may be made. long is set for long animations.
func (m *Maker) admit(
	ctx context.Context, owner string, long bool, f func(context.Context, *render.Maker) error,
) error {
	waiting, cancel := context.WithTimeout(ctx, makingTime)
	defer cancel()
	maker, leave, err := m.Images.Admit(waiting, owner, long)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel = context.WithTimeout(ctx, makingTime)
	defer cancel()
	return f(ctx, maker)
}

// renderLocked is render, with the lock that the image needs.
func (m *Maker) renderLocked(ctx context.Context, r *RenditionRequest, image storagedrivers.Info, maker *render.Maker) error {
	lock := func() (func(), error) { return r.Alias.Share(ctx, r.Filename) }
	if image.ETag == "" {
		// Only size and time identify the image, perhaps in whole seconds. So no request of this
		// process may replace it while it is rendered.
		unlock, err := lock()
		if err != nil {
			return err
		}
		defer unlock()
		lock = func() (func(), error) { return func() {}, nil } // it is held
	}
	return m.render(ctx, r, image, maker, lock)
}

// render makes and stores a rendition, unless another call has just done so. lock is called before
// it is stored, so that no request of this process replaces or deletes the image meanwhile.
func (m *Maker) render(
	ctx context.Context, r *RenditionRequest, image storagedrivers.Info, maker *render.Maker,
	lock func() (unlock func(), err error),
) error {
	if r.Alias.StoresRenditions(r.Filename) {
		key := r.Alias.RenditionKey(r.Filename, r.file(), image)
		if stored, err := item.Stat(ctx, r.Alias.Storage, key); stored.Key != "" || err != nil {
			return err
		}
	}
	start := m.Now()
	err := item.Traced(ctx, "media.rendition", r.Alias.Attributes, func(ctx context.Context) error {
		image, made, err := m.makeOf(ctx, r.Alias, image.Key, maker, r.file().Output())
		if err != nil {
			return err
		}
		if made[0].Err != nil {
			return made[0].Err
		}
		unlock, err := lock()
		if err != nil {
			return err
		}
		defer unlock()
		if present, err := isPresent(ctx, r.Alias, image); !present || err != nil {
			return err
		}
		if err := store(ctx, r.Alias, r.Filename, r.file(), image, made[0].File); err != nil {
			return &UnstoredError{made[0].File, err}
		}
		return nil
	})
	if errors.Is(err, render.ErrLong) {
		return err
	}
	m.Observer.Rendered(r.Alias, r.Rendition, resultOf(err), m.Now().Sub(start))
	return err
}

// isPresent reports whether an image is still of this generation. The caller holds its name. The
// error is fs.ErrNotExist if the image is gone.
func isPresent(ctx context.Context, a *item.Alias, image storagedrivers.Info) (bool, error) {
	now, err := a.Storage.Stat(ctx, image.Key)
	return err == nil && now.Same(image), err
}

// store stores a file of a rendition for a generation of the image. Of two makers the first one
// wins.
func store(
	ctx context.Context, a *item.Alias, filename string, f item.RenditionFile, image storagedrivers.Info, file []byte,
) error {
	if !a.StoresRenditions(filename) {
		return errNoFolder
	}
	opts := storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly, CacheControl: a.RenditionCacheControl}
	_, err := a.Storage.Put(ctx, a.RenditionKey(filename, f, image), bytes.NewReader(file), opts)
	if errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	}
	return err
}

// MadeRendition is a file of a rendition that is made but not stored.
type MadeRendition struct {
	item.RenditionFile
	// Made is the result of making the file.
	Made render.Made
}

// StoreRenditions stores files that were made of one generation of an image, and reports their
// results to the observer. It returns the number of good files, and the errors of the storage. If
// the image has been replaced, nothing is stored. took is the time to make the files. The caller
// holds the name.
func (m *Maker) StoreRenditions(
	ctx context.Context, a *item.Alias, filename string, image storagedrivers.Info, files []MadeRendition,
	took time.Duration,
) (good int, err error) {
	present, err := isPresent(ctx, a, image)
	unknown := err
	for _, f := range files {
		failed := f.Made.Err
		switch {
		case failed != nil:
		case unknown != nil:
			failed = unknown
		case present:
			failed = store(ctx, a, filename, f.RenditionFile, image, f.Made.File)
			err = errors.Join(err, failed)
		}
		if failed == nil {
			good++
		}
		m.Observer.Rendered(a, f.Rendition, resultOf(failed), took)
	}
	return good, err
}

// RenditionResult is the outcome of making a rendition.
type RenditionResult string

// The outcomes.
const (
	RenditionMade   RenditionResult = "made"
	RenditionNone   RenditionResult = "none" // of an image that cannot be rendered
	RenditionFailed RenditionResult = "failed"
)

// resultOf returns the outcome for the error of making or storing a rendition.
func resultOf(err error) RenditionResult {
	switch {
	case err == nil:
		return RenditionMade
	case IsUnrenderable(err):
		return RenditionNone
	default:
		return RenditionFailed
	}
}

// IsUnrenderable reports whether err, of [Maker.MakeRendition], is about the image itself. Time
// that ran out is not, as it depends on the machine.
func IsUnrenderable(err error) bool {
	if errors.Is(err, render.ErrTime) {
		return false
	}
	var (
		content *imaging.ContentError
		large   *imaging.TooLargeError
	)
	return errors.Is(err, render.ErrNone) || errors.Is(err, render.ErrPanic) ||
		errors.As(err, &content) || errors.As(err, &large)
}

// unrenderableTime is the pause before an image that cannot be rendered is tried again.
const unrenderableTime = 5 * time.Minute

// slowPauses are the pauses before a rendition that took too long is tried again. They grow with
// each attempt.
var slowPauses = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}

// attempt is what is known of making a rendition.
type attempt struct {
	long  bool  // its image is a long animation
	slow  int   // how often it took too long
	err   error // is returned again until then
	until time.Time
}

// SlowError means that making a rendition took too long. It wraps [render.ErrBusy] and
// [render.ErrTime].
type SlowError struct {
	// RetryAfter is the time until the next attempt.
	RetryAfter time.Duration
}

// Error returns the time until the next attempt, for the log.
func (e *SlowError) Error() string {
	return fmt.Sprintf("making the rendition took too long, it is tried again in %v", e.RetryAfter)
}

// Unwrap returns the errors that it wraps.
func (e *SlowError) Unwrap() []error { return []error{render.ErrBusy, render.ErrTime} }

// failed returns the error of an earlier attempt whose pause has not ended, or nil.
func (a *attempt) failed(now time.Time) error {
	switch {
	case !now.Before(a.until):
		return nil
	case errors.Is(a.err, render.ErrTime):
		return &SlowError{a.until.Sub(now)}
	default:
		return a.err
	}
}

// end records the result of an attempt, and returns its error.
func (a *attempt) end(err error, now time.Time) error {
	switch {
	case errors.Is(err, render.ErrTime):
		a.err, a.until = err, now.Add(slowPauses[min(a.slow, len(slowPauses)-1)])
		a.slow++
		return fmt.Errorf("%w: %w", a.failed(now), err)
	case IsUnrenderable(err):
		a.err, a.until = err, now.Add(unrenderableTime)
	}
	return err
}

// RenewRenditions makes the missing renditions of a stored image: the eager ones, or all of them.
// It returns the number of files made, and also those made before an error. It waits for deletions
// and replacements of the name in this process.
//
// The error wraps [render.ErrNone] if a rendition cannot be made. It is fs.ErrNotExist if the image
// does not exist any more, and wraps [render.ErrBusy] if the encoding queue is full or slow.
// Otherwise it is that of an image that fails the checks, of the storage, or of ctx.
func (m *Maker) RenewRenditions(ctx context.Context, alias *item.Alias, filename string, all bool) (made int, err error) {
	unlock, err := alias.Share(ctx, filename)
	if err != nil {
		return 0, err
	}
	defer unlock()
	missing, err := MissingRenditions(ctx, alias, filename, all)
	if err != nil || len(missing) == 0 {
		return 0, err
	}
	outputs := make([]render.Output, len(missing))
	for i, f := range missing {
		outputs[i] = f.Output()
	}
	start := m.Now()
	image, results, err := m.makeOf(ctx, alias, alias.Key(filename), m.Images, outputs...)
	if err != nil {
		return 0, err
	}
	files := make([]MadeRendition, len(missing))
	for i, f := range missing {
		files[i] = MadeRendition{f, results[i]}
		err = errors.Join(err, results[i].Err)
	}
	made, failed := m.StoreRenditions(ctx, alias, filename, image, files, m.Now().Sub(start))
	return made, errors.Join(err, failed)
}

// MissingRenditions returns the files that [Maker.RenewRenditions] would make.
func MissingRenditions(ctx context.Context, a *item.Alias, filename string, all bool) ([]item.RenditionFile, error) {
	files := a.RenditionFiles(filename, !all)
	if len(files) == 0 {
		return nil, nil
	}
	image, err := a.Storage.Stat(ctx, a.Key(filename))
	if err != nil {
		return nil, err
	}
	stored, err := a.StoredRenditions(ctx, filename)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(files, func(f item.RenditionFile) bool {
		return slices.Contains(stored, a.RenditionKey(filename, f, image))
	}), nil
}

// OutdatedRenditions yields the renditions of an alias that are older than before and that no
// address leads to any more, up to the first error of the storage: those of earlier settings, of
// replaced images and of images that do not exist.
func OutdatedRenditions(ctx context.Context, a *item.Alias, before time.Time) iter.Seq2[storagedrivers.Info, error] {
	return func(yield func(storagedrivers.Info, error) bool) {
		if !a.HasRenditionFolder() {
			return
		}
		var known string // the last image; a listing names its renditions one after the other
		var current []string
		for info, err := range a.Storage.All(ctx, a.RenditionRoot()+"/") {
			if err != nil {
				yield(info, err)
				return
			}
			filename, ok := a.ImageOfRendition(info.Key)
			if !ok || !info.ModTime.Before(before) {
				continue
			}
			if known != filename {
				if current, err = currentRenditions(ctx, a, filename); err != nil {
					yield(info, err)
					return
				}
				known = filename
			}
			if !slices.Contains(current, info.Key) && !yield(info, nil) {
				return
			}
		}
	}
}

// currentRenditions returns the keys of the renditions that an image may have now.
func currentRenditions(ctx context.Context, a *item.Alias, filename string) ([]string, error) {
	image, err := item.Stat(ctx, a.Storage, a.Key(filename))
	if err != nil || image.Key == "" {
		return nil, err
	}
	return append(a.RenditionKeys(filename, image), a.ThumbnailKeys(filename, image)...), nil
}
