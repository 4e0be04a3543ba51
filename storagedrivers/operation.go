package storagedrivers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// bounded calls do with one time-out for all attempts. It is for operations that transfer no
// object.
func (s *Storage) bounded(ctx context.Context, op, key string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, ErrUnavailable)
	defer cancel()
	return s.do(ctx, op, key, f)
}

// do runs one operation, with a reference to the storage.
func (s *Storage) do(ctx context.Context, op, key string, f func(context.Context) error) error {
	if !s.references.Acquire() {
		return s.wrap(op, key, ErrClosed)
	}
	defer s.references.Release() //nolint:errcheck // closing late is not this operation's failure
	return s.run(ctx, op, key, f)
}

// run validates the key, calls f with retries and wraps its error. The caller holds a reference.
func (s *Storage) run(ctx context.Context, op, key string, f func(context.Context) error) error {
	if key != "" || needsKey(op) {
		if err := ValidKey(key); err != nil {
			return s.wrap(op, key, err)
		}
	}
	ctx, o := s.begin(ctx, op, key)
	return o.end(s.attempt(ctx, op, f))
}

func needsKey(op string) bool {
	return op != "list" && op != "check" && op != "sweep" && op != "space"
}

// attempt calls f with retries, unless the circuit is open. A check is tried in any case, because
// it detects that the backend is available again.
func (s *Storage) attempt(ctx context.Context, op string, f func(context.Context) error) error {
	return s.admitted(ctx, op, func(ctx context.Context) error { return s.repeat(ctx, f) })
}

// admitted calls f once, unless the circuit is open, and records its error in the circuit. A cache has
// a circuit of its own for what it does not hold.
func (s *Storage) admitted(ctx context.Context, op string, f func(context.Context) error) error {
	switch {
	case op == "check":
		return s.circuit.watch(ctx, s.now, f)
	case s.Features().Cached && (op == "open" || op == "stat"):
		return f(ctx)
	}
	return s.circuit.Do(ctx, s.now, f)
}

// repeat calls f up to three times while it returns ErrUnavailable, but not ErrInUse: the driver has
// waited for the object. It does not retry if the backend was silent for half of the time-out, all
// attempts together, whatever the error. For an upload, silence starts at the last Read of its
// source.
func (s *Storage) repeat(ctx context.Context, f func(context.Context) error) error {
	pause, silence := s.pause, time.Duration(0)
	for i := 1; ; i++ {
		start := s.now()
		err := blamed(ctx, f(ctx))
		again := errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrInUse) && !errors.Is(err, errResting) && !network.Silent(err)
		if i == attempts || !again || ctx.Err() != nil {
			return err
		}
		if silence += s.now().Sub(since(ctx, start)); silence >= s.opts.Timeout/2 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
			pause *= 2
			trace.SpanFromContext(ctx).AddEvent("again")
		}
	}
}

// blamed returns err as the error of an operation with ctx. A time-out of this package is the
// backend's fault: ErrUnavailable. If the caller has cancelled the operation, an ErrUnavailable is
// only that of the cut connection.
func blamed(ctx context.Context, err error) error {
	unavailable := errors.Is(err, ErrUnavailable)
	timedOut := errors.Is(context.Cause(ctx), ErrUnavailable) ||
		ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded)
	switch {
	case err != nil && timedOut && !unavailable:
		return errors.Join(ErrUnavailable, err)
	case unavailable && !timedOut && errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%w: %s", context.Canceled, err.Error())
	}
	return err
}

// operation is a running operation.
type operation struct {
	storage *Storage
	op, key string
	start   time.Time
	span    trace.Span
}

// begin starts an operation; the returned context contains its span. The caller must call end.
func (s *Storage) begin(ctx context.Context, op, key string) (context.Context, operation) {
	ctx, span := s.startSpan(ctx, op, key)
	return ctx, operation{storage: s, op: op, key: key, start: s.now(), span: span}
}

// end reports the end of the operation to the observer and the span, and wraps its error.
func (o operation) end(err error) error {
	s := o.storage
	if s.opts.Observe != nil {
		s.opts.Observe(o.op, s.now().Sub(o.start), err)
	}
	endSpan(o.span, o.op, err)
	return s.wrap(o.op, o.key, err)
}

func (s *Storage) wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Storage: s.name, Key: key, Err: err}
}

// openBody is a reader of the driver, with functions to call when it is closed. Further calls of
// Close do nothing.
type openBody struct {
	io.ReadCloser
	done []func() error // nil once closed
}

func (b *openBody) Close() error {
	if b.done == nil {
		return nil
	}
	err := b.ReadCloser.Close()
	for _, done := range b.done {
		err = errors.Join(err, done())
	}
	b.done = nil
	return err
}

// progressKey is the context key of an upload's *progress.
type progressKey struct{}

// progress is the time of an upload's last read of its source. A library may read in another
// goroutine.
type progress struct {
	now  func() time.Time
	read atomic.Pointer[time.Time] // nil before the first Read
}

// withProgress returns a context for an operation that may last as long as its source is read.
func (s *Storage) withProgress(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, &progress{now: s.now})
}

// since returns the later of start and the last Read in the context.
func since(ctx context.Context, start time.Time) time.Time {
	p, ok := ctx.Value(progressKey{}).(*progress)
	if !ok {
		return start
	}
	if read := p.read.Load(); read != nil && read.After(start) {
		return *read
	}
	return start
}

// watchedSource records its reads as progress.
type watchedSource struct {
	io.ReadSeeker
	progress *progress
}

// watched returns r as a source whose reads are progress of the operation in ctx.
func watched(ctx context.Context, r io.ReadSeeker) io.ReadSeeker {
	if p, ok := ctx.Value(progressKey{}).(*progress); ok {
		return watchedSource{r, p}
	}
	return r
}

func (w watchedSource) Read(p []byte) (int, error) {
	n, err := w.ReadSeeker.Read(p)
	now := w.progress.now()
	w.progress.read.Store(&now)
	return n, err
}
