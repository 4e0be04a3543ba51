package tokentest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// ticket returns the record of a ticket with unusual values.
func (s Subject) ticket(account string) tokens.Record {
	rec := s.record(account)
	rec.Ticket = &tokens.Ticket{
		Kind: "image", Alias: "content", SubFolder: "a b/ě", Filename: "\"c\\\u2028.jpg", MaxFiles: 3, MaxSize: math.MaxInt64 - 1,
	}
	return rec
}

// testTicket: a ticket is stored whole, and is no token.
func testTicket(t *testing.T, s Subject) {
	id, rec := newID(), s.ticket("a")
	save(t, s.Store, id, rec)
	wantTicket(t, s.Store, id, rec, 0)
	save(t, s.Store, id, s.record("a")) // replaced by a token
	if got, err := s.Store.Load(t.Context(), id); err != nil || got.Ticket != nil {
		t.Errorf("a token: %+v, %v", got, err)
	}
	if err := s.Store.Take(t.Context(), id, "x", 1, 3); !errors.Is(err, tokens.ErrUnknown) {
		t.Errorf("Take of a token: %v, want ErrUnknown", err)
	}
	giveBack(t, s.Store, id, "x")
	save(t, s.Store, id, rec)
	wantTicket(t, s.Store, id, rec, 0)
	if err := s.Store.Delete(t.Context(), id); err != nil {
		t.Errorf("Delete: %v", err)
	}
	wantUnknown(t, s.Store, id)
}

func testTicketExpiry(t *testing.T, s Subject) {
	id, account := newID(), rand.Text()
	rec := s.ticket(account)
	rec.Expires = s.Now().Add(soon)
	save(t, s.Store, id, rec)
	s.Advance(soon)
	wantUnknown(t, s.Store, id)
	wantTake(t, s.Store, id, "a", 1, 3, tokens.ErrUnknown)
	giveBack(t, s.Store, id, "a")
	wantDeleted(t, s.Store, account, 0)
}

func testTake(t *testing.T, s Subject) {
	id, other, rec := newID(), newID(), s.ticket("a")
	wantTake(t, s.Store, id, "a", 1, 3, tokens.ErrUnknown)
	giveBack(t, s.Store, id, "a")
	save(t, s.Store, id, rec)
	save(t, s.Store, other, rec)
	wantTake(t, s.Store, id, "a", 4, 3, tokens.ErrUsedUp)
	wantTake(t, s.Store, id, "a", 2, 3, nil)
	wantTake(t, s.Store, id, "a", 2, 3, nil) // the same use
	wantTicket(t, s.Store, id, rec, 2)
	wantTake(t, s.Store, id, "b", 2, 3, tokens.ErrUsedUp)
	wantTake(t, s.Store, id, "b", 1, 3, nil)
	wantTake(t, s.Store, id, "c", 1, 3, tokens.ErrUsedUp)
	wantTake(t, s.Store, id, "a", 2, 3, nil) // also when used up
	for range 2 {                            // the second time it is missing
		giveBack(t, s.Store, id, "a")
		wantTicket(t, s.Store, id, rec, 1)
	}
	giveBack(t, s.Store, id, "never taken")
	wantTake(t, s.Store, id, "c", 2, 3, nil)
	wantTicket(t, s.Store, id, rec, 3)
	wantTicket(t, s.Store, other, rec, 0)
	for _, use := range []string{"", "a", "used", "record", "use:a", ":", "ě\x00\n", string(id[:])} {
		wantTake(t, s.Store, other, use, 1, 100, nil)
		wantTake(t, s.Store, other, use, 1, 100, nil)
	}
	wantTicket(t, s.Store, other, rec, 8)
	save(t, s.Store, id, rec) // replaced, without its uses
	wantTicket(t, s.Store, id, rec, 0)
	wantTake(t, s.Store, id, "a", 3, 3, nil)
}

// testRefuse: refused items are counted beside those that are reserved, and with their ticket only.
func testRefuse(t *testing.T, s Subject) {
	id, other, rec := newID(), newID(), s.ticket("a")
	token, ofToken := newID(), s.record("a")
	refuse := func(id tokens.ID) {
		t.Helper()
		if err := s.Store.Refuse(t.Context(), id, 2); err != nil {
			t.Errorf("Refuse: %v", err)
		}
	}
	want := func(id tokens.ID, refused, used int) {
		t.Helper()
		wantTicket(t, s.Store, id, rec, used)
		if got, err := s.Store.Load(t.Context(), id); err != nil || got.Refused != refused {
			t.Errorf("%d refused, error %v; want %d", got.Refused, err, refused)
		}
	}
	refuse(id) // missing
	save(t, s.Store, id, rec)
	save(t, s.Store, other, rec)
	save(t, s.Store, token, ofToken)
	refuse(token)
	wantRecord(t, s.Store, token, ofToken)
	want(id, 0, 0)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { refuse(id) })
	}
	all.Wait()
	wantTake(t, s.Store, id, "refused", 2, 3, nil)
	want(id, 40, 2)
	want(other, 0, 0)
	save(t, s.Store, id, rec) // replaced
	want(id, 0, 0)
	refuse(id)
	if err := s.Store.Delete(t.Context(), id); err != nil {
		t.Errorf("Delete: %v", err)
	}
	refuse(id)
	wantUnknown(t, s.Store, id)
}

