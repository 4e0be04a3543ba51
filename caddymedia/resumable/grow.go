package resumable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/caddymedia/media/storagedrivers"
)

// loadGrown finds the bytes of an object that grows. Those that it counts are durable.
func (u *Upload) loadGrown(ctx context.Context, key string) error {
	if len(u.segments) > 0 {
		return nil // a request that found them added no bytes to the object
	}
	info, err := u.storage.FlushAppended(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrUnknown // removed since it was listed
	}
	if err != nil {
		return fmt.Errorf("finding the bytes of a resumable upload: %w", err)
	}
	u.segments, u.offset, u.grown = []storagedrivers.Info{info}, info.Size, true
	return nil
}

// grow appends the body to an object that grows. The error is [errors.ErrUnsupported] if the storage
// has none.
func (a *appending) grow(ctx context.Context) error {
	if a.body.Sum != nil {
		return a.growVerified(ctx)
	}
	object, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.closing(object)
	buffer := buffers.Get().(*[bufferSize]byte) // the pool holds nothing else
	defer buffers.Put(buffer)
	readErr := error(nil)
	for readErr == nil && a.limit > 0 && err == nil {
		var n int
		n, readErr = a.read(buffer[:min(bufferSize, a.limit)])
		if a.limit -= int64(n); a.limit == 0 && readErr == nil {
			readErr, err = a.atEnd() // before the last bytes are visible
		}
		if err == nil {
			_, err = object.Write(buffer[:n])
		}
	}
	if a.limit == 0 && readErr == nil && err == nil { // it was complete before
		readErr, err = a.atEnd()
	}
	return firstError(errors.Join(a.flush(ctx, object), grownError(err)), readErr)
}

// growVerified receives the body outside of the object until its checksum is known.
func (a *appending) growVerified(ctx context.Context) error {
	release, err := a.body.Reserve()
	if err != nil {
		return err
	}
	defer release()
	staged, err := a.storage.Stage(ctx)
	if err != nil {
		return fmt.Errorf("receiving bytes with a checksum: %w", err)
	}
	defer a.closing(staged)
	n, readErr, err := a.receive(staged, a.limit)
	if readErr == nil && err == nil {
		readErr, err = a.atEnd()
	}
	if err == nil {
		err = a.accepts(readErr)
	}
	if err != nil || n == 0 {
		return firstError(err, readErr)
	}
	if _, err := staged.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading bytes with a checksum: %w", err)
	}
	object, err := a.open(ctx)
	if errors.Is(err, errors.ErrUnsupported) && !a.grown {
		return a.commit(ctx, staged, n)
	}
	if err != nil {
		return err
	}
	defer a.closing(object)
	buffer := buffers.Get().(*[bufferSize]byte) // the pool holds nothing else
	defer buffers.Put(buffer)
	_, err = io.CopyBuffer(struct{ io.Writer }{object}, struct{ io.Reader }{staged}, buffer[:])
	return errors.Join(a.flush(ctx, object), grownError(err))
}

// open opens the object of the upload at its end.
func (a *appending) open(ctx context.Context) (storagedrivers.Appended, error) {
	if writing.hasLost(a.writer) {
		return nil, ErrOffset // it must not end the request that has taken over
	}
	key := dataKey(a.ID, grownName)
	object, err := a.storage.Append(ctx, key, a.offset)
	if err != nil {
		return nil, grownError(err)
	}
	a.grown = true
	if !slices.Contains(a.stored, key) {
		a.stored = append(a.stored, key)
	}
	return object, nil
}

func (a *appending) closing(c io.Closer) {
	if err := c.Close(); err != nil {
		a.store.Log.Warn("closing the bytes of a resumable upload", "error", err)
	}
}

// flush makes what was written durable. The end of the request does not stop it.
func (a *appending) flush(ctx context.Context, object storagedrivers.Appended) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	size, err := object.Flush(ctx)
	if err != nil {
		return grownError(err)
	}
	a.segments = []storagedrivers.Info{{Key: dataKey(a.ID, grownName), Size: size}}
	a.offset, a.changed = size, a.store.Now()
	return nil
}

// grownError returns ErrOffset for the errors of an object that has another writer.
func grownError(err error) error {
	for _, other := range []error{
		storagedrivers.ErrChanged, storagedrivers.ErrSuperseded, storagedrivers.ErrInUse, fs.ErrExist, fs.ErrNotExist,
	} {
		if errors.Is(err, other) {
			return ErrOffset
		}
	}
	if err == nil || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, ErrTooLarge) {
		return err
	}
	return fmt.Errorf("storing the bytes of a resumable upload: %w", err)
}

// Adopt returns the bytes of a complete upload as staged data of its storage, which the caller must
// close. Committing it moves no bytes. The error matches [errors.ErrUnsupported] if the storage
// cannot do that, or if an earlier attempt has committed the bytes: see [Upload.Content].
func (u *Upload) Adopt(ctx context.Context) (storagedrivers.Staged, error) {
	if !u.grown {
		return nil, errors.ErrUnsupported
	}
	staged, err := u.storage.Adopt(ctx, dataKey(u.ID, grownName), u.Length)
	if errors.Is(err, fs.ErrExist) {
		err = errors.Join(errors.ErrUnsupported, err)
	}
	return staged, err
}
