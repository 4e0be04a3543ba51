package storagedrivers

import (
	"errors"
	"fmt"
	"io/fs"
)

// Errors that drivers return beside fs.ErrNotExist, fs.ErrExist and fs.ErrPermission.
var (
	// ErrInvalidKey is a key that did not pass [ValidKey], or that the place cannot
	// hold (a folder stands there, a link leads out of the root).
	ErrInvalidKey = errors.New("invalid key")
	// ErrInvalidRange is a range that begins at or past the end of the object.
	ErrInvalidRange = errors.New("invalid range")
	// ErrNoSpace is a place that is full, or over its quota.
	ErrNoSpace = errors.New("no space left")
	// ErrUnavailable is a place that cannot be reached now: network, time-out,
	// throttling. It is the one that may be tried again.
	ErrUnavailable = errors.New("storage unavailable")
	// ErrBusy is ErrUnavailable of a driver whose connections are all in use. It says nothing
	// about the backend, which may be well.
	ErrBusy = fmt.Errorf("%w: all connections are in use", ErrUnavailable)
	// ErrClosed is a storage that was closed. It is never tried again.
	ErrClosed = fmt.Errorf("storage closed: %w", fs.ErrClosed)
	// ErrSizeMismatch is an object that is not as long as what was sent.
	ErrSizeMismatch = errors.New("stored size differs from what was sent")
)

// OpError is what every method of [Storage] returns on failure.
type OpError struct {
	// Op is the operation: "put", "open", "stat", "delete", "list", "check", "stage",
	// "plan", "prepare", "commit", "finish", "revert", "presign", "sweep".
	Op string
	// Storage is the name of the storage.
	Storage string
	// Key is the object's, if the operation has one.
	Key string
	// Err is what went wrong.
	Err error
}

// Error gives the operation, the storage, the key and the cause. It is for the log: a
// cause may name hosts and paths.
func (e *OpError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s on storage %q: %v", e.Op, e.Storage, e.Err)
	}
	return fmt.Sprintf("%s %q on storage %q: %v", e.Op, e.Key, e.Storage, e.Err)
}

// Unwrap gives the cause.
func (e *OpError) Unwrap() error { return e.Err }
