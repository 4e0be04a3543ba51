package storagedrivers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	tripAfter = 5               // operations in a row that found the backend unavailable
	rest      = 5 * time.Second // before one more of them may try
)

// errResting is the error of an operation that is not tried while the circuit is open.
var errResting = WithCause(fmt.Errorf("%w: not tried, it has failed %d times in a row", ErrUnavailable, tripAfter),
	"The storage failed several times in a row. It is not used for some seconds. Try again then.")

// Breaker is a circuit breaker. While a backend does not answer, it prevents operations from
// waiting for it and from slowing down its recovery. While the circuit is open, it admits one
// operation in five seconds. The first answer of any kind closes it. The zero value is closed.
type Breaker struct {
	mu     sync.Mutex
	failed int // in a row
	trial  time.Time
}

// Do calls f, an operation of the backend with ctx, unless the circuit is open. Then it returns an
// error that matches [ErrUnavailable]. now is the clock.
func (c *Breaker) Do(ctx context.Context, now func() time.Time, f func(context.Context) error) error {
	if err := c.enter(now()); err != nil {
		return err
	}
	return c.watch(ctx, now, f)
}

// watch calls f in any case, and records its error.
func (c *Breaker) watch(ctx context.Context, now func() time.Time, f func(context.Context) error) error {
	err := f(ctx)
	c.leave(ctx, now(), err)
	return err
}

// enter returns errResting if an operation may not be tried now. A trial may be a long upload, so the
// next one does not wait for its end.
func (c *Breaker) enter(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed < tripAfter {
		return nil
	}
	if now.Before(c.trial) {
		return errResting
	}
	c.trial = now.Add(rest)
	return nil
}

// resting reports whether an operation would not be tried now.
func (c *Breaker) resting(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed >= tripAfter && now.Before(c.trial)
}

// leave counts the outcome of an operation. It ignores operations cancelled by their caller, drivers
// without a free connection and objects in use, because they say nothing about the backend.
func (c *Breaker) leave(ctx context.Context, now time.Time, err error) {
	unavailable := errors.Is(err, ErrUnavailable)
	if ctx.Err() != nil && !unavailable || errors.Is(err, ErrBusy) || errors.Is(err, ErrInUse) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !unavailable {
		c.failed = 0
		return
	}
	if c.failed++; c.failed == tripAfter {
		c.trial = now.Add(rest)
	}
}
