package local

import (
	"errors"
	"fmt"
	"os"
	"path"
	"sync"
	"time"
)

// syncFile syncs the bytes of a file and its times.
func (d *Driver) syncFile(file *os.File) error { return d.syncBy((*os.File).Sync, file) }

// syncBy syncs a file or folder by a system call.
func (d *Driver) syncBy(call func(*os.File) error, file *os.File) error {
	if d.synced != nil {
		return d.synced(file)
	}
	return call(file)
}

// syncDir syncs the names in a folder, or the removal of a folder that may be gone.
func (f *folder) syncDir(name string, mayBeGone bool) error {
	if !f.sync {
		return nil
	}
	dir, name, err := f.openNearest(name, mayBeGone)
	if err != nil {
		return fmt.Errorf("opening folder %q: %w", name, err)
	}
	defer dir.Close()
	return f.syncOpenDir(dir, name)
}

func (f *folder) syncOpenDir(dir *os.File, name string) error {
	if !f.sync {
		return nil
	}
	err := f.flush.do(name, func() error { return f.syncNames(dir, name) })
	if err != nil {
		return fmt.Errorf("syncing folder %q: %w", name, mapError(err))
	}
	return nil
}

// syncNames syncs a folder and those above it whose names may not be on the disk yet.
func (f *folder) syncNames(dir *os.File, name string) error {
	if err := f.syncBy(syncFolder, dir); err != nil {
		return err
	}
	var made []string
	durable, forgotten := f.flush.isDurable(name)
	for above := name; !durable && above != "."; durable, _ = f.flush.isDurable(above) {
		made = append(made, above)
		var parent *os.File
		var err error
		if parent, above, err = f.openNearest(path.Dir(above), true); err != nil {
			return err
		}
		if err := errors.Join(f.syncBy(syncFolder, parent), parent.Close()); err != nil {
			return err
		}
	}
	f.flush.setDurable(made, forgotten)
	return nil
}

// flusher lets concurrent callers for one folder share a sync. Callers that come during a sync wait
// for the next one, which covers them all.
type flusher struct {
	mu     sync.Mutex
	rounds map[string]*round
	// known are folders whose own names are on the disk, with those of all folders above them.
	known map[string]bool

	forgotten int // calls of forget
}

type round struct {
	begun bool
	done  chan struct{}
	err   error
}

func (f *flusher) do(name string, sync func() error) error {
	f.mu.Lock()
	before := f.rounds[name]
	if before != nil && !before.begun {
		f.mu.Unlock()
		<-before.done
		return before.err
	}
	mine := &round{done: make(chan struct{})}
	if f.rounds == nil {
		f.rounds = map[string]*round{}
	}
	f.rounds[name] = mine
	f.mu.Unlock()

	if before != nil {
		<-before.done
	}
	f.mu.Lock()
	mine.begun = true
	f.mu.Unlock()
	mine.err = sync()
	f.mu.Lock()
	if f.rounds[name] == mine {
		delete(f.rounds, name)
	}
	f.mu.Unlock()
	close(mine.done)
	return mine.err
}

// maxKnown bounds the memory for folders; a forgotten one is only synced again.
const maxKnown = 4096

// isDurable reports whether the name of a folder is on the disk. The number is for setDurable.
func (f *flusher) isDurable(name string) (bool, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[name], f.forgotten
}

// forget is called before a missing folder is made.
func (f *flusher) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgotten++
	delete(f.known, name)
}

// setDurable records that the names of folders are on the disk. Meanwhile they may have been
// removed and made again.
func (f *flusher) setDurable(names []string, forgotten int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.forgotten != forgotten {
		return
	}
	if f.known == nil || len(f.known) >= maxKnown {
		f.known = map[string]bool{}
	}
	for _, name := range names {
		f.known[name] = true
	}
}

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
