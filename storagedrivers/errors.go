package storagedrivers

import (
	"errors"
	"fmt"
	"io/fs"
)

// Errors that drivers return beside fs.ErrNotExist, fs.ErrExist and fs.ErrPermission.
var (
	// ErrInvalidKey is a key that did not pass [ValidKey], or that the backend cannot hold (a
	// folder has that name, a link leads out of the root).
	ErrInvalidKey = errors.New("invalid key")
	// ErrInvalidRange is a range that begins at or past the end of the object.
	ErrInvalidRange = errors.New("invalid range")
	// ErrNoSpace is a backend that is full, or over its quota.
	ErrNoSpace = errors.New("no space left")
	// ErrUnavailable is a backend that cannot be reached now: network, time-out, throttling. Only
	// such an operation may be repeated.
	ErrUnavailable = errors.New("storage unavailable")
	// ErrBusy is ErrUnavailable of a driver whose connections are all in use. The backend itself
	// may be healthy.
	ErrBusy = fmt.Errorf("%w: all connections are in use", ErrUnavailable)
	// ErrClosed is a storage that was closed. It is never tried again.
	ErrClosed = fmt.Errorf("storage closed: %w", fs.ErrClosed)
	// ErrSizeMismatch is a stored object whose length differs from that of its source.
	ErrSizeMismatch = errors.New("stored size differs from what was sent")
)

// OpError is the error of every method of [Storage].
type OpError struct {
	// Op is the operation: "put", "open", "stat", "delete", "list", "check", "stage", "plan",
	// "prepare", "commit", "finish", "revert", "presign", "sweep".
	Op string
	// Storage is the name of the storage.
	Storage string
	// Key of the object, if the operation has one.
	Key string
	// Err is the cause.
	Err error
}

// Error returns the operation, the storage, the key and the cause. It is for the log: a cause may
// name hosts and paths.
func (e *OpError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s on storage %q: %v", e.Op, e.Storage, e.Err)
	}
	return fmt.Sprintf("%s %q on storage %q: %v", e.Op, e.Key, e.Storage, e.Err)
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }
