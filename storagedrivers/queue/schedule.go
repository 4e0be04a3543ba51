package queue

import (
	"container/list"
	"slices"
	"time"
)

// maxPassed is the number of times that other requests may overtake one whose units are not free.
// After that, released units are reserved for it.
const maxPassed = 8

// stride is divided by the share of a class: the distance by which an admission advances its pass.
const stride = 1 << 20

// waiter is a waiting request.
type waiter struct {
	slot    *Slot
	client  string
	network string
	round   int // of the turns of the clients of its owner
	units   int64
	until   time.Time     // the end of waiting, or zero
	begun   bool          // for a slot that was admitted before
	queue   *ownerQueue   // nil for one that has begun
	element *list.Element // of queue.waiters
	passed  int
	ready   chan struct{} // closed when it is admitted, or refused with err
	err     error
}

// ownerQueue holds the waiting requests of an owner in a class, by their rounds, oldest first.
type ownerQueue struct {
	class   *class
	owner   string
	waiters list.List     // of *waiter
	element *list.Element // of class.rotation
}

// class is a [Class] with its waiting requests.
type class struct {
	Class
	begun    []*waiter              // oldest first, before all others
	owners   map[string]*ownerQueue // by owner
	rotation list.List              // of *ownerQueue, the next one first
	waiting  int                    // in the rotation
	busy     int                    // slots, without those beside others
	pass     int64                  // the class with the lowest one is next
}

func newClass(options Class) *class {
	options.Share = max(options.Share, 1)
	return &class{Class: options, owners: make(map[string]*ownerQueue)}
}

func (q *Queue) enqueue(w *waiter) {
	c, owner := q.classes[w.slot.class], w.slot.owner
	if c.isEmpty() {
		c.pass = max(c.pass, q.now) // no credit for the time without requests
	}
	if q.held[owner] == nil {
		q.held[owner] = new(usage)
	}
	q.held[owner].waiting++
	q.waiting++
	if w.begun {
		c.begun = append(c.begun, w)
		return
	}
	o := c.owners[owner]
	if o == nil {
		o = &ownerQueue{class: c, owner: owner}
		o.element = c.rotation.PushBack(o)
		c.owners[owner] = o
	}
	w.queue = o
	o.insert(w)
	c.waiting++
}

// networkTurns is how many clients of a network may have the same round.
const networkTurns = 5

// insert adds a request to the round after the last one of its client, or to the present one.
func (o *ownerQueue) insert(w *waiter) {
	front, after := o.waiters.Front(), o.waiters.Back()
	if front == nil {
		w.element = o.waiters.PushBack(w)
		return
	}
	first, ofNetwork := front.Value.(*waiter).round, 0 // an ownerQueue holds nothing else
	w.round = first
	for e := front; e != nil; e = e.Next() {
		other := e.Value.(*waiter)
		if other.client == w.client {
			w.round = other.round + 1
		}
		if w.client != "" && other.network == w.network {
			ofNetwork++
		}
	}
	w.round = max(w.round, first+ofNetwork/networkTurns)
	for after.Value.(*waiter).round > w.round { // front has the first round
		after = after.Prev()
	}
	w.element = o.waiters.InsertAfter(w, after)
}

// remove removes a waiting request, whether admitted or not.
func (q *Queue) remove(w *waiter) {
	c := q.classes[w.slot.class]
	if w.begun {
		c.begun = slices.DeleteFunc(c.begun, func(other *waiter) bool { return other == w })
	} else {
		o := w.queue
		o.waiters.Remove(w.element)
		if o.waiters.Len() == 0 {
			c.rotation.Remove(o.element)
			delete(c.owners, o.owner)
		}
		c.waiting--
	}
	q.waiting--
	q.held[w.slot.owner].waiting--
	q.forget(w.slot.owner)
}

func (c *class) isEmpty() bool { return c.waiting == 0 && len(c.begun) == 0 }

// forget removes an owner without slots and waiting requests.
func (q *Queue) forget(owner string) {
	if u := q.held[owner]; u != nil && *u == (usage{}) {
		delete(q.held, owner)
	}
}

func (q *Queue) free() int64 { return q.options.Units - q.used }

// occupy makes s hold a slot, and vacate ends that.
func (q *Queue) occupy(s *Slot) {
	s.held = true
	q.hold(s, 1)
}

func (q *Queue) vacate(s *Slot) {
	s.held = false
	q.hold(s, -1)
}

// hold counts n slots.
func (q *Queue) hold(s *Slot, n int) {
	if s.beside {
		q.beside += n
		q.held[s.owner].beside += n
		return
	}
	q.busy += n
	q.classes[s.class].busy += n
	q.held[s.owner].slots += n
}

// drop releases the units of a slot.
func (q *Queue) drop(s *Slot) {
	q.used -= s.units
	s.units = 0
}

// admit admits as many requests as possible.
func (q *Queue) admit() {
	for {
		f := &fitting{free: q.free()}
		w := q.choose(f.accept)
		if w == nil {
			return
		}
		if w.units > 0 {
			for _, passed := range f.passed {
				passed.passed++
			}
		}
		q.grant(w)
	}
}

