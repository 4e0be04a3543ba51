package storagedrivers

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/sync/semaphore"

	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/locks"
)

// Options of a [Storage]; the zero value is usable.
type Options struct {
	// Timeout bounds every operation that transfers neither objects nor lists of them: stat,
	// delete, check, and opening up to the first byte. 0 is 30 s.
	Timeout time.Duration
	// Location of the objects, as returned by [Config]. Zero: one that no storage of
	// another name has.
	Location Location
	// Description of the driver, for [Storage.Explain].
	Description Description
	// Close is called instead of the driver's Close after the last reference is released, for
	// storages that share a driver.
	Close func() error
	// Observe is called after every operation with its name as in [OpError], its duration and its
	// error.
	Observe func(op string, took time.Duration, err error)
	// SpoolDir is the folder for objects beyond 1 MiB, if the driver is not a [Stager], and for
	// smaller ones if there are many. Empty: the system's folder for temporary files.
	SpoolDir string
}

// Storage stores and reads objects; see [New].
//
// Its errors are *[OpError]. Operations that are running when Close is called are completed: the
// driver stays open until the last staged or opened object is closed.
type Storage struct {
	name       string
	driver     Driver
	opts       Options
	references *locks.References
	circuit    Breaker
	now        func() time.Time
	pause      time.Duration // before the first repetition; it doubles
	headStarts *semaphore.Weighted
	growths    growths
}

const (
	attempts   = 3
	firstPause = 100 * time.Millisecond
)

// New returns a storage on driver.
func New(name string, driver Driver, opts Options) *Storage {
	if opts.Timeout <= 0 {
		opts.Timeout = network.DefaultTimeout
	}
	opts.Location = opts.Location.Or(name)
	if opts.Close == nil {
		opts.Close = driver.Close
	}
	return &Storage{
		name: name, driver: driver, opts: opts, references: locks.NewReferences(opts.Close),
		now:   time.Now, //nolint:forbidigo // the clock's one default
		pause: firstPause, headStarts: semaphore.NewWeighted(headStarts),
	}
}

// Name returns the storage's name in the configuration.
func (s *Storage) Name() string { return s.name }

// Location returns the location of the objects of the storage.
func (s *Storage) Location() Location { return s.opts.Location }

// Features returns the guarantees of the storage.
func (s *Storage) Features() Features { return s.driver.Features() }

// Close ends the storage for new operations. The driver is closed when the last running one ends.
func (s *Storage) Close() error { return s.references.Close() }

// Stage returns a new object without a name. The caller must Close it. While the circuit is open it
// returns ErrUnavailable, so that no data is received in vain.
func (s *Storage) Stage(ctx context.Context) (Staged, error) {
	const op = "stage"
	if !s.references.Acquire() {
		return nil, s.wrap(op, "", ErrClosed)
	}
	if s.circuit.resting(s.now()) {
		_, o := s.begin(ctx, op, "")
		return nil, errors.Join(o.end(errResting), s.references.Release())
	}
	stager, ok := s.driver.(Stager)
	if !ok {
		return &staged{storage: s, inner: &spool{dir: s.opts.SpoolDir}}, nil
	}
	ctx, o := s.begin(ctx, op, "")
	inner, err := stager.Stage(ctx)
	if err = o.end(err); err != nil {
		_ = s.references.Release() // the first error counts
		return nil, err
	}
	return &staged{storage: s, inner: inner}, nil
}

// Put stores all of r, which is at its start, under key. See [Driver.Put].
func (s *Storage) Put(ctx context.Context, key string, r io.ReadSeeker, opts PutOptions) (Info, error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return Info{}, s.wrap("put", key, err)
	}
	opts.fill(key)
	var info Info
	err = s.do(s.withProgress(ctx), "put", key, func(ctx context.Context) error {
		note(ctx, attribute.Int64("media.size", size))
		var err error
		info, err = s.send(ctx, key, r, opts)
		if err == nil && info.Size != size {
			err = ErrSizeMismatch
			if opts.Mode == CreateOnly {
				err = errors.Join(err, s.driver.Delete(ctx, key, DeleteOptions{}))
			}
		}
		return err
	})
	return info, err
}

