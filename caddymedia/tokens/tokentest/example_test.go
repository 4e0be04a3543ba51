package tokentest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/tokentest"
)

// drawer is a token store as another module may have it: entries in a map, which end with the
// process.
type drawer struct {
	mu      sync.Mutex
	entries map[string]entry // nil when closed
}

type entry struct {
	tokens.Entry
	index string
}

func newDrawer() *drawer { return &drawer{entries: map[string]entry{}} }

// lock returns an error if the caller has left, or if the store is closed. Otherwise the store is
// locked.
func (s *drawer) lock(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", tokens.ErrUnavailable, context.Cause(ctx))
	}
	s.mu.Lock()
	if s.entries == nil {
		s.mu.Unlock()
		return fmt.Errorf("%w: closed", tokens.ErrUnavailable)
	}
	now := time.Now()
	maps.DeleteFunc(s.entries, func(_ string, e entry) bool { return !e.Expires.IsZero() && !now.Before(e.Expires) })
	return nil
}

// Get implements [tokens.Store].
func (s *drawer) Get(ctx context.Context, key string) (tokens.Entry, error) {
	if err := s.lock(ctx); err != nil {
		return tokens.Entry{}, err
	}
	defer s.mu.Unlock()
	return s.entries[key].Entry, nil
}

// Update implements [tokens.Store].
func (s *drawer) Update(ctx context.Context, key, index string, change func(tokens.Entry) (tokens.Entry, error)) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	old := s.entries[key]
	changed, err := change(old.Entry)
	if err != nil {
		return err
	}
	if index == "" {
		index = old.index
	}
	if s.entries[key] = (entry{changed, index}); changed.Value == nil {
		delete(s.entries, key)
	}
	return nil
}

// DeleteIndex implements [tokens.Store].
func (s *drawer) DeleteIndex(ctx context.Context, index string) (int, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	before := len(s.entries)
	maps.DeleteFunc(s.entries, func(_ string, e entry) bool { return e.index == index })
	return before - len(s.entries), nil
}

// Check implements [tokens.Store].
func (s *drawer) Check(ctx context.Context) error {
	err := s.lock(ctx)
	if err == nil {
		s.mu.Unlock()
	}
	return err
}

// Close implements [tokens.Store].
func (s *drawer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = nil
	return nil
}

// TestDrawer is all that the test of such a store needs.
func TestDrawer(t *testing.T) {
	t.Parallel()
	tokentest.Run(t, func(*testing.T) tokentest.Subject { return tokentest.Subject{Store: newDrawer()} })
}

func Example() {
	var store tokens.Store = newDrawer() // for the Tokens of a media.Config
	ctx := context.Background()
	err := store.Update(ctx, "visits", "", func(old tokens.Entry) (tokens.Entry, error) {
		return tokens.Entry{Value: append(old.Value, '|')}, nil
	})
	visits, failed := store.Get(ctx, "visits")
	fmt.Printf("%s %v\n", visits.Value, errors.Join(err, failed, store.Close()))
	// Output: | <nil>
}
