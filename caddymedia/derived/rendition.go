package derived

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// RenditionRequest asks for a rendition of a stored picture.
type RenditionRequest struct {
	Alias     *aliases.Alias
	Rendition *aliases.Rendition
	// Filename of the picture, relative to the alias.
	Filename string
	// WebP prefers WebP where the alias negotiates.
	WebP bool
	// Owner shares the bounded work, such as the address of the client.
	Owner string
	// Hold, if set, keeps the uploader and its storages open until release is called. It is called for
	// work that may go on without its callers.
	Hold func() (release func(), err error)
}

// OpenRendition opens a rendition by open, a method of the storage of the alias. The error is
// fs.ErrNotExist if there is no such picture, [render.ErrNone] if its format is not decoded, and
// [ErrNotMade] if the rendition has to be made by [Maker.MakeRendition]. An SVG is its own
// rendition.
func (r *RenditionRequest) OpenRendition(
	ctx context.Context, open func(context.Context, string) (*storagedrivers.Object, error),
) (*storagedrivers.Object, error) {
	if naming.Extension(r.Filename) == "svg" {
		return open(ctx, r.Alias.Key(r.Filename))
	}
	picture, err := r.Alias.Storage.Stat(ctx, r.Alias.Key(r.Filename))
	if err != nil {
		return nil, err
	}
	if !r.Alias.IsRendered(r.Filename) {
		return nil, fmt.Errorf("%w: pictures of this format are not decoded", render.ErrNone)
	}
	object, err := open(ctx, r.Alias.RenditionKey(r.Filename, r.file(), picture))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotMade
	}
	return object, err
}

// ErrNotMade means that a rendition is not stored yet.
var ErrNotMade = errors.New("the rendition is not made yet")

func (r *RenditionRequest) file() aliases.RenditionFile {
	return r.Rendition.FileOf(r.Filename, r.WebP)
}

// makingTime bounds the waiting for the making of a rendition, and the making.
const makingTime = 10 * time.Minute

