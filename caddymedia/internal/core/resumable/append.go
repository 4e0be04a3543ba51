package resumable

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

const (
	// fullPiece is the size in bytes from which on any number of pieces may be.
	fullPiece = 16 << 20
	// maxPieces is the largest number of pieces besides those of full size.
	maxPieces = 10_000
	// confirmTime bounds looking for the upload after its request has ended.
	confirmTime = 10 * time.Second
)

// BodyError is an error of the reader of a [Body].
type BodyError struct{ Err error }

// Error returns the text of the reader's error.
func (e *BodyError) Error() string {
	return "receiving the bytes of a resumable upload: " + e.Err.Error()
}

// Unwrap returns the reader's error.
func (e *BodyError) Unwrap() error { return e.Err }

// Body has the bytes that a request adds to an upload.
type Body struct {
	// Reader yields the bytes. Its error is returned, as a *[BodyError], after the bytes before it
	// are stored.
	Reader io.Reader
	// Offset is the offset that the client expects.
	Offset int64
	// Limit is the largest length of an upload of [Unknown] length.
	Limit int64
	// Sum, if set, is the checksum by Hash. Bytes with another one are not stored.
	Sum  []byte
	Hash hash.Hash
	// Interrupt makes Reader fail soon. It is called if another request takes over.
	Interrupt func()
	// Reserve reserves a file for staged bytes.
	Reserve func() (release func(), err error)
}

// read reads from the body. The error is io.EOF at its end, otherwise a *BodyError.
func (a *appending) read(p []byte) (int, error) {
	a.writer.handling.Store(false)
	n, err := a.body.Reader.Read(p)
	a.writer.handling.Store(err == nil)
	a.writer.received.Add(int64(n))
	if err != nil && err != io.EOF {
		err = &BodyError{err}
	}
	return n, err
}

// Append stores the bytes of body behind those of the upload. Of two requests with the same offset
// the later one takes over; the storage decides. The offset of u is the new one, also after an
// error.
//
// The error is ErrOffset if the upload has another offset, ErrTooLarge for bytes beyond its length,
// ErrChecksum, ErrPieces, ErrUnknown if the upload was removed meanwhile, a *BodyError, or that of
// the storage.
func (u *Upload) Append(ctx context.Context, body Body) error {
	if body.Offset != u.offset {
		return ErrOffset
	}
	w := &writer{interrupt: body.Interrupt, ended: make(chan struct{})}
	name := u.location()
	earlier, err := u.store.Active.writing.begin(ctx, name, w)
	if err != nil {
		return err
	}
	defer u.store.Active.writing.end(name, w)
	if earlier || u.Length == Unknown { // the storage notices other bytes, not a length
		if err := u.Reload(ctx); err != nil {
			return err
		}
	}
	if body.Offset != u.offset || u.Outcome != nil {
		return ErrOffset
	}
	if tooMany(u.bytes.Pieces(), u.offset) {
		return ErrPieces
	}
	a := &appending{Upload: u, writer: w, body: body, limit: body.Limit - u.offset}
	if u.Length != Unknown {
		a.limit = u.Length - u.offset
	}
	if a.limit < 0 { // another request has set a length below the bytes
		return ErrTooLarge
	}
	before := u.offset
	err = a.run(ctx)
	if n := u.offset - before; n > 0 && u.store.Received != nil {
		u.store.Received(u.ItemKind(), n, before > 0)
	}
	if gone := u.confirm(ctx); gone != nil {
		return gone
	}
	if _, cut := errors.AsType[*BodyError](err); cut && u.store.Active.writing.hasLost(w) {
		return ErrOffset // the reader's error is that of Interrupt
	}
	return err
}

// tooMany reports whether there are too many pieces for a number of bytes.
func tooMany(pieces int, bytes int64) bool { return int64(pieces) > maxPieces+bytes/fullPiece }

// location identifies the upload in this process, whatever the name of its storage.
func (u *Upload) location() string { return u.storage.Location().Join(dataKey(u.ID, "")).String() }

