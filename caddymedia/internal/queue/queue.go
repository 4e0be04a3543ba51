// Package queue bounds concurrent work and shares it fairly. A [Queue] serves waiting owners in
// rotation. A [Pool] limits owners that cannot wait by the remaining capacity.
package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Errors of [Queue.Acquire].
var (
	// ErrFull means that the queue has no room for the request.
	ErrFull = errors.New("the queue is full")
	// ErrTimeout means that the waiting time is over.
	ErrTimeout = errors.New("waiting in the queue took too long")
	// ErrTooLarge means that a request asks for more units than there are.
	ErrTooLarge = errors.New("the request exceeds the capacity")
)

// Options of a Queue.
type Options struct {
	// Slots is the number of requests admitted at the same time, at least 1.
	Slots int
	// Units is the capacity that admitted requests share, for example of memory. 0 means that
	// requests ask for no units.
	Units int64
	// Wait is the longest waiting time of a request. 0 means no limit.
	Wait time.Duration
	// Classes of requests. None means one class without a limit on waiting requests.
	Classes []Class
}

// Class of requests. Each class has a queue of its own, so that none can fill that of another.
type Class struct {
	// Share weighs the class: while several classes wait, they are admitted in proportion to their
	// shares. 0 means 1.
	Share int
	// Waiting is the number of requests of the class that may wait. 0 means no limit.
	Waiting int
}

// Request asks for a slot.
type Request struct {
	// Owner is the account or address that the request counts for.
	Owner string
	// Class is an index of [Options.Classes].
	Class int
	// Units is the number of units that the request needs besides its slot.
	Units int64
}

// Queue admits requests to a bounded number of slots.
//
// The queue serves waiting owners in rotation, whatever the number of their requests. While other
// owners wait, no owner gets all slots (unless there is only one). In a full class the owner with
// the most waiting requests loses its last one to an owner with fewer.
//
// A Queue is safe for concurrent use and starts no goroutine. An owner uses memory only while it
// holds or waits for a slot.
type Queue struct {
	options Options

	mu       sync.Mutex
	classes  []*class
	held     map[string]*usage // by owner, for those with slots or waiting requests
	resuming []*waiter         // with a slot, waiting for units, oldest first
	busy     int
	used     int64
	waiting  int
	now      int64 // the pass of the last admitted class
}

// usage counts the slots and the waiting requests of an owner.
type usage struct{ slots, waiting int }

// New returns a Queue. It panics if there are no slots, which is a programming error.
func New(options Options) *Queue {
	if options.Slots < 1 {
		panic("a queue without slots")
	}
	q := &Queue{options: options, held: make(map[string]*usage)}
	if len(options.Classes) == 0 {
		q.classes = []*class{newClass(Class{})}
	}
	for _, c := range options.Classes {
		q.classes = append(q.classes, newClass(c))
	}
	return q
}

// Waiting returns the number of requests waiting for a slot.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// Busy returns the number of held slots.
func (q *Queue) Busy() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy
}

// Contended reports whether any request waits, for a slot or for units.
func (q *Queue) Contended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting > 0 || len(q.resuming) > 0
}

// Acquire waits for a slot and its units. The caller must release it. The error is [ErrFull],
// [ErrTimeout], [ErrTooLarge] or the cause of ctx.
func (q *Queue) Acquire(ctx context.Context, r Request) (*Slot, error) {
	if r.Units > q.options.Units {
		return nil, fmt.Errorf("%w: %d of %d", ErrTooLarge, r.Units, q.options.Units)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s := &Slot{queue: q, owner: r.Owner}
	if q.options.Wait > 0 {
		s.until = time.Now().Add(q.options.Wait) //nolint:forbidigo // timers have no other clock
	}
	w := &waiter{slot: s, units: r.Units, ready: make(chan struct{})}
	q.mu.Lock()
	q.enqueue(r.Class, w)
	q.admit()
	q.shed(w)
	q.mu.Unlock()
	if err := q.wait(ctx, w); err != nil {
		return nil, err
	}
	return s, nil
}

// Slot is the permission to work. It must be released once, and is not safe for concurrent use.
type Slot struct {
	queue *Queue
	owner string
	units int64
	until time.Time // the end of all waiting
}

// Units returns the number of units that the slot holds.
func (s *Slot) Units() int64 { return s.units }

// Drop releases the units and keeps the slot.
func (s *Slot) Drop() {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used -= s.units
	s.units = 0
	q.admit()
}

// Change releases the units and waits for another number of them, so that slots never wait for each
// other. All waiting for the slot counts against [Options.Wait]. After an error, one of Acquire's,
// the slot holds no units and must still be released.
func (s *Slot) Change(ctx context.Context, units int64) error {
	q := s.queue
	s.Drop()
	switch {
	case units > q.options.Units:
		return fmt.Errorf("%w: %d of %d", ErrTooLarge, units, q.options.Units)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	w := &waiter{slot: s, units: units, ready: make(chan struct{}), resuming: true}
	q.mu.Lock()
	q.resuming = append(q.resuming, w)
	q.admit()
	q.mu.Unlock()
	return q.wait(ctx, w)
}

// Release releases the slot and its units.
func (s *Slot) Release() {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used -= s.units
	s.units = 0
	q.busy--
	q.held[s.owner].slots--
	q.forget(s.owner)
	q.admit()
}

// wait returns when w is admitted or refused.
func (q *Queue) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.ready: // at once: no timer is needed
		return w.err
	default:
	}
	var over <-chan time.Time
	if !w.slot.until.IsZero() {
		timer := time.NewTimer(time.Until(w.slot.until))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-w.ready:
		return w.err
	case <-over:
		return q.abandon(w, ErrTimeout)
	case <-ctx.Done():
		return q.abandon(w, context.Cause(ctx))
	}
}

// abandon removes a waiting request and returns err. If the request was admitted or refused
// meanwhile, abandon returns that result.
func (q *Queue) abandon(w *waiter, err error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-w.ready: // meanwhile
		return w.err
	default:
	}
	q.remove(w)
	q.admit() // a request with many units may have blocked others
	return err
}
