package memory

import (
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/tokentest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func TestConformance(t *testing.T) {
	t.Parallel()
	tokentest.Run(t, func(*testing.T) tokentest.Subject {
		clock := new(tokentest.Clock)
		return tokentest.Subject{Store: New(clock.Now), Now: clock.Now, Advance: clock.Advance}
	})
}

func set(t *testing.T, s *Store, key, index string, e tokens.Entry) {
	t.Helper()
	err := s.Update(t.Context(), key, index, func(tokens.Entry) (tokens.Entry, error) { return e, nil })
	if err != nil {
		t.Fatal(err)
	}
}

// TestSweep: of many entries, only valid ones take memory.
func TestSweep(t *testing.T) {
	t.Parallel()
	clock := new(tokentest.Clock)
	s := New(clock.Now)
	for n := range 10_000 {
		clock.Advance(time.Second)
		key := strconv.Itoa(n)
		set(t, s, key, key, tokens.Entry{Value: []byte{}, Expires: clock.Now().Add(time.Minute)})
	}
	if len(s.entries) > 61 || len(s.byExpiry) > 61 || len(s.indexes) > 61 {
		t.Errorf("%d entries, %d expiries and %d indexes are left of 60 valid ones",
			len(s.entries), len(s.byExpiry), len(s.indexes))
	}
	clock.Advance(time.Hour)
	for range 61/sweepPerUpdate + 1 {
		set(t, s, "other", "", tokens.Entry{})
	}
	if len(s.entries) > 0 {
		t.Errorf("%d entries are left of those that have expired", len(s.entries))
	}
}

// TestRemoved: an entry that is gone leaves nothing behind, however it goes.
func TestRemoved(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*Store, *tokentest.Clock){
		"removed": func(s *Store, _ *tokentest.Clock) { set(t, s, "key", "", tokens.Entry{}) },
		"replaced by an expired one": func(s *Store, clock *tokentest.Clock) {
			set(t, s, "key", "index", tokens.Entry{Value: []byte{}, Expires: clock.Now()})
		},
		"with its index": func(s *Store, _ *tokentest.Clock) {
			if n, err := s.DeleteIndex(t.Context(), "index"); n != 1 || err != nil {
				t.Errorf("deleted %d: %v", n, err)
			}
		},
		"expired": func(s *Store, clock *tokentest.Clock) {
			clock.Advance(time.Minute)
			set(t, s, "other", "", tokens.Entry{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := new(tokentest.Clock)
			s := New(clock.Now)
			for range 2 {
				set(t, s, "key", "index", tokens.Entry{Value: []byte{}, Expires: clock.Now().Add(time.Minute)})
			}
			remove(s, clock)
			if len(s.entries) > 0 || len(s.byExpiry) > 0 || len(s.indexes) > 0 {
				t.Errorf("%d entries, %d expiries and %d indexes are left", len(s.entries), len(s.byExpiry), len(s.indexes))
			}
		})
	}
}
