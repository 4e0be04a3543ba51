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

// TestForget: a request that is forgotten leaves nothing behind.
func TestForget(t *testing.T) {
	t.Parallel()
	clock := new(tokentest.Clock)
	s := New(clock.Now)
	begin := func(n byte) tokens.Request {
		t.Helper()
		r := tokens.Request{ID: tokens.ID{n}, Account: string('a' + rune(n%2)), Holder: "h", Most: 10, MostBytes: 1000}
		clock.Advance(time.Second)
		if _, err := s.BeginRequest(t.Context(), r, time.Hour); err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := func(n int) {
		t.Helper()
		if len(s.requests) != n || len(s.byExpiry) != n {
			t.Errorf("%d requests and %d entries are left of %d", len(s.requests), len(s.byExpiry), n)
		}
	}
	all := [4]tokens.Request{begin(0), begin(1), begin(2), begin(3)}
	for n, r := range all[:3] {
		if err := s.ForgetRequest(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		want(3 - n)
	}
	begin(5)
	if _, err := s.DeleteAccount(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	want(0)
	for n := range byte(30) {
		begin(2 * n)
	}
	want(10)
	clock.Advance(tokens.RequestLifetime)
	begin(1)
	begin(3)
	if want(2); len(s.accounts) != 1 {
		t.Errorf("accounts %v are left", s.accounts)
	}
}
