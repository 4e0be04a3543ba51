package storagedrivers

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
)

// staged is the Staged of [Storage.Stage]: that of the driver or the spool, with the checks of
// every storage. It keeps the storage open until it is closed.
type staged struct {
	storage *Storage
	inner   Staged
	size    int64
	key     string // committed under
}

func (st *staged) Write(p []byte) (int, error) {
	n, err := st.inner.Write(p)
	st.size += int64(n)
	return n, st.storage.wrap("stage", "", err)
}

// Read must return io.EOF unwrapped.
func (st *staged) Read(p []byte) (int, error) { return st.inner.Read(p) }

func (st *staged) Seek(offset int64, whence int) (int64, error) {
	return st.inner.Seek(offset, whence)
}

// Commit is retried with the same key, like Put: without a reply the caller must not try the next
// name.
func (st *staged) Commit(ctx context.Context, key string, opts PutOptions) (Info, error) {
	const op = "commit"
	s := st.storage
	if err := ValidKey(key); err != nil {
		return Info{}, s.wrap(op, key, err)
	}
	opts.fill(key)
	ctx, o := s.begin(ctx, op, key)
	note(ctx, attribute.Int64("media.size", st.size))
	ctx = s.withProgress(ctx)
	var info Info
	err := s.attempt(ctx, op, func(ctx context.Context) error {
		var err error
		info, err = st.inner.Commit(ctx, key, opts)
		return err
	})
	if err == nil {
		st.key = key
		if info.Size != st.size {
			err = errors.Join(ErrSizeMismatch, s.repeat(ctx, st.inner.Rollback))
		}
	}
	return info, o.end(err)
}

// Rollback is tried even while the circuit is open, because the object would stay otherwise.
func (st *staged) Rollback(ctx context.Context) error {
	ctx, o := st.storage.begin(ctx, "revert", st.key)
	return o.end(st.storage.repeat(ctx, st.inner.Rollback))
}

func (st *staged) Close() error {
	err := st.inner.Close()
	if closeErr := st.storage.references.Release(); err == nil {
		err = closeErr
	}
	return st.storage.wrap("stage", st.key, err)
}
