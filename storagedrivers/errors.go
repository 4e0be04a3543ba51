package storagedrivers

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/caddymedia/media/storagedrivers/guard"
)

// Errors of drivers, in addition to fs.ErrNotExist, fs.ErrExist and fs.ErrPermission.
var (
	// ErrInvalidKey means that a key did not pass [ValidKey], or that the backend cannot hold it: a
	// folder with objects has that name, an object has that of one of its folders, or a link leads
	// out of the root.
	ErrInvalidKey = errors.New("invalid key")
	// ErrInvalidRange means that a range begins at or past the end of the object.
	ErrInvalidRange = errors.New("invalid range")
	// ErrNoSpace means that a backend is full or over its quota.
	ErrNoSpace = errors.New("no space left")
	// ErrUnavailable means that a backend cannot be reached now: network, time-out, throttling.
	// Only such an operation may be retried.
	ErrUnavailable = errors.New("storage unavailable")
	// ErrBusy is an ErrUnavailable of a driver whose connections are all in use. The backend itself
	// may be healthy.
	ErrBusy = fmt.Errorf("%w: all connections are in use", ErrUnavailable)
	// ErrInUse is an ErrUnavailable of an object that another caller is writing or committing. The
	// backend itself may be healthy.
	ErrInUse = fmt.Errorf("%w: the object is in use", ErrUnavailable)
	// ErrClosed means that a storage is closed. The operation is never retried.
	ErrClosed = fmt.Errorf("storage closed: %w", fs.ErrClosed)
	// ErrSizeUnknown means that the end of a source is not known yet, see [Features.Streams].
	ErrSizeUnknown = errors.New("the size is not known yet")
	// ErrPanic means that a driver has panicked. Whether it has carried out the operation is not
	// known.
	ErrPanic = guard.ErrPanic
	// ErrUnkept means that an object is too large to be kept by a copy through this process, see
	// [Storage.StageKept].
	ErrUnkept = errors.New("too large to be kept")
	// ErrSizeMismatch means that a stored object is not as long as its source.
	ErrSizeMismatch = errors.New("stored size differs from what was sent")
)

// OpError is the error of every method of [Storage].
type OpError struct {
	// Op is the operation: "put", "open", "stat", "delete", "list", "check", "stage", "commit",
	// "presign", "sweep", "space", "append", "flush", "adopt", "copy".
	Op string
	// Storage is the name of the storage.
	Storage string
	// Key of the object, if the operation has one.
	Key string
	// Err is the cause.
	Err error
}

// Error returns the operation, the storage, the key and the cause. It is for the log, because a
// cause may contain hosts and paths.
func (e *OpError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s on storage %q: %v", e.Op, e.Storage, e.Err)
	}
	return fmt.Sprintf("%s %q on storage %q: %v", e.Op, e.Key, e.Storage, e.Err)
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }
