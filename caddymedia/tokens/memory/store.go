// Package memory keeps tokens in the process: they survive a reload. It is not for services that
// restart without new logins. Begin with [New].
package memory

import (
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

// sweepPerUpdate is the largest number of expired entries that an Update removes. More than one
// lets sweeping catch up.
const sweepPerUpdate = 8

var errClosed = errors.New("closed")

// Store is a tokens.Store in memory.
type Store struct {
	now func() time.Time

	mu       sync.Mutex
	entries  map[string]*entry // nil when closed
	indexes  map[string]map[string]*entry
	byExpiry expiries
}

type entry struct {
	tokens.Entry
	key, index string
	position   int // in byExpiry; -1 if it never expires
}

// New returns a Store with the clock, time.Now if it is nil.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now //nolint:forbidigo // the default clock
	}
	return &Store{now: now, entries: map[string]*entry{}, indexes: map[string]map[string]*entry{}}
}

// Get implements tokens.Store.
func (s *Store) Get(ctx context.Context, key string) (tokens.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return tokens.Entry{}, err
	}
	return s.get(key), nil
}

func (s *Store) get(key string) tokens.Entry {
	if e := s.entries[key]; e != nil && !s.isExpired(e.Entry) {
		return e.Entry
	}
	return tokens.Entry{}
}

func (s *Store) isExpired(e tokens.Entry) bool {
	return !e.Expires.IsZero() && !s.now().Before(e.Expires)
}

// Update implements tokens.Store.
func (s *Store) Update(ctx context.Context, key, index string, change func(tokens.Entry) (tokens.Entry, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	changed, err := change(s.get(key))
	if err != nil {
		return err
	}
	if old := s.entries[key]; old != nil {
		if index == "" {
			index = old.index
		}
		s.remove(old)
	}
	if changed.Value != nil && !s.isExpired(changed) {
		s.add(&entry{Entry: changed, key: key, index: index, position: -1})
	}
	for range sweepPerUpdate {
		if len(s.byExpiry) == 0 || !s.isExpired(s.byExpiry[0].Entry) {
			break
		}
		s.remove(s.byExpiry[0])
	}
	return nil
}

func (s *Store) add(e *entry) {
	s.entries[e.key] = e
	if !e.Expires.IsZero() {
		heap.Push(&s.byExpiry, e)
	}
	if e.index == "" {
		return
	}
	if s.indexes[e.index] == nil {
		s.indexes[e.index] = map[string]*entry{}
	}
	s.indexes[e.index][e.key] = e
}

func (s *Store) remove(e *entry) {
	delete(s.entries, e.key)
	if e.position >= 0 {
		heap.Remove(&s.byExpiry, e.position)
	}
	if of := s.indexes[e.index]; of != nil {
		if delete(of, e.key); len(of) == 0 {
			delete(s.indexes, e.index)
		}
	}
}

// DeleteIndex implements tokens.Store.
func (s *Store) DeleteIndex(ctx context.Context, index string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	deleted := 0
	for _, e := range s.indexes[index] {
		if !s.isExpired(e.Entry) {
			deleted++
		}
		s.remove(e)
	}
	return deleted, nil
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
	s.entries, s.indexes, s.byExpiry = nil, nil, nil
	return nil
}

func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", tokens.ErrUnavailable, err)
	}
	if s.entries == nil {
		return fmt.Errorf("%w: %w", tokens.ErrUnavailable, errClosed)
	}
	return nil
}

// expiries is a heap with the next to expire first.
type expiries []*entry

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].Expires.Before(e[j].Expires) }
func (e expiries) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].position, e[j].position = i, j
}

func (e *expiries) Push(x any) {
	added := x.(*entry)
	added.position = len(*e)
	*e = append(*e, added)
}

func (e *expiries) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return x
}

// Interface guards
var (
	_ tokens.Store   = (*Store)(nil)
	_ heap.Interface = (*expiries)(nil)
)
