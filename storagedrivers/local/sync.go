package local

import (
	"errors"
	"sync"
	"time"
)

// A sharer lets concurrent callers share one sync of the whole file system. With many small
// uploads, a sync for each takes more processor time than everything else, because each occupies a
// thread and waits several times.
//
// A round is as good as a sync of the file and of its folder: everything written, linked or created
// before the round is on the disk when it ends. But it also waits for other writers to the file
// system. Therefore a single caller syncs its own file, and so do all callers for some time after a
// slow round.
type sharer struct {
	now   func() time.Time
	share func() error // nil where it cannot be relied upon

	mu      sync.Mutex
	alone   int
	running bool
	queue   []chan<- error // those that wait for the next round
	avoid   time.Time      // until then there are no rounds

	// failed counts the failed rounds. The system reports each failed write once, for any file.
	// Therefore a failure counts for all objects that were created before.
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

// failures returns the count of failed rounds. An object passes the count at its creation to do.
func (s *sharer) failures() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// do returns when the caller's data is on the disk, by a round or by own.
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

// rounds runs rounds until the queue is empty.
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

// round runs one round. It unlocks the mutex while it waits for the disk.
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
