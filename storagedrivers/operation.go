package storagedrivers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/caddymedia/media/storagedrivers/guard"
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

// guarded returns f with a panic of the driver as its error: many callers are in goroutines of
// their own, where it would end the process.
func guarded(f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return guard.Call(func() error { return f(ctx) }) }
}

// admitted calls f once, unless the circuit is open, and records its error in the circuit. A cache
// has a circuit of its own for what it does not hold.
func (s *Storage) admitted(ctx context.Context, op string, f func(context.Context) error) error {
	f = guarded(f)
	switch {
	case op == "check":
		return s.circuit.watch(ctx, s.now, f)
	case s.Features().Cached && (op == "open" || op == "stat"):
		return f(ctx)
	}
	return s.circuit.Do(ctx, s.now, f)
}

// repeat calls f up to three times while it returns ErrUnavailable, but not ErrInUse: the driver
// has waited for the object. It does not retry if the backend was silent for half of the time-out,
// all attempts together, whatever the error. For an upload, silence starts at the last Read of its
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

// enter returns errResting if an operation may not be tried now. A trial may be a long upload, so
// the next one does not wait for its end.
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

// leave counts the outcome of an operation. It ignores operations cancelled by their caller,
// drivers without a free connection and objects in use, because they say nothing about the backend.
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

// scope is the instrumentation scope of the spans.
const scope = "github.com/caddymedia/media/storagedrivers"

var noSpan trace.Span = noop.Span{}

// startSpan starts the span of an operation as a child of the one in ctx, with the same provider.
// It starts none if the parent is not recorded.
func (s *Storage) startSpan(ctx context.Context, op, key string) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, noSpan
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, "media.storage."+op)
	span.SetAttributes(attribute.String("media.storage.name", s.name))
	if key != "" {
		span.SetAttributes(attribute.String("media.key", key))
	}
	return ctx, span
}

// endSpan ends the span of an operation. It records only the operation and the kind of an error,
// because the text of a driver may contain hosts and paths.
func endSpan(span trace.Span, op string, err error) {
	if !span.IsRecording() {
		return
	}
	if err != nil {
		name := kindOf(err).name
		span.SetAttributes(attribute.String("media.result", name))
		if Fault(op, err) {
			span.SetStatus(codes.Error, op+": "+name)
		}
	}
	span.End()
}

// note adds an attribute to the span of the operation in ctx.
func note(ctx context.Context, what attribute.KeyValue) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(what)
	}
}

// kind of an error. Kinds that are no fault are normal states or caused by the caller. For example,
// if a name exists, the caller tries the next one.
type kind struct {
	name  string
	fault bool
	err   error
}

// kinds are in order of precedence, for joined errors.
var kinds = []kind{
	{"in_use", false, ErrInUse},
	{"unavailable", true, ErrUnavailable},
	{"canceled", false, context.Canceled},
	{"timeout", true, context.DeadlineExceeded},
	{"no_space", true, ErrNoSpace},
	{"size_mismatch", true, ErrSizeMismatch},
	{"permission", true, fs.ErrPermission},
	{"changed", false, ErrChanged},
	{"unsupported", false, errors.ErrUnsupported},
	{"invalid_key", false, ErrInvalidKey},
	{"invalid_range", false, ErrInvalidRange},
	{"exists", false, fs.ErrExist},
	{"not_found", false, fs.ErrNotExist},
}

// Fault reports whether the backend is to blame for the outcome of an operation; op is its name as
// in [OpError]. Otherwise err is nil, a normal state, or caused by the caller. A missing object is
// a fault, unless the caller asked for it ("open", "stat", "append", "flush", "adopt"); an existing
// name is none.
func Fault(op string, err error) bool {
	if err == nil {
		return false
	}
	kind := kindOf(err)
	asked := slices.Contains([]string{"open", "stat", "append", "flush", "adopt"}, op)
	return kind.fault || kind.name == "not_found" && !asked
}

func kindOf(err error) kind {
	for _, kind := range kinds {
		if errors.Is(err, kind.err) {
			return kind
		}
	}
	return kind{name: "other", fault: true}
}