// send stores r by the driver.
func (s *Storage) send(ctx context.Context, key string, r io.ReadSeeker, opts PutOptions) (Info, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return Info{}, err
	}
	return s.driver.Put(ctx, key, watched(ctx, r), opts)
}

// Open returns the bytes of rng and the Info of the whole object. The caller must Close the reader.
func (s *Storage) Open(ctx context.Context, key string, rng Range) (io.ReadCloser, Info, error) {
	if !s.references.Acquire() {
		return nil, Info{}, s.wrap("open", key, ErrClosed)
	}
	body, info, err := s.open(ctx, key, rng)
	if err != nil {
		_ = s.references.Release() // the first error counts
		return nil, Info{}, err
	}
	body.done = append(body.done, s.references.Release)
	return body, info, nil
}

// open is Open without acquiring a reference; the caller holds one.
func (s *Storage) open(ctx context.Context, key string, rng Range) (*openBody, Info, error) {
	var (
		body   io.ReadCloser
		info   Info
		cancel context.CancelCauseFunc = func(error) {}
		inTime                         = func() bool { return true }
	)
	if !s.Features().Local {
		// The time-out bounds opening the reader, not reading: it must not outlive open.
		ctx, cancel = context.WithCancelCause(ctx)
		timer := time.AfterFunc(s.opts.Timeout, func() { cancel(ErrUnavailable) })
		defer timer.Stop()
		inTime = timer.Stop
	}
	err := s.run(ctx, "open", key, func(ctx context.Context) error {
		if rng.Offset < 0 || rng.Length < 0 {
			return ErrInvalidRange
		}
		var err error
		if body, info, err = s.driver.Open(ctx, key, rng); err != nil {
			return err
		}
		note(ctx, attribute.Int64("media.size", info.Size))
		if !inTime() {
			return errors.Join(ErrUnavailable, body.Close())
		}
		return nil
	})
	if err != nil {
		cancel(nil)
		return nil, Info{}, err
	}
	done := func() error {
		cancel(nil)
		return nil
	}
	return &openBody{ReadCloser: body, done: []func() error{done}}, info, nil
}

// Stat returns the Info of an object.
func (s *Storage) Stat(ctx context.Context, key string) (Info, error) {
	var info Info
	err := s.bounded(ctx, "stat", key, func(ctx context.Context) error {
		var err error
		if info, err = s.driver.Stat(ctx, key); err == nil {
			note(ctx, attribute.Int64("media.size", info.Size))
		}
		return err
	})
	return info, err
}

// Delete removes an object. A missing one is no error.
func (s *Storage) Delete(ctx context.Context, key string) error {
	return s.bounded(ctx, "delete", key, func(ctx context.Context) error { return s.deleteMatching(ctx, key, "") })
}

// deleteMatching removes an object with an ETag; empty is any object or none. Another object is
// ErrChanged, and a missing one fs.ErrNotExist.
func (s *Storage) deleteMatching(ctx context.Context, key, etag string) error {
	err := s.driver.Delete(ctx, key, DeleteOptions{IfMatch: etag})
	switch {
	case etag == "" && errors.Is(err, fs.ErrNotExist):
		return nil
	case etag == "" || !errors.Is(err, errors.ErrUnsupported):
		return err
	}
	info, err := s.driver.Stat(WithoutCache(ctx), key)
	if err == nil && info.ETag != etag {
		err = ErrChanged
	}
	if err == nil {
		err = s.driver.Delete(ctx, key, DeleteOptions{})
	}
	return err
}

// List returns one page of objects, and of folders if the listing is shallow.
func (s *Storage) List(ctx context.Context, opts ListOptions) (Page, error) {
	var page Page
	err := s.do(ctx, "list", "", func(ctx context.Context) error {
		if !validPrefix(opts.Prefix) {
			return ctx.Err() // no driver must find out what "../" lists
		}
		var err error
		if page, err = s.driver.List(ctx, opts); err == nil {
			note(ctx, attribute.Int("media.files", len(page.Objects)))
		}
		return err
	})
	return page, err
}

