package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/storagedrivers"
)

// Reason says in which way an item or a request failed.
type Reason int

// Reasons, as spec'd answers go by them.
const (
	// Internal is a fault of the service itself.
	Internal Reason = iota
	// BadRequest is a malformed body, an unknown alias, a bad name or sub folder.
	BadRequest
	// Forbidden is an alias that the account may not use.
	Forbidden
	// Conflict is two items of one request that would overwrite each other, or an item for which no
	// free name was found.
	Conflict
	// TooLarge is over a limit on bytes, files, parts or pixels.
	TooLarge
	// BadContent is an extension or a content that is refused.
	BadContent
	// StorageFailed is an error that the storage answered.
	StorageFailed
	// Unavailable is a storage that cannot be reached.
	Unavailable
	// NoSpace is a storage that is full.
	NoSpace
	// Busy is too much other work.
	Busy
	// Unauthorized is a caller who is not known. Whoever asks the gate finds that out.
	Unauthorized
)

var reasonWords = []string{
	Internal: "internal", BadRequest: "bad_request", Forbidden: "forbidden", Conflict: "conflict",
	TooLarge: "too_large", BadContent: "bad_content", StorageFailed: "storage_failed",
	Unavailable: "unavailable", NoSpace: "no_space", Busy: "busy", Unauthorized: "unauthorized",
}

// String gives the word for a reason in metrics, events, logs and traces.
func (r Reason) String() string { return reasonWords[r] }

// Reasons are all there are.
func Reasons() []Reason {
	reasons := make([]Reason, len(reasonWords))
	for i := range reasons {
		reasons[i] = Reason(i)
	}
	return reasons
}

// Failure is why an item, or the whole request, was not stored.
type Failure struct {
	Reason Reason
	// Message tells the caller what to change. It never has a path, host, key or
	// secret.
	Message string
	// Filename as submitted; empty for the whole request.
	Filename string
	// Err is the detail for the log, if there is any.
	Err error
}

// Error gives the message and the detail: it is for the log.
func (f *Failure) Error() string {
	if f.Err != nil {
		return fmt.Sprintf("%s: %v", f.Message, f.Err)
	}
	return f.Message
}

// Unwrap gives the detail.
func (f *Failure) Unwrap() error { return f.Err }

// Failures are what a request failed with, one for each failing item.
type Failures []*Failure

// Error joins the messages: it is for the log.
func (fs Failures) Error() string {
	messages := make([]string, len(fs))
	for i, f := range fs {
		messages[i] = f.Error()
	}
	return strings.Join(messages, "; ")
}

func failf(reason Reason, format string, args ...any) *Failure {
	return &Failure{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// storageFailure tells the caller of an error of a storage without its detail.
func storageFailure(err error) *Failure {
	reason, message := StorageFailed, "the storage did not take the item"
	switch {
	case errors.Is(err, storagedrivers.ErrNoSpace):
		reason, message = NoSpace, "the storage is full"
	case errors.Is(err, storagedrivers.ErrUnavailable), errors.Is(err, storagedrivers.ErrClosed),
		errors.Is(err, context.DeadlineExceeded):
		reason, message = Unavailable, "the storage cannot be reached now, try again later"
	case errors.Is(err, context.Canceled): // by the caller, who is gone or has stopped sending
		reason, message = BadRequest, "the upload was broken off"
	case errors.Is(err, storagedrivers.ErrInvalidKey):
		reason, message = BadRequest, "the storage cannot hold an item of this name"
	case errors.Is(err, fs.ErrPermission):
		message = "the storage refuses to be written to"
	}
	return &Failure{Reason: reason, Message: message, Err: err}
}

// contentFailure tells the caller of a content that did not pass, of too much other work,
// or of a staged item that could not be read for checking.
func contentFailure(err error) *Failure {
	var (
		content *imaging.ContentError
		large   *imaging.TooLargeError
		known   *Failure
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, variant.ErrBusy):
		return &Failure{Reason: Busy, Message: "too many pictures are being worked on, try again later", Err: err}
	case errors.Is(err, variant.ErrPanic):
		return &Failure{Reason: BadContent, Message: "the picture is damaged: it cannot be decoded", Err: err}
	case errors.As(err, &content):
		return &Failure{Reason: BadContent, Message: content.Message}
	case errors.As(err, &large):
		return &Failure{Reason: TooLarge, Message: large.Message}
	default:
		return storageFailure(err)
	}
}
