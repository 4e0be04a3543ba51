package storagedrivers

import "errors"

// Cause is the cause of an error, in one or two sentences for an administrator: what is wrong, and
// what to do. A driver attaches a cause if it knows more than the errors of this package, of io/fs
// and of the network say.
type Cause string

// Causes that several drivers share.
const (
	NotAFolder Cause = "The root is not a folder, or a part of its path is a file. Name a folder."
	NoTLS      Cause = "The host does not speak TLS on this port. Check the port, and whether the connection is to be secured."
)

// Missing returns the cause for a bucket or container that does not exist; noun is its name.
func Missing(noun string) Cause {
	return Cause("There is no such " + noun + ". Make it first, or correct its name.")
}

// WithCause attaches a cause to err, without changing its text or the errors it matches. It returns
// err itself if it already has a cause, or if cause is empty.
func WithCause(err error, cause Cause) error {
	if err == nil || cause == "" || CauseOf(err) != "" {
		return err
	}
	return &causedError{err, cause}
}

// CauseOf returns the cause of err; it is empty if none is attached.
func CauseOf(err error) Cause {
	if caused, ok := errors.AsType[*causedError](err); ok {
		return caused.cause
	}
	return ""
}

type causedError struct {
	error
	cause Cause
}

func (e *causedError) Unwrap() error { return e.error }
