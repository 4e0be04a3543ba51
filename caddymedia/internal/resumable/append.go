package resumable

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

const (
	// segmentSize is the largest segment in bytes, unless it has a checksum. A crash loses at most
	// one that is not complete.
	segmentSize = 16 << 20
	// maxSegments is the largest number of segments besides those of full size.
	maxSegments = 10_000
	// storeTime bounds storing a segment after its request has ended.
	storeTime = 2 * time.Minute
)

// BodyError is an error of the reader of a [Body].
type BodyError struct{ Err error }

// Error returns the text of the reader's error.
func (e *BodyError) Error() string { return "receiving a segment: " + e.Err.Error() }

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
// ErrChecksum, ErrSegments, ErrUnknown if the upload was removed meanwhile, a *BodyError, or that of
// the storage.
func (u *Upload) Append(ctx context.Context, body Body) error {
	if body.Offset != u.offset {
		return ErrOffset
	}
	w := &writer{interrupt: body.Interrupt, ended: make(chan struct{})}
	name := u.location()
	earlier, err := writing.begin(ctx, name, w)
	if err != nil {
		return err
	}
	defer writing.end(name, w)
	if earlier || u.Length == Unknown { // the storage notices other bytes, not a length
		if err := u.Reload(ctx); err != nil {
			return err
		}
	}
	if body.Offset != u.offset || u.Outcome != nil {
		return ErrOffset
	}
	if tooMany(len(u.segments), u.offset) {
		return ErrSegments
	}
	a := &appending{Upload: u, writer: w, body: body, limit: body.Limit - u.offset}
	if u.Length != Unknown {
		a.limit = u.Length - u.offset
	}
	before := u.offset
	err = a.run(ctx)
	if n := u.offset - before; n > 0 && u.store.Received != nil {
		u.store.Received(u.ItemKind(), n, before > 0)
	}
	if gone := u.confirm(ctx, a.stored); gone != nil {
		return gone
	}
	if _, cut := errors.AsType[*BodyError](err); cut && writing.hasLost(w) {
		return ErrOffset // the reader's error is that of Interrupt
	}
	return err
}

// tooMany reports whether there are too many segments for a number of bytes.
func tooMany(segments int, bytes int64) bool { return int64(segments) > maxSegments+bytes/segmentSize }

// location identifies the upload in this process, whatever the name of its storage.
func (u *Upload) location() string { return u.storage.Location().Join(dataKey(u.ID, "")).String() }

// confirm looks whether the upload was removed while segments were stored, and removes them then. The
// error is ErrOffset if the upload was finished, perhaps with other bytes, otherwise ErrUnknown.
func (u *Upload) confirm(ctx context.Context, stored []string) error {
	if len(stored) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	_, err := u.storage.Stat(ctx, recordKey(u.Owner, u.ID))
	if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, key := range stored {
		_ = u.store.remove(ctx, u.storage, key)
	}
	if err := u.reloadOutcome(ctx); err != nil {
		return err
	}
	return ErrOffset
}

// appending is a request that adds bytes. A segment is stored while the next one is received.
type appending struct {
	*Upload
	writer *writer
	body   Body
	limit  int64                   // of the bytes that are still accepted
	object storagedrivers.Appended // that grows; nil for segments
	stored []string

	storing sync.WaitGroup
	err     error // of the last segment that was stored
}

// run receives the body. Where objects can grow, it needs no segments.
func (a *appending) run(ctx context.Context) error {
	if err := a.open(ctx); err != nil {
		return err
	}
	if a.object != nil {
		defer func() {
			if err := a.object.Close(); err != nil {
				a.store.Log.Warn("closing the bytes of a resumable upload", "error", err)
			}
		}()
		if a.body.Sum == nil {
			return a.grow(ctx)
		}
	}
	return a.runSegments(ctx)
}

// open opens the object of the upload at its end, unless the upload has segments or the storage has
// no objects that grow.
func (a *appending) open(ctx context.Context) error {
	if !a.storage.CanAppend() || len(a.segments) > 0 && !a.grown {
		return nil
	}
	key := dataKey(a.ID, grownName)
	object, err := a.storage.Append(ctx, key, a.offset)
	if errors.Is(err, errors.ErrUnsupported) && !a.grown {
		return nil
	}
	if err != nil {
		return grownError(err)
	}
	a.object, a.stored = object, append(a.stored, key)
	return nil
}

// grow appends the body to the object as it is received.
func (a *appending) grow(ctx context.Context) error {
	buffer := buffers.Get().(*[bufferSize]byte) // the pool holds nothing else
	defer buffers.Put(buffer)
	var readErr, err error
	written := int64(0)
	for readErr == nil && err == nil {
		var n int
		n, readErr = a.read(buffer[:min(bufferSize, a.limit)])
		if a.limit -= int64(n); a.limit == 0 && readErr == nil {
			readErr, err = a.atEnd() // before the last bytes are visible
		}
		if n > 0 && err == nil {
			n, err = a.object.Write(buffer[:n])
			written += int64(n)
		}
	}
	return firstError(a.flush(ctx, written, err), readErr)
}

// flush makes n appended bytes durable, also if err has ended the appending. The end of the request
// does not stop it.
func (a *appending) flush(ctx context.Context, n int64, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	if flushErr := a.object.Flush(ctx); flushErr != nil {
		return grownError(errors.Join(flushErr, err))
	}
	a.setGrown(storagedrivers.Info{Key: dataKey(a.ID, grownName), Size: a.offset + n})
	a.changed = a.store.Now()
	return grownError(err)
}