// confirm looks whether the upload was removed while bytes were stored, and removes them then. The
// error is ErrOffset if the upload was finished, perhaps with other bytes, otherwise ErrUnknown.
func (u *Upload) confirm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
	defer cancel()
	if u.exists(ctx) {
		return nil
	}
	u.removeData(ctx)
	if err := u.reloadOutcome(ctx); err != nil {
		return err
	}
	return ErrOffset
}

// appending is a request that adds bytes.
type appending struct {
	*Upload
	writer *writer
	body   Body
	limit  int64 // of the bytes that are still accepted
}

// run receives the body.
func (a *appending) run(ctx context.Context) error {
	w, err := a.bytes.Append(ctx, storagedrivers.GrowthOptions{Whole: a.body.Sum != nil, Reserve: a.body.Reserve})
	if err != nil {
		return storeError(err)
	}
	err = a.fill(ctx, w)
	if err := w.Close(); err != nil {
		a.store.Log.Warn("closing the bytes of a resumable upload", "error", err)
	}
	if a.bytes.Size() > a.offset {
		a.offset, a.changed = a.bytes.Size(), a.store.Now()
	}
	return err
}

// fill stores the body.
func (a *appending) fill(ctx context.Context, w *storagedrivers.GrowthWriter) error {
	readErr, err := a.receive(ctx, w)
	if err == nil {
		if err := a.accepts(readErr); err != nil {
			return err
		}
	}
	if err != nil && a.body.Sum != nil {
		return storeError(err)
	}
	if flushErr := w.Flush(ctx); flushErr != nil {
		err = errors.Join(flushErr, err)
	}
	if err == nil && readErr != io.EOF { //nolint:errorlint // the end is io.EOF itself
		return readErr
	}
	return storeError(err)
}

// receive writes the body. readErr is io.EOF at its end. Without a checksum it stores the bytes of
// a slow body now and then, so that the upload does not expire: processes see only stored bytes of
// others.
func (a *appending) receive(ctx context.Context, w *storagedrivers.GrowthWriter) (readErr, err error) {
	buffer := buffers.Get().(*[bufferSize]byte) //nolint:forcetypeassert // the pool holds nothing else
	defer buffers.Put(buffer)
	interval := a.store.least(a.ID, 0) / 3
	for next := a.store.Now().Add(interval); readErr == nil && err == nil; {
		var n int
		n, readErr = a.read(buffer[:min(bufferSize, a.limit)])
		if a.limit -= int64(n); a.limit == 0 && readErr == nil {
			readErr, err = a.atEnd() // before the last bytes are visible
		}
		if n == 0 || err != nil {
			continue
		}
		if a.body.Sum != nil {
			a.body.Hash.Write(buffer[:n])
		}
		_, err = w.Write(buffer[:n])
		if err == nil && a.body.Sum == nil && a.store.Now().After(next) {
			next, err = a.store.Now().Add(interval), w.Flush(ctx)
		}
	}
	return readErr, err
}

// storeError returns ErrOffset if another request has added bytes.
func storeError(err error) error {
	switch {
	case errors.Is(err, storagedrivers.ErrChanged):
		return ErrOffset
	case err == nil, errors.Is(err, ErrTooLarge):
		return err
	}
	return fmt.Errorf("storing the bytes of a resumable upload: %w", err)
}

const bufferSize = 256 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// atEnd returns io.EOF as readErr if the body ends here, and ErrTooLarge if it does not.
func (a *appending) atEnd() (readErr, err error) {
	var one [1]byte
	for {
		n, readErr := a.read(one[:])
		if n > 0 {
			return readErr, ErrTooLarge
		}
		if readErr != nil {
			return readErr, nil
		}
	}
}

// accepts returns an error unless the bytes that were received before readErr may be stored.
func (a *appending) accepts(readErr error) error {
	if a.store.Active.writing.hasLost(a.writer) {
		return ErrOffset
	}
	if a.body.Sum == nil {
		return nil
	}
	if readErr != io.EOF { //nolint:errorlint // the end is io.EOF itself
		return readErr
	}
	if subtle.ConstantTimeCompare(a.body.Hash.Sum(nil), a.body.Sum) != 1 {
		return ErrChecksum
	}
	return nil
}
