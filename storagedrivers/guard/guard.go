// Package guard turns panics into errors, so that code of drivers, decoders and their libraries
// cannot end the process from a goroutine. It repairs nothing: the caller treats the operation as
// failed. Begin with [Call]; use [Go], [Group] and [Each] for goroutines.
package guard

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// ErrPanic is wrapped by a [*PanicError] of [Call].
var ErrPanic = errors.New("panic")

// PanicError is a panic.
type PanicError struct {
	// Value is that of the panic.
	Value any

	kind  error
	stack []byte
}

// Error returns the value and the stack of the panic, for the log.
func (e *PanicError) Error() string { return fmt.Sprintf("%v: %v\n%s", e.kind, e.Value, e.stack) }

// Unwrap returns ErrPanic, or the error that was passed to [CallAs].
func (e *PanicError) Unwrap() error { return e.kind }

// Call calls f. If f panics, it returns a [*PanicError].
func Call(f func() error) error { return CallAs(ErrPanic, f) }

// CallAs is Call with an error that a panic wraps in place of ErrPanic.
func CallAs(kind error, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, kind: kind, stack: debug.Stack()}
		}
	}()
	return f()
}

// Go calls f in a goroutine. If f panics, it calls failed.
func Go(f func(), failed func(error)) {
	go func() {
		err := Call(func() error {
			f()
			return nil
		})
		if err != nil {
			failed(err)
		}
	}()
}

// Group is an [errgroup.Group] that calls its functions by [Call].
type Group struct{ group *errgroup.Group }

// NewGroup returns a group that runs up to most functions at the same time.
func NewGroup(most int) Group { return limited(new(errgroup.Group), most) }

// WithContext is [NewGroup] with a context that the first error cancels.
func WithContext(ctx context.Context, most int) (Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	return limited(group, most), ctx
}

func limited(group *errgroup.Group, most int) Group {
	group.SetLimit(most)
	return Group{group}
}

// Go calls f in a goroutine, when the limit of the group allows it.
func (g Group) Go(f func() error) {
	g.group.Go(func() error { return Call(f) })
}

// Wait waits for all functions, and returns the first error.
func (g Group) Wait() error { return g.group.Wait() }

// Each calls f by [Call] for 0 to n-1, up to most at the same time, and returns its errors.
func Each(n, most int, f func(i int) error) []error {
	errs := make([]error, n)
	one := func(i int) { errs[i] = Call(func() error { return f(i) }) }
	if n == 1 {
		one(0)
		return errs
	}
	group := NewGroup(most)
	for i := range n {
		group.Go(func() error {
			one(i)
			return nil
		})
	}
	_ = group.Wait() // errs has the errors
	return errs
}
