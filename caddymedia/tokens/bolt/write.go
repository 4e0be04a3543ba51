package bolt

import (
	"context"

	"go.etcd.io/bbolt"
)

// write is a change that has not been committed.
type write struct {
	apply func(*bbolt.Tx) error
	done  chan error
}

// write commits apply together with all changes that arrive while the disk is busy. (bbolt's own
// Batch commits on a goroutine where its panics cannot be caught, and makes a lone write wait.)
func (s *Store) write(ctx context.Context, apply func(*bbolt.Tx) error) error {
	if ctx.Err() != nil {
		return s.unavailable(ctx.Err())
	}
	w := &write{apply, make(chan error, 1)}
	s.mu.Lock()
	s.pending = append(s.pending, w)
	if !s.committing {
		s.committing = true
		go s.commitPending()
	}
	s.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return s.unavailable(ctx.Err())
	}
}

// commitPending commits until nothing is pending.
func (s *Store) commitPending() {
	for {
		s.mu.Lock()
		group := s.pending
		s.pending = nil
		s.committing = len(group) > 0
		s.mu.Unlock()
		if len(group) == 0 {
			return
		}
		err := s.commit(group)
		for _, w := range group {
			w.done <- err
		}
	}
}

func (s *Store) commit(group []*write) error {
	opened, err, _ := s.opening.Do("", s.openNow) // each time, because a damaged file may have been dropped
	if err != nil {
		return err
	}
	f := opened.(*file)
	err = guarded(func() error {
		return f.db.Update(func(tx *bbolt.Tx) error {
			for _, w := range group {
				if err := w.apply(tx); err != nil {
					return err
				}
			}
			return sweep(tx, s.now(), sweepPerWrite*len(group))
		})
	})
	if err != nil {
		return s.failed(f, err)
	}
	return nil
}