// grownError returns ErrOffset for the errors of an object that another writer has changed.
func grownError(err error) error {
	for _, other := range []error{storagedrivers.ErrChanged, storagedrivers.ErrInUse, fs.ErrExist, fs.ErrNotExist} {
		if errors.Is(err, other) {
			return ErrOffset
		}
	}
	if err == nil || errors.Is(err, ErrTooLarge) {
		return err
	}
	return fmt.Errorf("storing the bytes of a resumable upload: %w", err)
}

func (a *appending) runSegments(ctx context.Context) error {
	size := int64(segmentSize)
	if a.body.Sum != nil {
		size = a.limit
	}
	var err error
	for end := false; err == nil && !end; {
		end, err = a.segment(ctx, size)
	}
	a.storing.Wait()
	if a.err != nil {
		return a.err // nothing behind it is stored
	}
	return err
}

// segment receives one segment and begins to store it. end reports that it was the last one.
func (a *appending) segment(ctx context.Context, size int64) (end bool, err error) {
	release, err := a.body.Reserve()
	if err != nil {
		return true, err
	}
	staged, err := a.storage.Stage(ctx)
	if err != nil {
		release()
		return true, fmt.Errorf("receiving a segment: %w", err)
	}
	done := func() {
		if err := staged.Close(); err != nil {
			a.store.Log.Warn("closing a segment of a resumable upload", "error", err)
		}
		release()
	}
	n, readErr, err := a.receive(staged, min(size, a.limit))
	if readErr == nil && err == nil && a.limit == n {
		readErr, err = a.atEnd()
	}
	if err == nil {
		err = a.accepts(readErr)
	}
	if n > 0 {
		a.storing.Wait()
	}
	if err != nil || n == 0 || a.err != nil {
		done()
		return true, firstError(err, readErr)
	}
	a.limit -= n
	store := a.commit
	if a.object != nil {
		store = a.copy
	}
	a.storing.Go(func() {
		defer done()
		a.err = store(ctx, staged, n)
	})
	return readErr != nil, firstError(nil, readErr)
}

// receive copies at most limit bytes from the body. readErr is io.EOF at its end. Without a checksum
// it ends early, so that a slow upload does not expire before its bytes are stored: processes see
// only stored bytes of others.
func (a *appending) receive(staged io.Writer, limit int64) (n int64, readErr, err error) {
	buffer := buffers.Get().(*[bufferSize]byte) // the pool holds nothing else
	defer buffers.Put(buffer)
	end := a.store.Now().Add(a.store.least(a.ID, 0) / 3)
	for n < limit && readErr == nil && (n == 0 || a.body.Sum != nil || a.store.Now().Before(end)) {
		var read int
		read, readErr = a.read(buffer[:min(bufferSize, limit-n)])
		if read == 0 {
			continue
		}
		if a.body.Sum != nil {
			a.body.Hash.Write(buffer[:read])
		}
		if _, err := staged.Write(buffer[:read]); err != nil {
			return n, readErr, fmt.Errorf("receiving a segment: %w", err)
		}
		n += int64(read)
	}
	return n, readErr, nil
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
	if writing.hasLost(a.writer) {
		return ErrOffset
	}
	if a.body.Sum == nil || readErr == nil {
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

// firstError returns err, or else readErr unless that is the end of the body.
func firstError(err, readErr error) error {
	if err == nil && readErr != io.EOF { //nolint:errorlint // the end is io.EOF itself
		return readErr
	}
	return err
}

// commit stores a segment of n bytes. The end of the request does not stop it.
func (a *appending) commit(ctx context.Context, staged storagedrivers.Staged, n int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	key := dataKey(a.ID, segmentName(a.offset))
	segment := storagedrivers.Change{Staged: staged, Key: key}
	infos, err := a.storage.Commit(ctx, segment)
	if errors.Is(err, fs.ErrExist) && a.removeEmpty(ctx, key) {
		infos, err = a.storage.Commit(ctx, segment)
	}
	if errors.Is(err, fs.ErrExist) {
		return ErrOffset
	}
	if err != nil {
		return fmt.Errorf("storing a segment: %w", err)
	}
	a.stored = append(a.stored, key)
	a.segments = append(a.segments, infos[0])
	a.offset += n
	a.changed = a.store.Now()
	return nil
}

// copy appends a verified segment to the object that grows.
func (a *appending) copy(ctx context.Context, staged storagedrivers.Staged, _ int64) error {
	if _, err := staged.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading a segment: %w", err)
	}
	buffer := buffers.Get().(*[bufferSize]byte) // the pool holds nothing else
	defer buffers.Put(buffer)
	n, err := io.CopyBuffer(struct{ io.Writer }{a.object}, struct{ io.Reader }{staged}, buffer[:])
	return a.flush(ctx, n, err)
}

// removeEmpty removes an empty segment, and reports whether there was one. No request stores one, but
// some servers keep an object whose PUT was cut.
func (a *appending) removeEmpty(ctx context.Context, key string) bool {
	info, err := a.storage.Stat(ctx, key)
	return err == nil && info.Size == 0 && a.store.remove(ctx, a.storage, key) == nil
}
