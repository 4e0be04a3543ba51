package variant

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Limits bound what is worked on at a time. The zero value means the defaults.
type Limits struct {
	// Workers is how many pictures are worked on at a time. 0 means one for each
	// processor.
	Workers int
	// Memory is how many bytes the pictures that are worked on may take together. 0
	// means [DefaultMemory].
	Memory int64
	// Queue is how many pictures may wait. 0 means [DefaultQueue].
	Queue int
	// Wait is how long a picture waits at most. 0 means [DefaultWait].
	Wait time.Duration
	// Time is how long an encoder may take for one picture. 0 means [DefaultTime].
	Time time.Duration
}

// Defaults of [Limits].
const (
	DefaultMemory = 512 << 20
	DefaultQueue  = 100
	DefaultWait   = 30 * time.Second
	DefaultTime   = time.Minute
)

func (l Limits) withDefaults() Limits {
	if l.Workers <= 0 {
		l.Workers = runtime.GOMAXPROCS(0)
	}
	if l.Memory <= 0 {
		l.Memory = DefaultMemory
	}
	if l.Queue <= 0 {
		l.Queue = DefaultQueue
	}
	if l.Wait <= 0 {
		l.Wait = DefaultWait
	}
	if l.Time <= 0 {
		l.Time = DefaultTime
	}
	return l
}

// ErrBusy is a picture that could not be worked on because of the others: the line is too
// long, or took too long.
var ErrBusy = errors.New("too many pictures are being worked on")

// line lets in so many pictures at a time, first come first served.
type line struct {
	limits  Limits
	places  *semaphore.Weighted
	memory  *semaphore.Weighted
	waiting atomic.Int64
	working atomic.Int64
	garbage atomic.Int64 // about how many bytes were set free since the last collection
}

func newLine(limits Limits) *line {
	return &line{
		limits: limits, places: semaphore.NewWeighted(int64(limits.Workers)),
		memory: semaphore.NewWeighted(limits.Memory),
	}
}

// enter waits for a place with memory. The caller must leave it, unless there is an
// error: ErrBusy, or that of ctx.
func (l *line) enter(ctx context.Context, memory int64) (*place, error) {
	p := &place{line: l, until: time.Now().Add(l.limits.Wait)} //nolint:forbidigo // there is no other clock for a context
	if !l.places.TryAcquire(1) {
		if l.waiting.Add(1) > int64(l.limits.Queue) {
			l.waiting.Add(-1)
			return nil, fmt.Errorf("%w: %d are waiting", ErrBusy, l.limits.Queue)
		}
		err := p.wait(ctx, l.places, 1)
		l.waiting.Add(-1)
		if err != nil {
			return nil, err
		}
	}
	if err := p.change(ctx, memory); err != nil {
		l.places.Release(1)
		return nil, err
	}
	l.working.Add(1)
	return p, nil
}

// place is where one picture is worked on.
type place struct {
	line   *line
	until  time.Time // all of its waiting ends
	memory int64
}

func (p *place) wait(ctx context.Context, s *semaphore.Weighted, n int64) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if s.TryAcquire(n) { // also when the time for waiting is over
		return nil
	}
	ctx, cancel := context.WithDeadlineCause(ctx, p.until, ErrBusy)
	defer cancel()
	if s.Acquire(ctx, n) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// change gives back the memory and waits for another amount: who held on to the one while
// waiting for the other could wait for ever. After an error it has none.
func (p *place) change(ctx context.Context, memory int64) error {
	p.giveBack()
	if err := p.wait(ctx, p.line.memory, memory); err != nil {
		return err
	}
	p.memory = memory
	return nil
}

// giveBack counts what was in use as garbage. The collector alone would let it grow to as
// much again as is in use, beyond the limit on memory.
func (p *place) giveBack() {
	l := p.line
	if l.garbage.Add(p.memory) > l.limits.Memory/8 {
		l.garbage.Store(0)
		runtime.GC()
	}
	l.memory.Release(p.memory)
	p.memory = 0
}

func (p *place) leave() {
	p.giveBack()
	p.line.working.Add(-1)
	p.line.places.Release(1)
}
