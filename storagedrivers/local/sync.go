package local

import (
	"errors"
	"sync"
	"time"
)

// A sharer lets concurrent callers share one sync of the whole file system. With many small uploads
// a sync for each costs more of the processor than all the rest of them, because each takes a
// thread and has to wait several times.
//
// It is as good as a sync of the file and of its folder: all that was written, linked or made
// before a round begins is on the disk when it ends. But it also waits for other writers to the
// file system. So a lone caller syncs its own file, and after a slow round all callers do for a
// while.
type sharer struct {
	now   func() time.Time
	share func() error // nil where it cannot be relied upon

	mu      sync.Mutex
	alone   int
	running bool
	queue   []chan<- error // those that wait for the next round
	avoid   time.Time      // until then there are no rounds

	// failed counts the rounds that failed. The system reports each failed write once, whichever
	// file it concerns. So it counts for all objects that were begun before.
	failed int
}

const (
	slowRound = 500 * time.Millisecond
	avoidSlow = 10 * time.Second
)

var (
	errAlone = errors.New("no round for one")
	errLost  = errors.New("the file system failed to write something since this object was begun")
)

// failures returns the count that an object keeps from its beginning, for do.
func (s *sharer) failures() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// do returns when the caller's data is on the disk: by a round, or by own.
func (s *sharer) do(own func() error, failures int) error {
	s.mu.Lock()
	if s.running || s.alone > 0 && s.share != nil && !s.now().Before(s.avoid) {
		ended := make(chan error, 1)
		s.queue = append(s.queue, ended)
		if !s.running {
			s.running = true
			go s.rounds()
		}
		s.mu.Unlock()
		err := <-ended
		s.mu.Lock()
		if err != errAlone { //nolint:errorlint // it is never wrapped
			defer s.mu.Unlock()
			if err == nil && s.failed != failures {
				err = errLost
			}
			return err
		}
	}
	s.alone++
	s.mu.Unlock()
	err := own()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alone--
	return err
}

// rounds syncs for all in the queue, and again for those that came meanwhile.
func (s *sharer) rounds() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 {
		waiting, err := s.queue, errAlone
		s.queue = nil
		if len(waiting)+s.alone > 1 && !s.now().Before(s.avoid) {
			err = s.round()
		}
		for _, ended := range waiting {
			ended <- err
		}
	}
	s.running = false
}

// round lets go of the lock while it waits for the disk.
func (s *sharer) round() error {
	s.mu.Unlock()
	begin := s.now()
	err := s.share()
	end := s.now()
	s.mu.Lock()
	if err != nil {
		s.failed++
	}
	if end.Sub(begin) > slowRound {
		s.avoid = end.Add(avoidSlow)
	}
	return err
}
