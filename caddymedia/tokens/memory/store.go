// Package memory keeps tokens in the process: they survive a reload, but not a restart.
package memory

import (
	"bytes"
	"container/heap"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers/options"
)

//go:embed store.go
var comments string

var schema = options.Of[Config](comments)

// Config keeps tokens in memory. They survive a reload of the configuration. A restart ends them
// all, and no other process knows them: callers must then request new ones.
type Config struct{}

// Schema returns the options: none.
func (*Config) Schema() *options.Schema { return schema.Documented() }

// Complete does nothing.
func (*Config) Complete(string) error { return nil }

// NewStore returns an empty store.
func (*Config) NewStore(*slog.Logger) (tokens.Store, error) { return New(nil), nil }

// sweepPerSave is the largest number of expired records that a Save removes. More than one lets
// sweeping catch up.
const sweepPerSave = 8

var errClosed = errors.New("closed")

// Store is a tokens.Store in memory.
type Store struct {
	now func() time.Time

	mu       sync.Mutex
	records  map[tokens.ID]tokens.Record // nil when closed
	uses     map[tokens.ID]*uses         // of tickets in records
	secrets  map[string][]byte
	requests map[tokens.ID]*request
	accounts map[string]*account // those with requests
	byExpiry expiries
}

// uses are the reserved items of a ticket.
type uses struct {
	total   int
	byUse   map[string]int
	refused int
}

// New returns a Store with the clock, time.Now if it is nil.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now //nolint:forbidigo // the default clock
	}
	return &Store{
		now: now, records: make(map[tokens.ID]tokens.Record), uses: make(map[tokens.ID]*uses), secrets: make(map[string][]byte),
		requests: make(map[tokens.ID]*request), accounts: make(map[string]*account),
	}
}

// Save implements tokens.Store.
func (s *Store) Save(ctx context.Context, id tokens.ID, rec tokens.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.remove(id)
	s.records[id] = rec
	heap.Push(&s.byExpiry, &expiry{at: rec.Expires, id: id})
	s.sweep()
	return nil
}

// Load implements tokens.Store.
func (s *Store) Load(ctx context.Context, id tokens.ID) (tokens.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return tokens.Record{}, err
	}
	rec, ok := s.records[id]
	if !ok || !s.now().Before(rec.Expires) {
		return tokens.Record{}, tokens.ErrUnknown
	}
	if used := s.uses[id]; used != nil {
		rec.Used, rec.Refused = used.total, used.refused
	}
	return rec, nil
}

// Delete implements tokens.Store.
func (s *Store) Delete(ctx context.Context, id tokens.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.remove(id)
	return nil
}

// remove removes a record and its uses.
func (s *Store) remove(id tokens.ID) {
	delete(s.records, id)
	delete(s.uses, id)
}

// DeleteAccount implements tokens.Store.
func (s *Store) DeleteAccount(ctx context.Context, account string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	deleted, now := 0, s.now()
	for id, rec := range s.records {
		if rec.Account != account {
			continue
		}
		if now.Before(rec.Expires) {
			deleted++
		}
		s.remove(id)
	}
	for s.accounts[account] != nil {
		s.forget(s.accounts[account].oldest[0])
	}
	return deleted, nil
}

// Take implements tokens.Store.
func (s *Store) Take(ctx context.Context, id tokens.ID, use string, n, limit int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	rec, ok := s.records[id]
	if !ok || rec.Ticket == nil || !s.now().Before(rec.Expires) {
		return tokens.ErrUnknown
	}
	used := s.usesOf(id)
	if _, again := used.byUse[use]; again {
		return nil
	}
	if used.total+n > limit {
		return tokens.ErrUsedUp
	}
	used.byUse[use] = n
	used.total += n
	return nil
}

// usesOf returns the uses of a ticket.
func (s *Store) usesOf(id tokens.ID) *uses {
	if s.uses[id] == nil {
		s.uses[id] = &uses{byUse: make(map[string]int)}
	}
	return s.uses[id]
}

// Refuse implements tokens.Store.
func (s *Store) Refuse(ctx context.Context, id tokens.ID, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	if rec, ok := s.records[id]; ok && rec.Ticket != nil {
		s.usesOf(id).refused += n
	}
	return nil
}

// GiveBack implements tokens.Store.
func (s *Store) GiveBack(ctx context.Context, id tokens.ID, use string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	if used := s.uses[id]; used != nil {
		used.total -= used.byUse[use]
		delete(used.byUse, use)
	}
	return nil
}

// Secret implements tokens.Store.
func (s *Store) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if _, known := s.secrets[name]; !known {
		s.secrets[name] = bytes.Clone(fresh)
	}
	return bytes.Clone(s.secrets[name]), nil
}

// Check implements tokens.Store.
func (s *Store) Check(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usable(ctx)
}

// Close implements tokens.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records, s.uses, s.secrets, s.requests, s.accounts, s.byExpiry = nil, nil, nil, nil, nil, nil
	return nil
}

func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", tokens.ErrUnavailable, err)
	}
	if s.records == nil {
		return fmt.Errorf("%w: %w", tokens.ErrUnavailable, errClosed)
	}
	return nil
}

// sweep removes a few expired records. One that was saved again with a later expiry stays.
func (s *Store) sweep() {
	now := s.now()
	for range sweepPerSave {
		if len(s.byExpiry) == 0 || now.Before(s.byExpiry[0].at) {
			return
		}
		id := heap.Pop(&s.byExpiry).(*expiry).id
		if rec, ok := s.records[id]; ok && !now.Before(rec.Expires) {
			s.remove(id)
		}
		if r := s.requests[id]; r != nil && !now.Before(r.expiry.at) {
			s.forget(id)
		}
	}
}

type expiry struct {
	at    time.Time
	id    tokens.ID
	index int // in the heap; -1 when removed
}

// expiries is a heap with the next to expire first.
type expiries []*expiry

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e expiries) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].index, e[j].index = i, j
}

func (e *expiries) Push(x any) {
	added := x.(*expiry)
	added.index = len(*e)
	*e = append(*e, added)
}

func (e *expiries) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	x.index, (*e)[last] = -1, nil
	*e = (*e)[:last]
	return x
}

// Interface guards
var (
	_ tokens.Store   = (*Store)(nil)
	_ heap.Interface = (*expiries)(nil)
)
