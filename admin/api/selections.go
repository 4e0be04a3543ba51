package api

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
)

const (
	// The time in which the zip of a selection can be downloaded.
	selectionLifetime = 10 * time.Minute
	// Selections that are kept. A further one replaces the oldest one.
	maxSelections     = 32
	maxUserSelections = 4
	// Simultaneous downloads.
	maxZips     = 16
	maxUserZips = 4
)

// selection is a selection of items, to be downloaded as a zip.
type selection struct {
	user     string // the owner of its requests
	kind     media.Kind
	alias    string
	items    []zipItem
	selected time.Time
}

// selections keeps the selections of all users, and counts their downloads. Expired selections are
// removed by the next one, and until then they count.
type selections struct {
	mu      sync.Mutex
	byID    map[string]selection
	running map[string]int // downloads by user
	all     int            // downloads
}

func newSelections() *selections {
	return &selections{byID: map[string]selection{}, running: map[string]int{}}
}

// add keeps a selection and returns its id, which cannot be guessed.
func (s *selections) add(added selection) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, kept := range s.byID {
		if kept.expired(added.selected) {
			delete(s.byID, id)
		}
	}
	s.makeRoom(maxUserSelections, func(kept selection) bool { return kept.user == added.user })
	s.makeRoom(maxSelections, func(selection) bool { return true })
	id = rand.Text()
	s.byID[id] = added
	return id
}

// makeRoom removes the oldest of the selections that match if there are limit.
func (s *selections) makeRoom(limit int, matches func(selection) bool) {
	oldest, count := "", 0
	for id, kept := range s.byID {
		if !matches(kept) {
			continue
		}
		if count++; count == 1 || kept.selected.Before(s.byID[oldest].selected) {
			oldest = id
		}
	}
	if count >= limit {
		delete(s.byID, oldest)
	}
}

// find returns a selection of a user that has not expired.
func (s *selections) find(id, user string, now time.Time) (selection, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, ok := s.byID[id]
	if !ok || kept.user != user || kept.expired(now) {
		return selection{}, false
	}
	return kept, true
}

func (s selection) expired(now time.Time) bool { return now.Sub(s.selected) >= selectionLifetime }

// begin counts a download of a user until the caller calls ended. It returns false if there are too
// many.
func (s *selections) begin(user string) (ended func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxZips || s.running[user] >= maxUserZips {
		return nil, false
	}
	s.all++
	s.running[user]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.running[user]--; s.running[user] == 0 {
			delete(s.running, user)
		}
	}, true
}
