// Package check asks other programs whether files may be stored: a virus scanner, or any program
// that speaks HTTP. It decides nothing by itself. Begin with [Check.Of].
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// File is a file that a program is asked about.
type File struct {
	// Content is read from its first byte to its last one, Size bytes.
	Content io.ReadSeeker
	Size    int64
	// Kind of its alias: "image" or "file".
	Kind, Alias string
	// Filename that it will have, and its media type.
	Filename, Type string
	// Account and User that it is stored for; empty for none.
	Account, User string
	// Party that waits for its turn.
	Party queue.Party
}

// Program is asked about files.
type Program interface {
	// Ask sends a file, and returns nil if it may be stored. The error is a *[RefusedError] if it may
	// not, [ErrTooLarge] if the program takes no file of that size, and any other one if there is no
	// answer. After the return the content is not read any more.
	Ask(ctx context.Context, f File) error
}

// Check is a program with the bounds of asking it. It is safe for concurrent use.
type Check struct {
	Name    string
	Program Program
	// Timeout bounds an answer, with the wait for a turn.
	Timeout time.Duration
	// MaxSize is the size in bytes up to which files are sent.
	MaxSize int64
	// PassesLarger and PassesUnanswered store files that are too large, or without an answer.
	PassesLarger, PassesUnanswered bool
	// Turns bound how many files are sent at a time.
	Turns *queue.Queue

	state atomic.Pointer[State]
}

// State is what is known of a program since it was asked last.
type State struct {
	// Err is why it did not answer; nil if it did.
	Err error
	// Asked is when its last answer was there, or was missed.
	Asked time.Time
}

// State returns the state of the program; zero before it is asked.
func (c *Check) State() State {
	if state := c.state.Load(); state != nil {
		return *state
	}
	return State{}
}

// ErrTooLarge means that a file is larger than a program is asked about, or takes.
var ErrTooLarge = errors.New("larger than the check takes")

// ErrUnanswered is in the error of a file that is not stored because a check has no answer.
var ErrUnanswered = errors.New("no answer of the check")

// RefusedError means that a file may not be stored.
type RefusedError struct {
	// Message is for the caller.
	Message string
	// Detail is for the log; it may be empty.
	Detail string
}

// Error returns the message and the detail.
func (e *RefusedError) Error() string {
	if e.Detail == "" {
		return e.Message
	}
	return e.Message + ": " + e.Detail
}

// ContentError means that the file could not be read, so that nothing is known about it.
type ContentError struct{ Err error }

func (e *ContentError) Error() string { return fmt.Sprintf("reading the file: %v", e.Err) }

// Unwrap returns the error of the content.
func (e *ContentError) Unwrap() error { return e.Err }

var errTimeout = storagedrivers.WithCause(errors.New("the check took too long"),
	"The program did not answer in time, the wait for a turn included. See why it is slow, or raise timeout or jobs.")

// Of asks about a file. It returns nil if the file may be stored. The error is that of
// [Program.Ask], a *[ContentError], or the cause of ctx.
func (c *Check) Of(ctx context.Context, f File) error {
	if f.Size > c.MaxSize {
		return ErrTooLarge
	}
	if err := f.fetch(); err != nil {
		return &ContentError{err}
	}
	bounded, cancel := context.WithTimeoutCause(ctx, c.Timeout, errTimeout)
	defer cancel()
	slot, err := c.Turns.Acquire(bounded, f.Party.Request())
	if err != nil {
		return fmt.Errorf("waiting for a turn: %w", err)
	}
	defer slot.Release()
	if _, err := f.Content.Seek(0, io.SeekStart); err != nil {
		return &ContentError{err}
	}
	content := &content{ReadSeeker: f.Content, failed: cancel}
	f.Content = content
	err = c.Program.Ask(bounded, f)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case content.err != nil:
		return &ContentError{content.err}
	case bounded.Err() != nil && ResultOf(err) == Unanswered: // otherwise it has answered
		err = context.Cause(bounded)
	}
	state := &State{Asked: time.Now()} //nolint:forbidigo // it is for people
	if ResultOf(err) == Unanswered {
		state.Err = err
	}
	c.state.Store(state)
	return err
}

// fetch reads the last byte. Some contents, those of copies, are fetched from their storage when
// they are first read that far: then neither the program nor other files wait for it.
func (f File) fetch() error {
	if f.Size == 0 {
		return nil
	}
	_, err := f.Content.Seek(f.Size-1, io.SeekStart)
	if err == nil {
		_, err = io.ReadFull(f.Content, make([]byte, 1))
	}
	return err
}

// content remembers the error of reading it, which is no fault of the program. There is nothing to
// wait for then.
type content struct {
	io.ReadSeeker
	failed func()
	err    error
}

func (c *content) Read(p []byte) (int, error) {
	n, err := c.ReadSeeker.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
		c.failed()
	}
	return n, err
}

// Result is the outcome of asking.
type Result string

// The results.
const (
	Accepted   Result = "accepted"
	Refused    Result = "refused"
	TooLarge   Result = "too_large"
	Unanswered Result = "unanswered"
)

// Results returns all results.
func Results() []Result { return []Result{Accepted, Refused, TooLarge, Unanswered} }

// ResultOf returns the result for an error of [Check.Of].
func ResultOf(err error) Result {
	var refused *RefusedError
	switch {
	case err == nil:
		return Accepted
	case errors.As(err, &refused):
		return Refused
	case errors.Is(err, ErrTooLarge):
		return TooLarge
	}
	return Unanswered
}

// Passes reports whether a file is stored after a result other than Accepted and Refused.
func (c *Check) Passes(result Result) bool {
	return result == TooLarge && c.PassesLarger || result == Unanswered && c.PassesUnanswered
}
