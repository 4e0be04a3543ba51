package ftp

import (
	"slices"
	"time"
)

// slots counts the lent connections and queues their users. The pool's mutex guards it.
type slots struct {
	size  int       // the configured limit
	limit int       // the present one
	until time.Time // when the limit rises to size again
	lent  int
	long  int // of the lent
	held  int // of the lent, those whose users have a connection or are opening one
	queue []request
}

// request is a waiting request for a slot.
type request struct {
	long    bool
	granted chan struct{}
}

// lowerFor is how long a limit of the host is assumed to hold.
const lowerFor = time.Minute

// reserved returns how many connections are reserved for short uses.
func (s *slots) reserved() int {
	switch {
	case s.limit < 2:
		return 0
	case s.limit < 6:
		return 1
	}
	return 2
}

func (s *slots) fits(long bool) bool {
	return s.lent < s.limit && (!long || s.long < s.limit-s.reserved())
}

// wait queues a user. The returned channel is closed when the user gets a slot.
func (s *slots) wait(long bool) <-chan struct{} {
	granted := make(chan struct{})
	s.queue = append(s.queue, request{long, granted})
	s.grant()
	return granted
}

// grant serves the queue in its order. A short use may overtake long ones that do not fit.
func (s *slots) grant() {
	s.queue = slices.DeleteFunc(s.queue, func(r request) bool {
		if !s.fits(r.long) {
			return false
		}
		s.lent++
		if r.long {
			s.long++
		}
		close(r.granted)
		return true
	})
}

// forget removes a user from the queue. It returns false if the user is not in the queue any more.
func (s *slots) forget(granted <-chan struct{}) bool {
	before := len(s.queue)
	s.queue = slices.DeleteFunc(s.queue, func(r request) bool { return r.granted == granted })
	return len(s.queue) < before
}

func (s *slots) leave(long bool) {
	s.lent--
	if long {
		s.long--
	}
	s.grant()
}

// back records that a user has returned a connection.
func (s *slots) back(long bool) {
	s.held--
	s.leave(long)
}

// lengthen makes a short use a long one, if another long use is allowed.
func (s *slots) lengthen() bool {
	if s.long >= s.limit-s.reserved() {
		return false
	}
	s.long++
	return true
}

// lower sets the limit to one less than the lent connections.
func (s *slots) lower(now time.Time) bool {
	if s.lent < 2 {
		return false
	}
	s.limit, s.until = min(s.limit, s.lent-1), now.Add(lowerFor)
	return true
}

// restore removes the limit when its time is over, or when no connection is left.
func (s *slots) restore(now time.Time, idle int) {
	if s.limit < s.size && (now.After(s.until) || s.lent+idle == 0) {
		s.limit = s.size
		s.grant()
	}
}
