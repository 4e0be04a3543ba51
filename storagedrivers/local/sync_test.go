package local

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/internal/test"
)

// disk simulates the file system and counts both kinds of syncs.
type disk struct {
	mu     sync.Mutex
	rounds int
	own    int
	fail   error
	takes  time.Duration
}

func (d *disk) share() error {
	d.mu.Lock()
	d.rounds++
	err := d.fail
	d.mu.Unlock()
	time.Sleep(d.takes)
	return err
}

func (d *disk) counted() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rounds
}

func (d *disk) syncOwn() error {
	d.mu.Lock()
	d.own++
	d.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	return nil
}

func (d *disk) sharer() *sharer { return &sharer{now: time.Now, share: d.share} }

// syncMany calls do n times concurrently and returns the errors.
func syncMany(s *sharer, d *disk, n, failures int) []error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = s.do(d.syncOwn, failures) })
	}
	wg.Wait()
	return errs
}

func TestSharerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(disk)
		s := d.sharer()
		for range 5 {
			test.Must(t, s.do(d.syncOwn, 0))
		}
		if d.own != 5 || d.rounds != 0 {
			t.Errorf("%d syncs alone and %d rounds, want 5 and none", d.own, d.rounds)
		}
	})
}

// TestSharerMany: of 64 concurrent calls one syncs alone and the others share. None returns with a
// round that had started before the call.
func TestSharerMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{takes: 20 * time.Millisecond}
		s := d.sharer()
		for _, err := range syncMany(s, d, 64, 0) {
			test.Is(t, err, nil)
		}
		if d.own+d.rounds > 4 || d.rounds == 0 {
			t.Errorf("%d syncs alone and %d rounds", d.own, d.rounds)
		}
		go s.do(d.syncOwn, 0)
		go s.do(d.syncOwn, 0)
		time.Sleep(15 * time.Millisecond) // a round is running, the one alone is done
		synctest.Wait()
		begin, rounds := time.Now(), d.counted()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { s.do(d.syncOwn, 0) })
		}
		wg.Wait()
		if took := time.Since(begin); took != 25*time.Millisecond || d.counted() != rounds+1 {
			t.Errorf("two more took %v and %d rounds, want the rest of one round and another one", took, d.counted()-rounds)
		}
	})
}

// TestSharerFails: after a failed round all objects created before fail, even in a later round, and
// none created after it.
func TestSharerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		d := &disk{takes: 20 * time.Millisecond, fail: broken}
		s := d.sharer()
		before := s.failures()
		failed := 0
		for _, err := range syncMany(s, d, 20, before) {
			if errors.Is(err, broken) {
				failed++
			}
		}
		test.Equal(t, failed, 19, "failed")
		d.fail = nil
		lost := 0
		for _, err := range syncMany(s, d, 20, before) {
			if errors.Is(err, errLost) {
				lost++
			}
		}
		test.Equal(t, lost, 19, "of those begun before were called lost")
		for _, err := range syncMany(s, d, 20, s.failures()) {
			test.Is(t, err, nil)
		}
	})
}

// TestSharerSlow: after a slow round every caller syncs alone for some time.
func TestSharerSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{takes: slowRound + time.Millisecond}
		s := d.sharer()
		syncMany(s, d, 10, 0)
		rounds := d.rounds
		syncMany(s, d, 10, 0)
		if rounds == 0 || d.rounds != rounds {
			t.Errorf("%d rounds, then %d more while they are avoided", rounds, d.rounds-rounds)
		}
		time.Sleep(avoidSlow)
		syncMany(s, d, 10, 0)
		if d.rounds == rounds {
			t.Error("no more rounds ever")
		}
	})
}

// TestSharerUnable: without support for shared syncs every caller syncs alone.
func TestSharerUnable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(disk)
		s := &sharer{now: time.Now}
		syncMany(s, d, 10, 0)
		test.Equal(t, d.own, 10, "synced alone")
	})
}