// admitNow admits a new slot if no request waits and there is room for it. It then needs no waiter.
func (q *Queue) admitNow(s *Slot, units int64) bool {
	if q.waiting > 0 || units > q.free() {
		return false
	}
	if q.held[s.owner] == nil {
		q.held[s.owner] = new(usage)
	}
	if ok, _ := q.room(s); !ok {
		q.forget(s.owner)
		return false
	}
	c := q.classes[s.class]
	c.pass = max(c.pass, q.now) // no credit for the time without requests
	q.take(s, units)
	return true
}

// grant admits a request and moves its owner to the end of the rotation.
func (q *Queue) grant(w *waiter) {
	q.take(w.slot, w.units)
	if !w.begun {
		q.classes[w.slot.class].rotation.MoveToBack(w.queue.element)
	}
	q.remove(w)
	close(w.ready)
}

// take makes s hold a slot and units, and advances its class.
func (q *Queue) take(s *Slot, units int64) {
	c := q.classes[s.class]
	_, s.beside = q.room(s)
	q.occupy(s)
	s.units += units
	q.used += units
	q.now = c.pass
	c.pass += stride / int64(c.Share)
}

// fitting accepts requests whose units are free. After one that was passed too often it accepts only
// requests without units.
type fitting struct {
	free     int64
	passed   []*waiter
	reserved bool
}

func (f *fitting) accept(w *waiter) bool {
	if w.units == 0 || !f.reserved && w.units <= f.free {
		return true
	}
	f.passed = append(f.passed, w)
	f.reserved = f.reserved || w.passed >= maxPassed
	return false
}

// choose returns the first request, in the order of admission, that may be admitted and that accept
// accepts, or nil if there is none.
func (q *Queue) choose(accept func(*waiter) bool) *waiter {
	if q.waiting == 0 {
		return nil
	}
	for _, c := range q.order() {
		for _, w := range c.begun {
			if ok, _ := q.room(w.slot); ok && accept(w) {
				return w
			}
		}
		for e := c.rotation.Front(); e != nil; e = e.Next() {
			o := e.Value.(*ownerQueue)             // a rotation holds nothing else
			w := o.waiters.Front().Value.(*waiter) // an ownerQueue holds nothing else
			if ok, _ := q.room(w.slot); ok && accept(w) {
				return w
			}
		}
	}
	return nil
}

// room reports whether s may be admitted, and whether that is beside a slot of a later class.
func (q *Queue) room(s *Slot) (ok, beside bool) {
	if q.busy < q.options.Slots && q.mayAdmit(s) {
		return true, false
	}
	if !q.classes[s.class].Beside {
		return false, false
	}
	later := 0
	for _, c := range q.classes[s.class+1:] {
		later += c.busy
	}
	return q.beside < later, true
}

// successor reports whether a request that accept accepts could be admitted in the place of s.
func (q *Queue) successor(s *Slot, accept func(*waiter) bool) bool {
	q.vacate(s)
	defer q.occupy(s)
	return q.choose(accept) != nil
}

// yields returns a function that reports whether s yields to a request, which would fit beside its
// units.
func (q *Queue) yields(s *Slot) func(*waiter) bool {
	f := &fitting{free: q.free()}
	return func(w *waiter) bool {
		ok, _ := q.room(s)
		return f.accept(w) && (w.slot.class < s.class || !ok)
	}
}

// order returns the classes with waiting requests, the next one to admit first.
func (q *Queue) order() []*class {
	if len(q.classes) == 1 {
		return q.classes
	}
	order := slices.DeleteFunc(slices.Clone(q.classes), func(c *class) bool { return c.isEmpty() })
	slices.SortStableFunc(order, func(a, b *class) int { return int(a.pass - b.pass) })
	return order
}

// mayAdmit reports whether the owner of s may have another slot: the last one is reserved for other
// waiting owners.
func (q *Queue) mayAdmit(s *Slot) bool {
	u := q.held[s.owner]
	if s.most > 0 && u.slots >= s.most {
		return false
	}
	if q.options.Spare && u.slots > q.options.Slots-q.busy-1 {
		return false
	}
	return u.slots < max(1, q.options.Slots-1) || q.waiting == u.waiting
}

// shed makes room for w in a full class: it refuses the last request of the owner with the most
// waiting requests. That is w itself if no other owner has more.
func (q *Queue) shed(w *waiter) {
	c := w.queue.class
	if c.Waiting == 0 || c.waiting <= c.Waiting {
		return
	}
	longest := w.queue
	for e := c.rotation.Front(); e != nil; e = e.Next() {
		o := e.Value.(*ownerQueue) // a rotation holds nothing else
		if o.waiters.Len() > longest.waiters.Len() {
			longest = o
		}
	}
	last := longest.waiters.Back().Value.(*waiter) // an ownerQueue holds nothing else
	last.err = ErrFull
	q.remove(last)
	close(last.ready)
	q.admit()
}
