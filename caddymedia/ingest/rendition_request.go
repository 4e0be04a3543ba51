package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// RenditionRequest asks for a rendition of a stored picture.
type RenditionRequest struct {
	Alias     *Alias
	Rendition *Rendition
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
// [ErrNotMade] if the rendition has to be made by [Uploader.MakeRendition]. An SVG is its own
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
	object, err := open(ctx, r.Alias.renditionKey(r.Filename, r.file(), picture))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotMade
	}
	return object, err
}

// ErrNotMade means that a rendition is not stored yet.
var ErrNotMade = errors.New("the rendition is not made yet")

func (r *RenditionRequest) file() renditionFile { return r.Rendition.fileOf(r.Filename, r.WebP) }

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
func (u *Uploader) MakeRendition(ctx context.Context, r *RenditionRequest) error {
	made := u.making.DoChan(r.name(), func() (_ any, err error) {
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
		err = u.makeRendition(context.WithoutCancel(ctx), r)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: %w", render.ErrBusy, err)
		}
		return nil, err
	})
	patience := time.NewTimer(u.Pictures.Wait())
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
	folder := r.Alias.RenditionLocation().Join(r.Alias.renditionFolder(r.Filename)).String()
	return folder + "/" + r.Rendition.Name + "." + r.file().fingerprint()
}

// makeRendition is MakeRendition for one caller without a limit of waiting. A failure is returned again
// for a while.
func (u *Uploader) makeRendition(ctx context.Context, r *RenditionRequest) error {
	picture, err := r.Alias.Storage.Stat(ctx, r.Alias.Key(r.Filename))
	if err != nil {
		return err
	}
	name := r.Alias.Storage.Location().Join(r.Alias.renditionKey(r.Filename, r.file(), picture)).String()
	known, _ := attempts().Get(name)
	if err := known.failed(u.Now()); err != nil {
		return err
	}
	if !known.long {
		err = u.admit(ctx, r, picture, false)
		known.long = errors.Is(err, render.ErrLong)
	}
	if known.long {
		attempts().Add(name, known)
		err = u.admit(ctx, r, picture, true)
	}
	if err = known.end(err, u.Now()); known.failed(u.Now()) != nil {
		attempts().Add(name, known)
	}
	return err
}

// admit makes and stores a rendition when it may. long is set for long animations.
func (u *Uploader) admit(ctx context.Context, r *RenditionRequest, picture storagedrivers.Info, long bool) error {
	waiting, cancel := context.WithTimeout(ctx, makingTime)
	defer cancel()
	maker, leave, err := u.Pictures.Admit(waiting, r.Owner, long)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel = context.WithTimeout(ctx, makingTime)
	defer cancel()
	lock := func() (func(), error) { return names.Share(ctx, r.Alias.lockName(r.Filename)) }
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
	return u.render(ctx, r, picture, maker, lock)
}

// render makes and stores a rendition, unless another call has just done so. lock is called before it
// is stored, so that no request of this process replaces or deletes the picture meanwhile.
func (u *Uploader) render(
	ctx context.Context, r *RenditionRequest, picture storagedrivers.Info, maker *render.Maker,
	lock func() (unlock func(), err error),
) error {
	key := r.Alias.renditionKey(r.Filename, r.file(), picture)
	if stored, err := stat(ctx, r.Alias.Storage, key); stored.Key != "" || err != nil {
		return err
	}
	start := u.Now()
	err := traced(ctx, "media.rendition", r.Alias.attributes, func(ctx context.Context) error {
		picture, made, err := u.makeOf(ctx, r.Alias, r.Filename, maker, r.file().output())
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
		if present, err := r.Alias.isPresent(ctx, picture); !present || err != nil {
			return err
		}
		return r.Alias.storeRendition(ctx, r.Filename, r.file(), picture, made[0].File)
	})
	if errors.Is(err, render.ErrLong) {
		return err
	}
	u.Observer.Rendered(r.Alias, r.Rendition, renditionResult(err), u.Now().Sub(start))
	return err
}

// isPresent reports whether a picture is still of this generation. The caller holds its name. The
// error is fs.ErrNotExist if the picture is gone.
func (a *Alias) isPresent(ctx context.Context, picture storagedrivers.Info) (bool, error) {
	now, err := a.Storage.Stat(ctx, picture.Key)
	return err == nil && now.Same(picture), err
}

// storeRendition stores a file of a rendition for a generation of the picture.
func (a *Alias) storeRendition(
	ctx context.Context, filename string, f renditionFile, picture storagedrivers.Info, file []byte,
) error {
	_, err := a.Storage.Put(ctx, a.renditionKey(filename, f, picture), bytes.NewReader(file), a.renditionOptions())
	if errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	}
	return err
}

// makeOf makes outputs of a stored picture. It returns the generation of the picture that they belong
// to.
func (u *Uploader) makeOf(
	ctx context.Context, alias *Alias, filename string, pictures *render.Maker, outputs ...render.Output,
) (picture storagedrivers.Info, made []render.Made, err error) {
	staged, picture, err := fetch(ctx, alias.Storage, alias.Key(filename))
	if err != nil {
		return picture, nil, err
	}
	defer staged.Close()
	info, err := imaging.CheckImage(staged, picture.Size, naming.Extension(filename), alias.Imaging)
	if err != nil {
		return picture, nil, err
	}
	for _, o := range outputs {
		made = append(made, render.Made{Err: pictures.Feasible(info, o)})
	}
	if slices.ContainsFunc(made, func(m render.Made) bool { return m.Err == nil }) {
		made, err = pictures.Make(ctx, staged, info, outputs...)
	}
	return picture, made, err
}

// RenditionResult is the outcome of making a rendition.
type RenditionResult string

// The outcomes.
const (
	RenditionMade   RenditionResult = "made"
	RenditionNone   RenditionResult = "none" // of a picture that cannot be rendered
	RenditionFailed RenditionResult = "failed"
)

func renditionResult(err error) RenditionResult {
	switch {
	case err == nil:
		return RenditionMade
	case IsUnrenderable(err):
		return RenditionNone
	default:
		return RenditionFailed
	}
}

// IsUnrenderable reports whether err, of [Uploader.MakeRendition], is about the picture itself. Time
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
