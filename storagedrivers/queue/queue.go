// Package queue bounds concurrent work and shares it fairly. A [Queue] serves waiting owners in
// rotation. A [Pool] limits owners that cannot wait by the remaining capacity, and [HasRoom] is its
// rule for the clients of one owner. The media service and drivers with a bounded number of
// connections use them.
//
// The package is stable.
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
	// PerOwner is the number of requests of an owner, admitted or waiting. 0 means no limit.
	PerOwner int
	// Spare limits an owner to one slot more than stay free, so that there is always one for a new
	// owner of the first few. It is for slots that are held for an unknown time, such as by the
	// downloads of slow clients.
	Spare bool
	// Check, if set, is called before a request is admitted or waits, with the slots and the
	// waiting requests of its owner, and with the slots of all. Its error refuses the request. It
	// must not use the queue.
	Check func(r Request, slots, waiting, busy int) error
}

// Class of requests. Each class has a queue of its own, so that none can fill that of another. A slot
// yields to requests of the classes before its own, see [Slot.Yield].
type Class struct {
	// Share weighs the class: while several classes wait, they are admitted in proportion to their
	// shares. 0 means 1.
	Share int
	// Waiting is the number of requests of the class that may wait. 0 means no limit.
	Waiting int
	// Beside admits requests that are soon done beside slots of the later classes, one for each, if
	// they would have to wait.
	Beside bool
}

// Request asks for a slot.
type Request struct {
	// Owner is the account or address that the request counts for.
	Owner string
	// Client and Network, if set, are those of one of many clients of the owner, see [Party]. The
	// clients take turns. In each turn a network has at most five.
	Client, Network string
	// Class is an index of [Options.Classes].
	Class int
	// Units is the number of units that the request needs besides its slot.
	Units int64
	// Most is the number of slots that the owner may hold. 0 means no limit.
	Most int
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

	mu      sync.Mutex
	classes []*class
	held    map[string]*usage // by owner, for those with slots or waiting requests
	busy    int
	beside  int // slots of classes with Beside, not in busy
	used    int64
	waiting int
	now     int64 // the pass of the last admitted class
}

// usage counts the slots, those beside others and the waiting requests of an owner.
type usage struct{ slots, beside, waiting int }

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
	return q.busy + q.beside
}

// Held returns the number of slots and of waiting requests of an owner.
func (q *Queue) Held(owner string) (slots, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.heldBy(owner)
}

func (q *Queue) heldBy(owner string) (slots, waiting int) {
	if u := q.held[owner]; u != nil {
		return u.slots + u.beside, u.waiting
	}
	return 0, 0
}

// Resize sets the number of slots. Slots beyond it stay held until they are released.
func (q *Queue) Resize(slots int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.options.Slots = slots
	q.admit()
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
	s := &Slot{queue: q, owner: r.Owner, class: r.Class, most: r.Most}
	if q.options.Wait > 0 {
		s.until = time.Now().Add(q.options.Wait) //nolint:forbidigo // timers have no other clock
	}
	q.mu.Lock()
	if u := q.held[r.Owner]; u != nil && q.options.PerOwner > 0 && u.slots+u.waiting >= q.options.PerOwner {
		q.mu.Unlock()
		return nil, ErrFull
	}
	if check := q.options.Check; check != nil {
		slots, waiting := q.heldBy(r.Owner)
		if err := check(r, slots, waiting, q.busy+q.beside); err != nil {
			q.mu.Unlock()
			return nil, err
		}
	}
	if q.admitNow(s, r.Units) {
		q.mu.Unlock()
		return s, nil
	}
	w := &waiter{slot: s, client: r.Client, network: r.Network, units: r.Units, until: s.until, ready: make(chan struct{})}
	q.enqueue(w)
	q.admit()
	q.shed(w)
	q.mu.Unlock()
	if err := q.wait(ctx, w); err != nil {
		return nil, err
	}
	return s, nil
}

// Slot is the permission to work. It must be released once. Only [Slot.Contended] is safe for
// concurrent use.
type Slot struct {
	queue  *Queue
	owner  string
	class  int
	most   int
	units  int64
	held   bool      // false while it waits
	beside bool      // a slot of a later class
	until  time.Time // the end of all waiting, but that of Yield
}

// Units returns the number of units that the slot holds.
func (s *Slot) Units() int64 { return s.units }

// Contended reports whether a request of another owner could be admitted in the place of the slot.
func (s *Slot) Contended() bool {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return s.held && q.successor(s, func(w *waiter) bool {
		return w.slot.owner != s.owner && w.units <= q.free()+s.units
	})
}

// Yield lets other requests go first: those of earlier classes, and those of other owners if the
// owner has all slots. The slot keeps its units. It comes before new requests of its class, and its
// waiting has no limit. The error is the cause of ctx. After it the slot must still be released, and
// the next Yield waits until it is admitted again.
func (s *Slot) Yield(ctx context.Context) error {
	q := s.queue
	q.mu.Lock()
	if s.held {
		if q.waiting == 0 || !q.successor(s, q.yields(s)) {
			q.mu.Unlock()
			return nil
		}
		q.vacate(s)
	}
	w := &waiter{slot: s, ready: make(chan struct{}), begun: true}
	q.enqueue(w)
	q.admit()
	q.mu.Unlock()
	return q.wait(ctx, w)
}

// Change releases the slot and its units, and waits for a slot with another number of them. So no
// slot waits for units of another. It comes before new requests of its class. All waiting of Acquire
// and Change counts against [Options.Wait]. After an error, one of Acquire's, the slot holds no units
// and must still be released.
func (s *Slot) Change(ctx context.Context, units int64) error {
	q := s.queue
	q.mu.Lock()
	if s.held {
		q.vacate(s)
	}
	q.drop(s)
	w := &waiter{slot: s, units: units, until: s.until, ready: make(chan struct{}), begun: true}
	err := context.Cause(ctx)
	if units > q.options.Units {
		err = fmt.Errorf("%w: %d of %d", ErrTooLarge, units, q.options.Units)
	}
	if err == nil {
		q.enqueue(w)
	}
	q.forget(s.owner)
	q.admit()
	q.mu.Unlock()
	if err != nil {
		return err
	}
	return q.wait(ctx, w)
}

// Release releases the slot and its units.
func (s *Slot) Release() {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.held {
		q.vacate(s)
	}
	q.drop(s)
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
	if !w.until.IsZero() {
		timer := time.NewTimer(time.Until(w.until))
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
