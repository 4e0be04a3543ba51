package render

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Clock measures work. It returns a function, for any goroutine, that returns how long the thread
// that called Clock has worked since.
type Clock func() (worked func() time.Duration)

// Elapsed is the Clock that counts all time, also while other programs have the processor.
func Elapsed() func() time.Duration {
	start := time.Now() //nolint:forbidigo // this is the clock
	return func() time.Duration { return time.Since(start) }
}

// patience is how many times its limit work may take on a machine that is busy with other work.
const patience = 5

// errStarved means that work had too little of the processor.
var errStarved = fmt.Errorf("%w: the machine is busy with other work", ErrBusy)

// limited calls f with a context that ends with [ErrTime] once f has worked for a limit. So a busy
// machine, or a slow disk, is no property of an image. The context ends with errStarved if f has
// got too little of the processor for long. f must work in its goroutine, and end with its context.
func (c Clock) limited(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	worked := c()
	go func() {
		next, end := time.NewTimer(limit), time.NewTimer(patience*limit)
		defer next.Stop()
		defer end.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-end.C:
				cancel(errStarved)
			case <-next.C:
				left := limit - worked()
				if left <= 0 {
					cancel(ErrTime)
				}
				next.Reset(max(left, limit/100))
			}
		}
	}()
	return f(ctx)
}
