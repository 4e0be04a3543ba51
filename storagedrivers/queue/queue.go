// Package queue bounds concurrent work and shares it fairly. It stops no work that takes too long:
// its callers do. Begin with [Queue], which serves waiting owners in rotation. A [Pool] limits
// owners that cannot wait by the remaining capacity, and [HasRoom] is its rule for the clients of
// one owner. The media service and drivers with a bounded number of connections use them.
//
// The package is stable.
package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// Waiting is the number of requests that may wait. 0 means no limit.
	Waiting int
}

// Request asks for a slot and units.
type Request struct {
	// Owner is the account or address that the request counts for.
	Owner string
	// Client and Network, if set, are those of one of many clients of the owner, see [Party]. The
	// requests without a network, which are the owner's own, take turns with those of its clients.
	// The clients take turns among themselves, and in each turn a network has at most five.
	Client, Network string
	// Units is the number of units that the request needs besides its slot.
	Units int64
	// Most is the number of slots that the owner may hold. 0 means no limit.
	Most int
	// UnitsOnly asks for units without a slot, for work that others bound.
	UnitsOnly bool
}

// Queue admits requests to a bounded number of slots.
//
// The queue serves waiting owners in rotation, whatever the number of their requests. While other
// owners wait, no owner gets all slots (unless there is only one). In a full queue the owner with
// the most waiting requests loses its last one to an owner with fewer.
//
// A Queue is safe for concurrent use and starts no goroutine. An owner uses memory only while it
// holds or waits for a slot.
type Queue struct {
	options Options

	mu      sync.Mutex
	busy    int            // slots
	used    int64          // units
	held    map[string]int // slots by owner
	lines   []*line        // of the owners with waiting requests, the next one first
	waiting int            // requests in all lines
}

// line holds the waiting requests of an owner, by their rounds, oldest first.
type line struct {
	owner   string
	waiters []*waiter
	own     bool // the last one that was admitted was the owner's own
}

// waiter is a waiting request.
type waiter struct {
	Request
	round  int // of the turns of the clients of its owner
	passed int // how often others with units have overtaken it
	ready  chan struct{}
	err    error // set before ready is closed, if it is refused
}

