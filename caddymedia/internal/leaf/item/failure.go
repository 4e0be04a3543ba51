package item

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

// Reason is the class of a failure.
type Reason int

// The reasons. Each has its own HTTP status.
const (
	// Internal means a fault of the service itself.
	Internal Reason = iota
	// BadRequest means a malformed body, an upload to an unknown alias, or a bad name or sub folder.
	BadRequest
	// Forbidden means an alias that the account may not use.
	Forbidden
	// Conflict means two items of one request that would overwrite each other, or an item for which
	// no free name was found.
	Conflict
	// TooLarge means over a limit on bytes, files, parts or pixels.
	TooLarge
	// BadContent means a refused extension or content.
	BadContent
	// StorageFailed means an error of the storage.
	StorageFailed
	// Unavailable means a storage that cannot be reached.
	Unavailable
	// NoSpace means a storage that is full.
	NoSpace
	// Busy means too many other requests.
	Busy
	// Missing means an item, or its alias, that does not exist.
	Missing
	// Changed means an item that is another one than the caller knows.
	Changed
	// RemoteFailed means a server that did not answer with the item at an address to import.
	RemoteFailed
	// RemoteSlow means such a server that takes too long.
	RemoteSlow
	// OtherRequest means a repetition that differs from the earlier request.
	OtherRequest
	// Unauthorized means an unknown caller. Only callers of this package set it.
	Unauthorized
)

var reasonWords = []string{
	Internal: "internal", BadRequest: "bad_request", Forbidden: "forbidden", Conflict: "conflict",
	TooLarge: "too_large", BadContent: "bad_content", StorageFailed: "storage_failed",
	Unavailable: "unavailable", NoSpace: "no_space", Busy: "busy", Missing: "missing", Changed: "changed",
	RemoteFailed: "remote_failed", RemoteSlow: "remote_slow", OtherRequest: "other_request",
	Unauthorized: "unauthorized",
}

// String returns the reason as it appears in metrics, events, logs and traces.
func (r Reason) String() string { return reasonWords[r] }

// Reasons returns all reasons.
func Reasons() []Reason {
	reasons := make([]Reason, len(reasonWords))
	for i := range reasons {
		reasons[i] = Reason(i)
	}
	return reasons
}

// Failure is the error of an item, or of the whole request, that was not stored.
type Failure struct {
	Reason Reason
	// Message is for the caller. It contains no path, host, key or secret.
	Message string
	// Filename as submitted; empty for the whole request.
	Filename string
	// Err is the cause, for the log; it may be nil.
	Err error
}

// Error returns the message and the cause, for the log.
func (f *Failure) Error() string {
	if f.Err != nil {
		return fmt.Sprintf("%s: %v", f.Message, f.Err)
	}
	return f.Message
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Failures are the errors of a request of which nothing was stored: one for each item that failed,
// or one for the request.
type Failures []*Failure

// Error joins the messages, for the log.
func (fs Failures) Error() string {
	messages := make([]string, len(fs))
	for i, f := range fs {
		messages[i] = f.Error()
	}
	return strings.Join(messages, "; ")
}

// Failf returns a failure with a formatted message.
func Failf(reason Reason, format string, args ...any) *Failure {
	return &Failure{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// StorageFailure returns the failure for an error of a storage.
func StorageFailure(err error) *Failure {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure
	}
	reason, message := StorageFailed, "the storage could not store the item"
	switch {
	case errors.Is(err, storagedrivers.ErrNoSpace):
		reason, message = NoSpace, "the storage is full"
	case errors.Is(err, storagedrivers.ErrUnkept):
		reason, message = TooLarge, "the item is larger than 1 GiB, the most that the trash of this storage can keep"
	case errors.Is(err, storagedrivers.ErrUnavailable), errors.Is(err, storagedrivers.ErrClosed),
		errors.Is(err, context.DeadlineExceeded):
		reason, message = Unavailable, "the storage cannot be reached now, try again later"
	case errors.Is(err, context.Canceled): // by the caller
		reason, message = BadRequest, "the upload was aborted"
	case errors.Is(err, storagedrivers.ErrInvalidKey):
		reason, message = BadRequest, "the storage cannot hold an item of this name"
	case errors.Is(err, fs.ErrPermission):
		message = "the storage refuses to be written to"
	}
	return &Failure{Reason: reason, Message: message, Err: err}
}

// ErrOther means that an item is not the one that an operation is for.
var ErrOther = errors.New("the item is another one by now")

// OperationFailure returns the failure for an error of an operation on stored items. doing is what
// failed, as in "the storage could not list the items".
func OperationFailure(doing string, err error) *Failure {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure
	}
	switch { // what is no fault of the storage has no cause for the log
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, storagedrivers.ErrInvalidKey):
		return &Failure{Reason: Missing, Message: "there is no such item"}
	case errors.Is(err, ErrOther):
		return &Failure{Reason: Changed, Message: ErrOther.Error()}
	case errors.Is(err, storagedrivers.ErrChanged):
		return &Failure{Reason: Conflict, Message: "the item is being replaced, try again later"}
	case errors.Is(err, context.Canceled): // by the caller
		return &Failure{Reason: BadRequest, Message: "the request was aborted"}
	}
	failure := StorageFailure(err)
	if failure.Reason == StorageFailed {
		failure.Message = "the storage could not " + doing
	}
	return failure
}

// ContentFailure returns the failure for an error of checking or decoding content, or of reading it
// from the storage.
func ContentFailure(err error) *Failure {
	var (
		content *imaging.ContentError
		large   *imaging.TooLargeError
		known   *Failure
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, render.ErrBusy):
		return &Failure{Reason: Busy, Message: "too many images are being worked on, try again later", Err: err}
	case errors.Is(err, render.ErrPanic):
		return &Failure{Reason: BadContent, Message: "the image is damaged: it cannot be decoded", Err: err}
	case errors.As(err, &content):
		return &Failure{Reason: BadContent, Message: content.Message}
	case errors.As(err, &large):
		return &Failure{Reason: TooLarge, Message: large.Message}
	default:
		return StorageFailure(err)
	}
}
