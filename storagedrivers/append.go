package storagedrivers

import (
	"context"
	"errors"
	"io"

	"go.opentelemetry.io/otel/attribute"
)

// An Appender is a [Driver] whose objects can grow in place, for uploads that come in parts. A
// growing object is visible, with the Info of the moment. Its entity tag may be that of an earlier
// one under its key. Its readers may also return bytes that were appended after they were opened.
type Appender interface {
	// Append opens the object under key for writing at its end, and makes the bytes durable that it
	// has. If it is missing and size is 0, Append creates it; if size is not 0, the error is
	// fs.ErrNotExist. ctx does not govern the writer.
	//
	// size is the size that the caller expects. If the object has another one, the error is
	// ErrChanged. If another caller has adopted it, or flushes it for a second, that is [ErrInUse].
	// An object that was committed is fs.ErrExist. The error is [errors.ErrUnsupported] if the
	// backend or the system lacks what is needed.
	Append(ctx context.Context, key string, size int64) (Appended, error)
}

// Appended is a writer of a growing object. It is for one goroutine.
//
// Writers need not know of each other. The errors of Append are also those of every call: if another
// writer has appended, the call fails with ErrChanged and does nothing. So of several writers at one
// size, in all processes that use the backend, one succeeds.
type Appended interface {
	// Write appends. After an error the bytes that it has counted stay.
	io.Writer

	// Flush makes the written bytes durable. If the backend reports that it has lost bytes, the
	// object is cut to its last size known as durable.
	Flush(ctx context.Context) error

	// Adopt ends the writer, whose bytes are flushed, and returns the object as staged data that
	// cannot be written. Its Commit moves no bytes. The object stays under its own key until the
	// caller deletes it, whatever happens to the staged data. Nothing is appended to it before the
	// staged data is closed.
	Adopt(ctx context.Context) (Staged, error)

	// Close ends the writer. All written bytes stay, durable or not. It must be called once, unless
	// Adopt has ended the writer.
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
	const op = "append"
	if !s.references.Acquire() {
		return nil, s.wrap(op, key, ErrClosed)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, ErrUnavailable)
	defer cancel()
	a := &appended{storage: s, key: key, size: size}
	err := s.run(ctx, op, key, func(ctx context.Context) (err error) {
		driver, ok := s.driver.(Appender)
		if !ok {
			return errors.ErrUnsupported
		}
		a.inner, err = driver.Append(ctx, key, size)
		return err
	})
	if err != nil {
		_ = s.references.Release() // the first error counts
		return nil, err
	}
	return a, nil
}

// appended is the Appended of [Storage.Append]. It keeps the storage open until it, or the staged
// data that it has become, is closed.
type appended struct {
	storage *Storage
	inner   Appended
	key     string
	size    int64
}

func (a *appended) Write(p []byte) (int, error) {
	n, err := a.inner.Write(p)
	a.size += int64(n)
	return n, a.storage.wrap("append", a.key, err)
}

func (a *appended) Flush(ctx context.Context) error { return a.attempt(ctx, "flush", a.inner.Flush) }

func (a *appended) Adopt(ctx context.Context) (Staged, error) {
	st := &staged{storage: a.storage, size: a.size}
	err := a.attempt(ctx, "adopt", func(ctx context.Context) (err error) {
		st.inner, err = a.inner.Adopt(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return st, nil
}

func (a *appended) attempt(ctx context.Context, op string, f func(context.Context) error) error {
	ctx, o := a.storage.begin(ctx, op, a.key)
	note(ctx, attribute.Int64("media.size", a.size))
	return o.end(a.storage.attempt(ctx, op, f))
}

func (a *appended) Close() error {
	err := errors.Join(a.inner.Close(), a.storage.references.Release())
	return a.storage.wrap("append", a.key, err)
}
