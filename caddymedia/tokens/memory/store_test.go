package memory

import (
	"errors"
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

// TestSweep: of many saved tokens, only valid ones take memory.
func TestSweep(t *testing.T) {
	t.Parallel()
	clock := new(tokentest.Clock)
	s := New(clock.Now)
	for n := range 10_000 {
		clock.Advance(time.Second)
		id := tokens.ID{byte(n), byte(n >> 8)}
		rec := tokens.Record{Account: "a", Expires: clock.Now().Add(time.Minute), Ticket: new(tokens.Ticket)}
		if err := errors.Join(s.Save(t.Context(), id, rec), s.Take(t.Context(), id, "a", 1, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.records) > 61 || len(s.byExpiry) > 61 || len(s.uses) > 61 {
		t.Errorf("%d records, %d entries and %d uses are left of 60 valid ones", len(s.records), len(s.byExpiry), len(s.uses))
	}
}
