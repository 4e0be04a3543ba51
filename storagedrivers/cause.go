package storagedrivers

import "errors"

// Cause is the origin of an error, in one or two sentences for an administrator: what is wrong, and
// what to do. A driver attaches it where it knows more than the errors of this package, of io/fs
// and of the network say.
type Cause string

// Causes that several drivers have.
const (
	NotAFolder Cause = "The root is not a folder, or a part of its path is a file. Name a folder."
	NoTLS      Cause = "The host does not speak TLS on this port. Check the port, and whether the connection is to be secured."
)

// Missing returns the cause of a bucket or container that does not exist; noun is its word.
func Missing(noun string) Cause {
	return Cause("There is no such " + noun + ". Make it first, or correct its name.")
}

// WithCause attaches a cause to err, whose text and meaning stay as they are. It returns err itself
// if it has a cause already, or if cause is empty.
func WithCause(err error, cause Cause) error {
	if err == nil || cause == "" || CauseOf(err) != "" {
		return err
	}
	return &causedError{err, cause}
}

// CauseOf returns the cause of err, which is empty if none is attached.
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
