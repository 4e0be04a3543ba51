package queue

import (
	"container/list"
	"slices"
)

// maxPassed is the number of times that other requests may overtake one whose units are not free.
// After that, released units are reserved for it.
const maxPassed = 8

// stride is divided by the share of a class: the distance by which an admission advances its pass.
const stride = 1 << 20

// waiter is a waiting request.
type waiter struct {
	slot     *Slot
	units    int64
	queue    *ownerQueue // nil for a resuming one
	element  *list.Element
	resuming bool
	passed   int
	ready    chan struct{} // closed when it is admitted, or refused with err
	err      error
}

// ownerQueue holds the waiting requests of an owner in a class, oldest first.
type ownerQueue struct {
	class   *class
	owner   string
	waiters list.List     // of *waiter
	element *list.Element // of class.rotation
}

// class is a [Class] with its waiting requests.
type class struct {
	Class
	owners   map[string]*ownerQueue // by owner
	rotation list.List              // of *ownerQueue, the next one first
	waiting  int
	pass     int64 // the class with the lowest one is next
}

func newClass(options Class) *class {
	return &class{Class: Class{Share: max(options.Share, 1), Waiting: options.Waiting}, owners: make(map[string]*ownerQueue)}
}

func (q *Queue) enqueue(index int, w *waiter) {
	c, owner := q.classes[index], w.slot.owner
	o := c.owners[owner]
	if o == nil {
		o = &ownerQueue{class: c, owner: owner}
		o.element = c.rotation.PushBack(o)
		c.owners[owner] = o
	}
	if c.waiting == 0 {
		c.pass = max(c.pass, q.now) // no credit for the time without requests
	}
	if q.held[owner] == nil {
		q.held[owner] = new(usage)
	}
	w.queue = o
	w.element = o.waiters.PushBack(w)
	q.held[owner].waiting++
	c.waiting++
	q.waiting++
}

// remove removes a waiting request, whether admitted or not.
func (q *Queue) remove(w *waiter) {
	if w.resuming {
		q.resuming = slices.DeleteFunc(q.resuming, func(other *waiter) bool { return other == w })
		return
	}
	o := w.queue
	o.waiters.Remove(w.element)
	if o.waiters.Len() == 0 {
		o.class.rotation.Remove(o.element)
		delete(o.class.owners, o.owner)
	}
	o.class.waiting--
	q.waiting--
	q.held[o.owner].waiting--
	q.forget(o.owner)
}

// forget removes an owner without slots and waiting requests.
func (q *Queue) forget(owner string) {
	if *q.held[owner] == (usage{}) {
		delete(q.held, owner)
	}
}

// admit admits as many requests as possible.
func (q *Queue) admit() {
	for {
		w := q.next()
		if w == nil {
			return
		}
		if w.resuming {
			q.remove(w)
		} else {
			q.grant(w)
		}
		w.slot.units = w.units
		q.used += w.units
		close(w.ready)
	}
}

// grant admits a request and moves its owner to the end of the rotation.
func (q *Queue) grant(w *waiter) {
	c := w.queue.class
	q.busy++
	q.held[w.slot.owner].slots++
	q.now = c.pass
	c.pass += stride / int64(c.Share)
	c.rotation.MoveToBack(w.queue.element)
	q.remove(w)
}

// next returns the next request to admit, or nil if there is none. Requests that already hold a
// slot come first.
func (q *Queue) next() *waiter {
	var passed []*waiter
	fits := func(w *waiter) bool {
		if w.units <= q.options.Units-q.used {
			return true
		}
		passed = append(passed, w)
		return false
	}
	found := q.choose(fits, func() bool {
		return slices.ContainsFunc(passed, func(w *waiter) bool { return w.passed >= maxPassed })
	})
	if found != nil {
		for _, w := range passed {
			w.passed++
		}
	}
	return found
}

// choose returns the first request in rotation order that fits. It returns nil early if units are
// reserved for a request that does not fit.
func (q *Queue) choose(fits func(*waiter) bool, reserved func() bool) *waiter {
	for _, w := range q.resuming {
		if fits(w) {
			return w
		}
		if reserved() {
			return nil
		}
	}
	if q.busy == q.options.Slots || q.waiting == 0 {
		return nil
	}
	for _, c := range q.order() {
		for e := c.rotation.Front(); e != nil; e = e.Next() {
			o := e.Value.(*ownerQueue) // a rotation holds nothing else
			if !q.mayAdmit(o.owner) {
				continue
			}
			w := o.waiters.Front().Value.(*waiter) // an ownerQueue holds nothing else
			if fits(w) {
				return w
			}
			if reserved() {
				return nil
			}
		}
	}
	return nil
}

// order returns the classes with waiting requests, the next one to admit first.
func (q *Queue) order() []*class {
	if len(q.classes) == 1 {
		return q.classes
	}
	order := slices.DeleteFunc(slices.Clone(q.classes), func(c *class) bool { return c.waiting == 0 })
	slices.SortStableFunc(order, func(a, b *class) int { return int(a.pass - b.pass) })
	return order
}

// mayAdmit reports whether an owner may have another slot: the last one is reserved for other
// waiting owners.
func (q *Queue) mayAdmit(owner string) bool {
	u := q.held[owner]
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