// MakeRendition makes a rendition and stores it. Concurrent calls for one rendition make it once. The
// work goes on without its callers: one that leaves, or that has waited for [render.Limits.Wait].
//
// The error is fs.ErrNotExist if there is no such picture. If the picture cannot be rendered,
// [IsUnrenderable] reports it; it is not tried again for some minutes. The error wraps
// [render.ErrBusy] if the queue is full or the caller has waited too long. It is a [*SlowError] if the
// work takes too long, which is not tried again for a while. Otherwise it is that of the storage, or of
// ctx.
func (m *Maker) MakeRendition(ctx context.Context, r *RenditionRequest) error {
	made := m.making.DoChan(r.name(), func() (_ any, err error) {
		defer func() {
			if value := recover(); value != nil { // outside of the request's goroutine it ends the process
				err = fmt.Errorf("%w: %v\n%s", render.ErrPanic, value, debug.Stack())
			}
		}()
		if r.Hold != nil {
			release, err := r.Hold()
			if err != nil {
				return nil, err
			}
			defer release()
		}
		err = m.makeRendition(context.WithoutCancel(ctx), r)
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
		return fmt.Errorf("%w: the rendition is still being made", render.ErrBusy)
	}
}

// name identifies the rendition among those being made.
func (r *RenditionRequest) name() string {
	folder := r.Alias.RenditionLocation().Join(r.Alias.RenditionFolder(r.Filename)).String()
	return folder + "/" + r.Rendition.Name + "." + r.file().Fingerprint()
}

// makeRendition is MakeRendition for one caller without a limit of waiting. A failure is returned again
// for a while.
func (m *Maker) makeRendition(ctx context.Context, r *RenditionRequest) error {
	picture, err := r.Alias.Storage.Stat(ctx, r.Alias.Key(r.Filename))
	if err != nil {
		return err
	}
	name := r.Alias.Storage.Location().Join(r.Alias.RenditionKey(r.Filename, r.file(), picture)).String()
	known, _ := attempts().Get(name)
	if err := known.failed(m.Now()); err != nil {
		return err
	}
	if !known.long {
		err = m.admit(ctx, r, picture, false)
		known.long = errors.Is(err, render.ErrLong)
	}
	if known.long {
		attempts().Add(name, known)
		err = m.admit(ctx, r, picture, true)
	}
	if err = known.end(err, m.Now()); known.failed(m.Now()) != nil {
		attempts().Add(name, known)
	}
	return err
}

// admit makes and stores a rendition when it may. long is set for long animations.
func (m *Maker) admit(ctx context.Context, r *RenditionRequest, picture storagedrivers.Info, long bool) error {
	waiting, cancel := context.WithTimeout(ctx, makingTime)
	defer cancel()
	maker, leave, err := m.Images.Admit(waiting, r.Owner, long)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel = context.WithTimeout(ctx, makingTime)
	defer cancel()
	lock := func() (func(), error) { return r.Alias.Share(ctx, r.Filename) }
	if picture.ETag == "" {
		// Only size and time identify the picture, perhaps in whole seconds. So no request of this
		// process may replace it while it is rendered.
		unlock, err := lock()
		if err != nil {
			return err
		}
		defer unlock()
		lock = func() (func(), error) { return func() {}, nil } // it is held
	}
	return m.render(ctx, r, picture, maker, lock)
}

// render makes and stores a rendition, unless another call has just done so. lock is called before it
// is stored, so that no request of this process replaces or deletes the picture meanwhile.
func (m *Maker) render(
	ctx context.Context, r *RenditionRequest, picture storagedrivers.Info, maker *render.Maker,
	lock func() (unlock func(), err error),
) error {
	key := r.Alias.RenditionKey(r.Filename, r.file(), picture)
	if stored, err := aliases.Stat(ctx, r.Alias.Storage, key); stored.Key != "" || err != nil {
		return err
	}
	start := m.Now()
	err := aliases.Traced(ctx, "media.rendition", r.Alias.Attributes, func(ctx context.Context) error {
		picture, made, err := m.makeOf(ctx, r.Alias, r.Filename, maker, r.file().Output())
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
		if present, err := IsPresent(ctx, r.Alias, picture); !present || err != nil {
			return err
		}
		return StoreRendition(ctx, r.Alias, r.Filename, r.file(), picture, made[0].File)
	})
	if errors.Is(err, render.ErrLong) {
		return err
	}
	m.Observer.Rendered(r.Alias, r.Rendition, ResultOf(err), m.Now().Sub(start))
	return err
}

// isPresent reports whether a picture is still of this generation. The caller holds its name. The
// error is fs.ErrNotExist if the picture is gone.
func IsPresent(ctx context.Context, a *aliases.Alias, picture storagedrivers.Info) (bool, error) {
	now, err := a.Storage.Stat(ctx, picture.Key)
	return err == nil && now.Same(picture), err
}

// storeRendition stores a file of a rendition for a generation of the picture.
func StoreRendition(
	ctx context.Context, a *aliases.Alias, filename string, f aliases.RenditionFile, picture storagedrivers.Info, file []byte,
) error {
	_, err := a.Storage.Put(ctx, a.RenditionKey(filename, f, picture), bytes.NewReader(file), a.RenditionOptions())
	if errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	}
	return err
}

// RenditionResult is the outcome of making a rendition.
type RenditionResult string

// The outcomes.
const (
	RenditionMade   RenditionResult = "made"
	RenditionNone   RenditionResult = "none" // of a picture that cannot be rendered
	RenditionFailed RenditionResult = "failed"
)

func ResultOf(err error) RenditionResult {
	switch {
	case err == nil:
		return RenditionMade
	case IsUnrenderable(err):
		return RenditionNone
	default:
		return RenditionFailed
	}
}

// IsUnrenderable reports whether err, of [Maker.MakeRendition], is about the picture itself. Time
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

const (
	// maxAttempts is the number of renditions whose attempts are remembered, some 500 bytes each.
	maxAttempts = 1000
	// unrenderableTime is the pause before a picture that cannot be rendered is tried again.
	unrenderableTime = 5 * time.Minute
)

// slowPauses are the pauses before a rendition that took too long is tried again. They grow with each
// attempt.
var slowPauses = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}

// attempts remembers the failures of making renditions, by location, settings and generation. Without
// it, every request for one would fetch and decode its picture again.
var attempts = remembered[attempt](maxAttempts)

// attempt is what is known of making a rendition.
type attempt struct {
	long  bool  // its picture is a long animation
	slow  int   // how often it took too long
	err   error // is returned again until then
	until time.Time
}

// SlowError means that making a rendition took too long. It wraps [render.ErrBusy] and [render.ErrTime].
type SlowError struct {
	// RetryAfter is the time until the next attempt.
	RetryAfter time.Duration
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("making the rendition took too long, it is tried again in %v", e.RetryAfter)
}

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