// All returns every object whose key begins with prefix, at any depth, in the byte order of the
// keys. It ends at the first error.
func (s *Storage) All(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		opts := ListOptions{Prefix: prefix}
		for {
			page, err := s.List(ctx, opts)
			if err != nil {
				yield(Info{}, err)
				return
			}
			for _, info := range page.Objects {
				if !yield(info, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			opts.Cursor = page.Next
		}
	}
}

// CanPresign reports whether the backend can serve objects itself, see [Storage.Presign].
func (s *Storage) CanPresign() bool {
	_, ok := s.driver.(Presigner)
	return ok
}

// Presign returns an address at which the backend itself serves the object for a limited time; see
// [Presigner]. If it cannot, the error matches [errors.ErrUnsupported].
func (s *Storage) Presign(ctx context.Context, key string, opts PresignOptions) (string, error) {
	var address string
	err := s.bounded(ctx, "presign", key, func(ctx context.Context) error {
		signer, ok := s.driver.(Presigner)
		if !ok {
			return errors.ErrUnsupported
		}
		var err error
		address, err = signer.Presign(ctx, key, opts)
		return err
	})
	return address, err
}

// Check connects, authenticates and finds the root. It is tried even while the circuit is open.
func (s *Storage) Check(ctx context.Context) error {
	return s.bounded(ctx, "check", "", s.driver.Check)
}

// staged is the Staged of [Storage.Stage]: that of the driver or the spool, with the checks of
// every storage. It keeps the storage open until it is closed.
type staged struct {
	storage *Storage
	inner   Staged
	size    int64
	early   *headStart // nil if the object has none
}

func (st *staged) Write(p []byte) (int, error) {
	n, err := st.inner.Write(p)
	st.size += int64(n)
	if st.early != nil && err == nil {
		st.early.wrote(st.inner.(*spool).file, st.size) //nolint:forcetypeassert // of StageFor
	}
	return n, st.storage.wrap("stage", "", err)
}

// Read must return io.EOF unwrapped.
func (st *staged) Read(p []byte) (int, error) { return st.inner.Read(p) }

func (st *staged) Seek(offset int64, whence int) (int64, error) {
	return st.inner.Seek(offset, whence)
}

func (st *staged) Close() error {
	st.early.close()
	err := st.inner.Close()
	if closeErr := st.storage.references.Release(); err == nil {
		err = closeErr
	}
	return st.storage.wrap("stage", "", err)
}

// Sweep looks for leftovers of aborted uploads in the backend, and removes them unless opts select
// a dry run; see [Sweeper]. The result is sorted by name, and contains the leftovers removed before
// an error. Only ctx bounds its duration. If the backend keeps no leftovers, or removes them
// itself, the error is [errors.ErrUnsupported].
func (s *Storage) Sweep(ctx context.Context, opts SweepOptions) ([]Leftover, error) {
	const op = "sweep"
	sweeper, ok := s.driver.(Sweeper)
	if !ok {
		return nil, s.wrap(op, "", errors.ErrUnsupported)
	}
	if opts.OlderThan <= 0 {
		opts.OlderThan = leftoverAge
	}
	var swept []Leftover
	err := s.do(ctx, op, "", func(ctx context.Context) error {
		found, err := sweeper.Sweep(ctx, opts)
		if opts.DryRun {
			swept = nil // it is all found again
		}
		swept = append(swept, found...)
		return err
	})
	slices.SortFunc(swept, func(a, b Leftover) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.ModTime.Compare(b.ModTime))
	})
	return swept, err
}

// Space returns the space of the backend; see [SpaceReporter]. If the backend does not report it,
// the error is [errors.ErrUnsupported].
func (s *Storage) Space(ctx context.Context) (Space, error) {
	const op = "space"
	reporter, ok := s.driver.(SpaceReporter)
	if !ok {
		return Space{}, s.wrap(op, "", errors.ErrUnsupported)
	}
	var space Space
	err := s.bounded(ctx, op, "", func(ctx context.Context) error {
		var err error
		space, err = reporter.Space(ctx)
		return err
	})
	if err != nil {
		return Space{}, err
	}
	return space, nil
}