// testTakeConcurrent: of many uses at once, exactly those that are left succeed.
func testTakeConcurrent(t *testing.T, s Subject) {
	const takers, limit = 20, 7
	id, rec := newID(), s.ticket("a")
	save(t, s.Store, id, rec)
	round := func(name string, want int) []string {
		var (
			wg    sync.WaitGroup
			taken atomic.Int64
			uses  [takers]string
		)
		for n := range takers {
			wg.Go(func() {
				use := fmt.Sprint(name, n)
				switch err := s.Store.Take(t.Context(), id, use, 1, limit); {
				case err == nil:
					taken.Add(1)
					uses[n] = use
				case !errors.Is(err, tokens.ErrUsedUp):
					t.Errorf("Take: %v", err)
				}
			})
		}
		wg.Wait()
		if taken.Load() != int64(want) {
			t.Errorf("%d of %d have succeeded, want %d", taken.Load(), takers, want)
		}
		return uses[:]
	}
	uses := round("first", limit)
	wantTicket(t, s.Store, id, rec, limit)
	round("second", 0)
	var wg sync.WaitGroup
	for _, use := range uses {
		wg.Go(func() { giveBack(t, s.Store, id, use) })
	}
	wg.Wait()
	wantTicket(t, s.Store, id, rec, 0)
	round("third", limit)
	for range takers { // one use, many times at once
		wg.Go(func() {
			if err := s.Store.Take(t.Context(), id, "same", 1, limit+1); err != nil {
				t.Errorf("Take: %v", err)
			}
		})
	}
	wg.Wait()
	wantTicket(t, s.Store, id, rec, limit+1)
}

// testTicketDeleteAccount: tickets are deleted with their uses, and counted like tokens.
func testTicketDeleteAccount(t *testing.T, s Subject) {
	account, other, id := rand.Text(), rand.Text(), newID()
	kept, rec := newID(), s.ticket(other)
	save(t, s.Store, id, s.ticket(account))
	save(t, s.Store, newID(), s.record(account))
	save(t, s.Store, kept, rec)
	for _, id := range []tokens.ID{id, kept} {
		wantTake(t, s.Store, id, "a", 2, 3, nil)
	}
	wantDeleted(t, s.Store, account, 2)
	wantUnknown(t, s.Store, id)
	wantTake(t, s.Store, id, "a", 1, 3, tokens.ErrUnknown)
	wantTicket(t, s.Store, kept, rec, 2)
	save(t, s.Store, id, rec)
	wantTicket(t, s.Store, id, rec, 0)
	wantDeleted(t, s.Store, other, 2)
}

func testTicketReopen(t *testing.T, s Subject) {
	if s.Reopen == nil {
		t.Skip("the store keeps nothing when it is closed")
	}
	id, rec := newID(), s.ticket("a")
	save(t, s.Store, id, rec)
	wantTake(t, s.Store, id, "a", 2, 3, nil)
	if err := s.Store.Refuse(t.Context(), id, 1); err != nil {
		t.Errorf("Refuse: %v", err)
	}
	again := s.Reopen(t)
	t.Cleanup(func() { _ = again.Close() })
	wantTicket(t, again, id, rec, 2)
	if got, err := again.Load(t.Context(), id); err != nil || got.Refused != 1 {
		t.Errorf("%d refused, error %v", got.Refused, err)
	}
	wantTake(t, again, id, "a", 2, 3, nil)
	wantTake(t, again, id, "b", 2, 3, tokens.ErrUsedUp)
	giveBack(t, again, id, "a")
	wantTake(t, again, id, "b", 3, 3, nil)
}

func wantTake(t *testing.T, s tokens.Store, id tokens.ID, use string, n, limit int, want error) {
	t.Helper()
	if err := s.Take(t.Context(), id, use, n, limit); !errors.Is(err, want) {
		t.Fatalf("Take of %d by %q: %v, want %v", n, use, err, want)
	}
}

func giveBack(t *testing.T, s tokens.Store, id tokens.ID, use string) {
	t.Helper()
	if err := s.GiveBack(t.Context(), id, use); err != nil {
		t.Errorf("GiveBack by %q: %v", use, err)
	}
}

func wantTicket(t *testing.T, s tokens.Store, id tokens.ID, rec tokens.Record, used int) {
	t.Helper()
	wantRecord(t, s, id, rec)
	got, err := s.Load(t.Context(), id)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	if got.Ticket == nil || got.Used != used {
		t.Fatalf("Load: got %+v with %d used, want a ticket with %d", got.Ticket, got.Used, used)
	}
	ticket := *got.Ticket // its ID, expiry and uses are not part of it
	ticket.ID, ticket.Expires, ticket.Used, ticket.Refused = tokens.ID{}, time.Time{}, 0, 0
	if ticket != *rec.Ticket {
		t.Fatalf("Load: got %+v, want %+v", ticket, *rec.Ticket)
	}
}