// remembered returns a function that returns a cache of the values used last, made by its first call.
func remembered[V any](size int) func() *lru.Cache[string, V] {
	return sync.OnceValue(func() *lru.Cache[string, V] {
		cache, err := lru.New[string, V](size)
		if err != nil {
			panic(err) // it fails only without a size
		}
		return cache
	})
}

// RenewRenditions makes the missing renditions of a stored picture: the eager ones, or all of them.
// It returns the number of files made, and also those made before an error. It waits for deletions
// and replacements of the name in this process.
//
// The error wraps [render.ErrNone] if a rendition cannot be made. It is fs.ErrNotExist if the picture
// does not exist any more, and wraps [render.ErrBusy] if the encoding queue is full or slow.
// Otherwise it is that of a picture that fails the checks, of the storage, or of ctx.
func (m *Maker) RenewRenditions(ctx context.Context, alias *aliases.Alias, filename string, all bool) (made int, err error) {
	files := alias.RenditionFiles(filename, !all)
	if len(files) == 0 {
		return 0, nil
	}
	unlock, err := alias.Share(ctx, filename)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if files, err = missingRenditions(ctx, alias, filename, files); err != nil || len(files) == 0 {
		return 0, err
	}
	outputs := make([]render.Output, len(files))
	for i, f := range files {
		outputs[i] = f.Output()
	}
	start := m.Now()
	picture, results, err := m.makeOf(ctx, alias, filename, m.Images, outputs...)
	if err != nil {
		return 0, err
	}
	present, err := IsPresent(ctx, alias, picture)
	if err != nil {
		return 0, err
	}
	for i, result := range results {
		failed := result.Err
		if failed == nil && present {
			failed = StoreRendition(ctx, alias, filename, files[i], picture, result.File)
		}
		if failed == nil {
			made++
		}
		err = errors.Join(err, failed)
		m.Observer.Rendered(alias, files[i].Rendition, ResultOf(failed), m.Now().Sub(start))
	}
	return made, err
}

// MissingRenditions returns how many files [Maker.RenewRenditions] would make.
func MissingRenditions(ctx context.Context, a *aliases.Alias, filename string, all bool) (int, error) {
	files := a.RenditionFiles(filename, !all)
	if len(files) == 0 {
		return 0, nil
	}
	missing, err := missingRenditions(ctx, a, filename, files)
	return len(missing), err
}

// missingRenditions returns the files that are not stored for the present generation of the picture.
func missingRenditions(ctx context.Context, a *aliases.Alias, filename string, files []aliases.RenditionFile) ([]aliases.RenditionFile, error) {
	picture, err := a.Storage.Stat(ctx, a.Key(filename))
	if err != nil {
		return nil, err
	}
	stored, err := a.StoredRenditions(ctx, filename)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(files, func(f aliases.RenditionFile) bool {
		return slices.Contains(stored, a.RenditionKey(filename, f, picture))
	}), nil
}

// OutdatedRenditions yields the renditions of an alias that are older than before and that no address
// leads to any more, up to the first error of the storage: those of earlier settings, of replaced
// pictures and of pictures that do not exist.
func OutdatedRenditions(ctx context.Context, a *aliases.Alias, before time.Time) iter.Seq2[storagedrivers.Info, error] {
	return func(yield func(storagedrivers.Info, error) bool) {
		if !a.HasRenditionFolder() {
			return
		}
		var current currentRenditions
		for info, err := range a.Storage.All(ctx, a.RenditionRoot()+"/") {
			if err != nil {
				yield(info, err)
				return
			}
			filename, _, ok := a.ImageOfRendition(info.Key)
			if !ok || !info.ModTime.Before(before) {
				continue
			}
			if err := current.find(ctx, a, filename); err != nil {
				yield(info, err)
				return
			}
			if !slices.Contains(current.keys, info.Key) && !yield(info, nil) {
				return
			}
		}
	}
}

// currentRenditions are the keys of the renditions that a picture may have now.
type currentRenditions struct {
	filename string
	keys     []string
}

// find finds those of a picture. A listing names the renditions of a picture one after the other, so
// only the last picture is remembered.
func (c *currentRenditions) find(ctx context.Context, a *aliases.Alias, filename string) error {
	if c.filename == filename {
		return nil
	}
	picture, err := aliases.Stat(ctx, a.Storage, a.Key(filename))
	if err != nil {
		return err
	}
	c.filename, c.keys = filename, nil
	if picture.Key == "" {
		return nil
	}
	for _, f := range a.RenditionFiles(filename, false) {
		c.keys = append(c.keys, a.RenditionKey(filename, f, picture))
	}
	return nil
}
