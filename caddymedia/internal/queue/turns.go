package queue

import (
	"container/list"
	"slices"
)

// maxPassed is how often a request whose units are not free may be passed by others. Then the units
// that are released are kept for it.
const maxPassed = 8

// stride is divided by the share of a class; it is the distance that an admission moves the class.
const stride = 1 << 20

// waiter is a request that waits.
type waiter struct {
	slot     *Slot
	units    int64
	line     *line // nil for one that resumes
	place    *list.Element
	resuming bool
	passed   int
	ready    chan struct{} // closed when it is admitted, or when it has to go with err
	err      error
}

// line holds the waiting requests of an owner in a class, in the order of their coming.
type line struct {
	class   *class
	owner   string
	waiters list.List     // of *waiter
	turn    *list.Element // of class.turns
}

// class is a [Class] with its waiting requests.
type class struct {
	Class
	lines   map[string]*line // by owner
	turns   list.List        // of *line, the next one first
	waiting int
	pass    int64 // the class with the lowest one is next
}

func newClass(options Class) *class {
	return &class{Class: Class{Share: max(options.Share, 1), Waiting: options.Waiting}, lines: make(map[string]*line)}
}

func (q *Queue) enqueue(index int, w *waiter) {
	c, owner := q.classes[index], w.slot.owner
	l := c.lines[owner]
	if l == nil {
		l = &line{class: c, owner: owner}
		l.turn = c.turns.PushBack(l)
		c.lines[owner] = l
	}
	if c.waiting == 0 {
		c.pass = max(c.pass, q.now) // no credit for the time without requests
	}
	if q.held[owner] == nil {
		q.held[owner] = new(usage)
	}
	w.line = l
	w.place = l.waiters.PushBack(w)
	q.held[owner].waiting++
	c.waiting++
	q.waiting++
}

// remove takes a request out of its queue, whether it is admitted or not.
func (q *Queue) remove(w *waiter) {
	if w.resuming {
		q.resuming = slices.DeleteFunc(q.resuming, func(other *waiter) bool { return other == w })
		return
	}
	l := w.line
	l.waiters.Remove(w.place)
	if l.waiters.Len() == 0 {
		l.class.turns.Remove(l.turn)
		delete(l.class.lines, l.owner)
	}
	l.class.waiting--
	q.waiting--
	q.held[l.owner].waiting--
	q.forget(l.owner)
}

// forget drops an owner without slots and waiting requests.
func (q *Queue) forget(owner string) {
	if *q.held[owner] == (usage{}) {
		delete(q.held, owner)
	}
}

// admit admits as many requests as can be.
func (q *Queue) admit() {
	for {
		w := q.next()
		if w == nil {
			return
		}
		if w.resuming {
			q.remove(w)
		} else {
			q.take(w)
		}
		w.slot.units = w.units
		q.used += w.units
		close(w.ready)
	}
}

// take admits a request and moves its owner to the end of the rotation.
func (q *Queue) take(w *waiter) {
	c := w.line.class
	q.busy++
	q.held[w.slot.owner].slots++
	q.now = c.pass
	c.pass += stride / int64(c.Share)
	c.turns.MoveToBack(w.line.turn)
	q.remove(w)
}

// next returns the request to be admitted next, nil if there is none. Requests that hold a slot
// already come first.
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

// choose returns the first request in the order of turns that fits. It ends early where units must
// be kept for one that does not.
func (q *Queue) choose(fits func(*waiter) bool, kept func() bool) *waiter {
	for _, w := range q.resuming {
		if fits(w) {
			return w
		}
		if kept() {
			return nil
		}
	}
	if q.busy == q.options.Slots || q.waiting == 0 {
		return nil
	}
	for _, c := range q.order() {
		for turn := c.turns.Front(); turn != nil; turn = turn.Next() {
			l := turn.Value.(*line) // turns holds nothing else
			if !q.mayTake(l.owner) {
				continue
			}
			w := l.waiters.Front().Value.(*waiter) // a line holds nothing else
			if fits(w) {
				return w
			}
			if kept() {
				return nil
			}
		}
	}
	return nil
}

// order returns the classes with waiting requests, the one whose turn it is first.
func (q *Queue) order() []*class {
	if len(q.classes) == 1 {
		return q.classes
	}
	order := slices.DeleteFunc(slices.Clone(q.classes), func(c *class) bool { return c.waiting == 0 })
	slices.SortStableFunc(order, func(a, b *class) int { return int(a.pass - b.pass) })
	return order
}

// mayTake reports whether an owner may have one more slot: the last one is kept for others that wait.
func (q *Queue) mayTake(owner string) bool {
	u := q.held[owner]
	return u.slots < max(1, q.options.Slots-1) || q.waiting == u.waiting
}

// shed makes room where w waits in a class that is full: it refuses the last request of the owner with
// the most of them, which is w itself if no other owner has more.
func (q *Queue) shed(w *waiter) {
	c := w.line.class
	if c.Waiting == 0 || c.waiting <= c.Waiting {
		return
	}
	longest := w.line
	for turn := c.turns.Front(); turn != nil; turn = turn.Next() {
		l := turn.Value.(*line) // turns holds nothing else
		if l.waiters.Len() > longest.waiters.Len() {
			longest = l
		}
	}
	last := longest.waiters.Back().Value.(*waiter) // a line holds nothing else
	last.err = ErrFull
	q.remove(last)
	close(last.ready)
	q.admit()
}
