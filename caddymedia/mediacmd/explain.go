package mediacmd

import (
	"errors"

	"github.com/caddymedia/media/storagedrivers"
)

// explainedError is an error of a storage, and what to do about it.
type explainedError struct {
	error
	reason string
}

// Error returns the reason, and the error itself on a line of its own.
func (e *explainedError) Error() string { return e.reason + "\n  " + e.error.Error() }

// Unwrap returns the error itself.
func (e *explainedError) Unwrap() error { return e.error }

// explain adds the reason to an error, in the same words as the panel. It returns err itself if its
// reason is not known.
func (s *session) explain(err error) error {
	if reason := s.reasonOf(err); reason != "" {
		return &explainedError{err, reason}
	}
	return err
}

// reasonOf returns the reason of an error of a storage; empty if it is not known.
func (s *session) reasonOf(err error) string {
	op, ok := errors.AsType[*storagedrivers.OpError](err)
	if !ok {
		return ""
	}
	storage, ok := s.App.Service().Storage(op.Storage)
	if !ok {
		return ""
	}
	return storage.Explain(err)
}
