package storagedrivers

import (
	"context"
	"errors"
	"io"

	"go.opentelemetry.io/otel/attribute"
)

// An Appender is a [Driver] whose objects can grow in place, for uploads that come in parts. A
// growing object is visible, with the Info of the moment. Its readers may also return bytes that
// were appended after they were opened.
//
// A growing object has one writer at a time, in all processes that use the backend.
type Appender interface {
	// Append opens the object under key for writing at its end. If it is missing and size is 0,
	// Append creates it; if size is not 0, the error is fs.ErrNotExist.
	//
	// size is the size that the caller expects. If the object has another one, the error is
	// ErrChanged and an earlier writer goes on undisturbed. Otherwise Append ends an earlier
	// writer, whose later calls fail with [ErrSuperseded]. If that does not end within about a
	// second, or if the object is adopted now, the error is [ErrInUse]. An object that was adopted
	// and committed, and not yet deleted, is fs.ErrExist.
	//
	// The error is [errors.ErrUnsupported] if the backend or the system lacks what is needed. ctx
	// does not govern the writer.
	Append(ctx context.Context, key string, size int64) (Appended, error)

	// Flush makes the bytes of an object durable, also while it has a writer, and returns an Info
	// whose Size counts only durable bytes. A missing key is fs.ErrNotExist.
	Flush(ctx context.Context, key string) (Info, error)

	// Adopt returns a growing object as staged data that cannot be written. Its Commit moves no
	// bytes. The object under key stays until the caller deletes it, whatever happens to the staged
	// data. An earlier writer is ended, as by Append, and there is no other one before Close. size
	// and errors are as in Append; a missing key is always fs.ErrNotExist.
	Adopt(ctx context.Context, key string, size int64) (Staged, error)
}

// Appended is the writer of a growing object. It is for one goroutine.
type Appended interface {
	// Write appends. After an error the bytes that it has counted stay.
	io.Writer

	// Flush makes the written bytes durable and returns the size of the object. If the backend
	// reports that it has lost bytes, the object is cut to its last size known as durable and the
	// writer ends. After a deletion of the object the error is fs.ErrNotExist.
	Flush(ctx context.Context) (size int64, err error)

	// Close ends the writer. All written bytes stay, durable or not. It must be called once, in any
	// case.
	Close() error
}

// CanAppend reports whether the driver is an [Appender].
func (s *Storage) CanAppend() bool {
	_, ok := s.driver.(Appender)
	return ok
}

// Append opens the object under key for writing at its end, see [Appender]. The caller must Close
// it. If the driver is not an Appender, the error matches [errors.ErrUnsupported].
func (s *Storage) Append(ctx context.Context, key string, size int64) (Appended, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, ErrUnavailable)
	defer cancel()
	var inner Appended
	err := s.claim(ctx, "append", key, func(ctx context.Context, d Appender) (err error) {
		inner, err = d.Append(ctx, key, size)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &appended{storage: s, inner: inner, key: key}, nil
}

// Adopt returns a growing object as staged data, see [Appender]. The caller must Close it.
func (s *Storage) Adopt(ctx context.Context, key string, size int64) (Staged, error) {
	var inner Staged
	err := s.claim(ctx, "adopt", key, func(ctx context.Context, d Appender) (err error) {
		note(ctx, attribute.Int64("media.size", size))
		inner, err = d.Adopt(ctx, key, size)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &staged{storage: s, inner: inner, size: size}, nil
}

// claim calls f once, because a retry would only wait again for an object in use. If f succeeds,
// the storage has a reference more.
func (s *Storage) claim(ctx context.Context, op, key string, f func(context.Context, Appender) error) error {
	if err := ValidKey(key); err != nil {
		return s.wrap(op, key, err)
	}
	if !s.references.Acquire() {
		return s.wrap(op, key, ErrClosed)
	}
	ctx, o := s.begin(ctx, op, key)
	err := s.circuit.enter(s.now())
	if err == nil {
		err = blamed(ctx, s.appender(ctx, f))
		s.circuit.leave(ctx, s.now(), err)
	}
	if err != nil {
		_ = s.references.Release() // the first error counts
	}
	return o.end(err)
}

// appender calls f with the driver, if that is an Appender.
func (s *Storage) appender(ctx context.Context, f func(context.Context, Appender) error) error {
	driver, ok := s.driver.(Appender)
	if !ok {
		return errors.ErrUnsupported
	}
	return f(ctx, driver)
}

// FlushAppended makes the bytes of an object durable, see [Appender]. Only ctx bounds its duration.
func (s *Storage) FlushAppended(ctx context.Context, key string) (Info, error) {
	var info Info
	err := s.do(ctx, "flush", key, func(ctx context.Context) error {
		return s.appender(ctx, func(ctx context.Context, d Appender) (err error) {
			if info, err = d.Flush(ctx, key); err == nil {
				note(ctx, attribute.Int64("media.size", info.Size))
			}
			return err
		})
	})
	return info, err
}

// appended is the Appended of [Storage.Append]. It keeps the storage open until it is closed.
type appended struct {
	storage *Storage
	inner   Appended
	key     string
}

func (a *appended) Write(p []byte) (int, error) {
	n, err := a.inner.Write(p)
	return n, a.storage.wrap("append", a.key, err)
}

func (a *appended) Flush(ctx context.Context) (int64, error) {
	const op = "flush"
	ctx, o := a.storage.begin(ctx, op, a.key)
	var size int64
	err := a.storage.attempt(ctx, op, func(ctx context.Context) (err error) {
		size, err = a.inner.Flush(ctx)
		return err
	})
	if err == nil {
		note(ctx, attribute.Int64("media.size", size))
	}
	return size, o.end(err)
}

func (a *appended) Close() error {
	err := errors.Join(a.inner.Close(), a.storage.references.Release())
	return a.storage.wrap("append", a.key, err)
}
