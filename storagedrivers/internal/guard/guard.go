// Package guard turns panics of drivers and their libraries into errors. It repairs nothing: the
// caller treats the operation as failed. Begin with [Call], and in a group of goroutines with [Func].
package guard

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrPanic is the error of a panic.
var ErrPanic = errors.New("panic")

// Call calls f. A panic is an ErrPanic, because outside of the request's goroutine it would end the
// process.
func Call(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanic, value, debug.Stack())
		}
	}()
	return f()
}

// Func returns a function that calls f by [Call].
func Func(f func() error) func() error {
	return func() error { return Call(f) }
}