// New returns a Queue. It panics if there are no slots, which is a programming error.
func New(options Options) *Queue {
	if options.Slots < 1 {
		panic("a queue without slots")
	}
	return &Queue{options: options, held: make(map[string]int)}
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

// Slot is the permission to work. It must be released once.
type Slot struct {
	queue   *Queue
	request Request
}

// Units returns the number of units that the slot holds.
func (s *Slot) Units() int64 { return s.request.Units }

// Release releases the slot and its units.
func (s *Slot) Release() {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hold(s.request, -1)
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
	q.mu.Lock()
	if q.waiting == 0 && q.hasSlot(r, 0) && q.used+r.Units <= q.options.Units {
		q.hold(r, 1)
		q.mu.Unlock()
		return &Slot{q, r}, nil
	}
	w := &waiter{Request: r, ready: make(chan struct{})}
	q.enqueue(w)
	q.admit()
	q.shed(w)
	q.mu.Unlock()
	if err := q.wait(ctx, w); err != nil {
		return nil, err
	}
	return &Slot{q, r}, nil
}

// wait returns when w is admitted or refused.
func (q *Queue) wait(ctx context.Context, w *waiter) error {
	var over <-chan time.Time
	if q.options.Wait > 0 {
		over = time.After(q.options.Wait)
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

// networkTurns is how many clients of a network may have the same round.
const networkTurns = 5

// enqueue adds a request to its owner's line, in the round after the last one of its client, or in
// the present one.
func (q *Queue) enqueue(w *waiter) {
	q.waiting++
	l := q.lineOf(w.Owner)
	if l == nil {
		q.lines = append(q.lines, &line{owner: w.Owner, waiters: []*waiter{w}})
		return
	}
	first, ofNetwork := l.waiters[0].round, 0
	w.round = first
	for _, other := range l.waiters {
		if other.Client == w.Client {
			w.round = other.round + 1
		}
		if w.Network != "" && other.Network == w.Network {
			ofNetwork++
		}
	}
	w.round = max(w.round, first+ofNetwork/networkTurns)
	at := len(l.waiters)
	for l.waiters[at-1].round > w.round { // the first one has the first round
		at--
	}
	l.waiters = slices.Insert(l.waiters, at, w)
}

// next returns the first request of the side whose turn it is, the owner's or that of its clients.
func (l *line) next() *waiter {
	for _, w := range l.waiters {
		if w.isOwn() != l.own {
			return w
		}
	}
	return l.waiters[0]
}

// isOwn reports whether the request is of the owner itself, and of none of its clients.
func (w *waiter) isOwn() bool { return w.Network == "" }

// lineOf returns the line of an owner, or nil if none of its requests waits.
func (q *Queue) lineOf(owner string) *line {
	if i := slices.IndexFunc(q.lines, func(l *line) bool { return l.owner == owner }); i >= 0 {
		return q.lines[i]
	}
	return nil
}

// remove removes a waiting request, whether admitted or not.
func (q *Queue) remove(w *waiter) {
	q.waiting--
	l := q.lineOf(w.Owner)
	l.waiters = slices.DeleteFunc(l.waiters, func(other *waiter) bool { return other == w })
	if len(l.waiters) == 0 {
		q.lines = slices.DeleteFunc(q.lines, func(other *line) bool { return other == l })
	}
}

// hold counts n times what a request asks for.
func (q *Queue) hold(r Request, n int) {
	q.used += int64(n) * r.Units
	if r.UnitsOnly {
		return
	}
	q.busy += n
	if q.held[r.Owner] += n; q.held[r.Owner] == 0 {
		delete(q.held, r.Owner)
	}
}

// hasSlot reports whether there is a slot for a request, if so many of its owner's requests wait.
// The last slot is reserved for other waiting owners.
func (q *Queue) hasSlot(r Request, waiting int) bool {
	if r.UnitsOnly {
		return true
	}
	held := q.held[r.Owner]
	if q.busy >= q.options.Slots || r.Most > 0 && held >= r.Most {
		return false
	}
	return held < max(1, q.options.Slots-1) || q.waiting == waiting
}

// maxPassed is the number of times that other requests may overtake one whose units are not free.
// After that, released units are reserved for it.
const maxPassed = 8

// admit admits as many requests as possible.
func (q *Queue) admit() {
	for {
		w, passed := q.next()
		if w == nil {
			return
		}
		if w.Units > 0 {
			for _, other := range passed {
				other.passed++
			}
		}
		q.hold(w.Request, 1)
		l := q.lineOf(w.Owner)
		l.own = w.isOwn()
		q.lines = append(slices.DeleteFunc(q.lines, func(other *line) bool { return other == l }), l)
		q.remove(w)
		close(w.ready)
	}
}

// next returns the first request in the rotation that may be admitted, or nil. passed are those
// before it whose units are not free.
func (q *Queue) next() (w *waiter, passed []*waiter) {
	reserved := false
	for _, l := range q.lines {
		w := l.next()
		switch {
		case !q.hasSlot(w.Request, len(l.waiters)):
		case w.Units == 0 || !reserved && q.used+w.Units <= q.options.Units:
			return w, passed
		default:
			passed = append(passed, w)
			reserved = reserved || w.passed >= maxPassed
		}
	}
	return nil, nil
}

// shed makes room for w in a full queue: it refuses the last request of the owner with the most
// waiting requests. That is w itself, or one of its owner, if no other owner has more.
func (q *Queue) shed(w *waiter) {
	if q.options.Waiting == 0 || q.waiting <= q.options.Waiting {
		return
	}
	longest := q.lineOf(w.Owner)
	for _, l := range q.lines {
		if len(l.waiters) > len(longest.waiters) {
			longest = l
		}
	}
	last := longest.waiters[len(longest.waiters)-1]
	last.err = ErrFull
	q.remove(last)
	close(last.ready)
	q.admit()
}

// Party is a caller that shares a capacity.
type Party struct {
	// Owner is the account or address that the capacity counts for.
	Owner string
	// Ticket, if set, identifies a ticket of the owner, and Most is the most that may be held with it.
	// 0 means no limit.
	Ticket string
	Most   int64
	// Client and Network, if set, are the addresses that count as the client of one of many callers
	// of the owner, and those of its network. Such callers leave a reserve to the owner itself, and
	// share the rest by client and network, see [HasRoom].
	Client, Network string
}

// Request returns a request of the party.
func (p Party) Request() Request {
	return Request{Owner: p.Owner, Client: p.Client, Network: p.Network}
}

// Held are parts of a capacity that an owner holds, and those of them that one ticket, one client
// and its network hold.
type Held struct{ Owner, Ticket, Client, Network int64 }

const (
	// ownerReserve is the share of a capacity that clients leave to its owner: a tenth.
	ownerReserve = 10
	// clientShare is how many times as much a client leaves free: it may have a third of the
	// capacity if it is alone. A network may have half of it.
	clientShare = 2
)

// HasRoom reports whether a party may have n more of a capacity, of which held is in use. An owner
// may have all of it. Clients leave a tenth to it. A client may have half as much as it leaves
// free, and its network as much as it leaves free, so a few of them cannot shut out the next one.
// One without any may have whatever fits. A ticket may have its most.
func HasRoom(p Party, capacity int64, held Held, n int64) bool {
	if p.Most > 0 && held.Ticket+n > p.Most {
		return false
	}
	free := capacity - held.Owner
	if p.Client == "" {
		return n <= free
	}
	free -= capacity / ownerReserve
	return n <= free &&
		(held.Client == 0 || held.Client+n <= free/clientShare) &&
		(held.Network == 0 || held.Network+n <= free)
}

// Pool lends parts of a capacity to parties that cannot wait.
//
// An owner may hold at most as much as stays free: half of the capacity if alone, a third beside
// another owner, and so on. So there is always something left for a new owner. The clients of an
// owner share that by [HasRoom].
//
// A Pool is safe for concurrent use. Parties use memory only while they hold something.
type Pool struct {
	capacity int64

	mu   sync.Mutex
	used int64
	held map[share]int64
}

// NewPool returns a Pool of capacity.
func NewPool(capacity int64) *Pool { return &Pool{capacity: capacity, held: make(map[share]int64)} }

// Acquire lends n to a party, if possible, and reports whether it did. The caller must release it.
func (p *Pool) Acquire(party Party, n int64) bool { return p.AcquireWithin(party, n, p.capacity) }

// AcquireWithin is Acquire for an owner that may hold at most limit.
func (p *Pool) AcquireWithin(party Party, n, limit int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := Held{p.held[share{owner: party.Owner}], p.held[party.ticket()], p.held[party.client()], p.held[party.network()]}
	limit = min(limit, (p.capacity-p.used+held.Owner)/2)
	if !HasRoom(party, limit, held, n) {
		return false
	}
	p.lend(party, n)
	return true
}

// Release returns n that was lent to a party.
func (p *Pool) Release(party Party, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lend(party, -n)
}

// lend adds n to the parts of a party.
func (p *Pool) lend(party Party, n int64) {
	p.used += n
	shares := []share{{owner: party.Owner}, party.ticket(), party.client(), party.network()}
	if party.Client == "" {
		shares = shares[:1]
	}
	for _, s := range shares {
		if p.held[s] += n; p.held[s] == 0 {
			delete(p.held, s)
		}
	}
}

// share names who holds a part: an owner, or one of its tickets, clients or networks.
type share struct{ owner, kind, name string }

func (p Party) ticket() share  { return share{p.Owner, "ticket", p.Ticket} }
func (p Party) client() share  { return share{p.Owner, "client", p.Client} }
func (p Party) network() share { return share{p.Owner, "network", p.Network} }

// Used returns the amount on loan.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}
