package access_test

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/tokens"
)

func someTicket() access.Ticket {
	return access.Ticket{Kind: "image", Alias: "content", SubFolder: "a", Filename: "b.jpg", MaxFiles: 3, MaxSize: 5}
}

// ticket issues a ticket to the account "shop", and fails if it cannot.
func (f *fixture) ticket(i *access.Issuer, shop access.Account) string {
	f.Helper()
	text, _, err := i.IssueTicket(f.Context(), shop, someTicket(), time.Minute)
	if err != nil {
		f.Fatal(err)
	}
	return text
}

func TestIssueTicket(t *testing.T) {
	t.Parallel()
	f, shop := newFixture(t), account("shop", "secret", "content")
	f.clock.Advance(time.Nanosecond)
	i := f.issuer(shop)
	text, expires, err := i.IssueTicket(t.Context(), shop, someTicket(), time.Minute)
	if err != nil || len(text) != 43 {
		t.Fatalf("%q, %v", text, err)
	}
	if want := f.clock.Now().Add(time.Minute + time.Second - 1).Truncate(time.Second); !expires.Equal(want) {
		t.Errorf("expires %v, want %v", expires, want)
	}
	want := someTicket()
	want.ID, want.Expires = access.IDOf(text), expires
	for range 2 {
		got, ticket, err := i.Verify(t.Context(), text, "shop")
		if err != nil || got.APIKey != "shop" || ticket == nil || !reflect.DeepEqual(*ticket, want) {
			t.Fatalf("got %+v and %+v, %v, want %+v", got, ticket, err, want)
		}
		ticket.Alias = "changed" // a copy
	}
	token := f.login(i)
	if _, ticket, err := i.Verify(t.Context(), token, ""); err != nil || ticket != nil {
		t.Errorf("a token: %+v, %v", ticket, err)
	}
	if got, ticket, err := i.VerifyTicket(t.Context(), want.ID); err != nil || got.APIKey != "shop" || !reflect.DeepEqual(*ticket, want) {
		t.Errorf("by its ID: %+v, %v", ticket, err)
	}
	_, _, err = i.VerifyTicket(t.Context(), access.IDOf(token))
	wantCredentials(t, "the ID of a token", err)
	_, _, err = i.Verify(t.Context(), text, "blog")
	wantCredentials(t, "another account", err)
	f.clock.Advance(expires.Sub(f.clock.Now()))
	_, _, err = i.Verify(t.Context(), text, "")
	wantCredentials(t, "expired", err)
}

// TestRevokeMeanwhile: a ticket that is stored during a revocation, for a token that is not removed
// yet, is removed too.
func TestRevokeMeanwhile(t *testing.T) {
	t.Parallel()
	f, shop := newFixture(t), account("shop", "secret")
	i := f.issuer(shop)
	var text string
	f.store.deleted = func() {
		if text == "" {
			text = f.ticket(i, shop)
		}
	}
	if n, err := i.Revoke(t.Context(), "shop"); n != 1 || err != nil {
		t.Errorf("revoked %d, %v", n, err)
	}
	_, _, err := i.Verify(t.Context(), text, "")
	wantCredentials(t, "issued meanwhile", err)
}

func TestTakeErrors(t *testing.T) {
	t.Parallel()
	f, shop := newFixture(t), account("shop", "secret")
	i := f.issuer(shop)
	text := f.ticket(i, shop)
	_, ticket, err := i.Verify(t.Context(), text, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Take(t.Context(), ticket, "a", 3); err != nil {
		t.Errorf("all: %v", err)
	}
	if err := i.Take(t.Context(), ticket, "b", 1); !errors.Is(err, access.ErrUsedUp) {
		t.Errorf("one more: %v", err)
	}
	if _, ticket, err := i.Verify(t.Context(), text, ""); err != nil || ticket.Left() != 0 {
		t.Errorf("used up: %+v, %v", ticket, err)
	}
	if err := i.GiveBack(t.Context(), ticket.ID, "a"); err != nil {
		t.Errorf("giving back: %v", err)
	}
	if _, ticket, err := i.Verify(t.Context(), text, ""); err != nil || ticket.Left() != 3 {
		t.Errorf("given back: %+v, %v", ticket, err)
	}
	if err := errors.Join(i.Drop(t.Context(), text), i.Drop(t.Context(), text)); err != nil {
		t.Errorf("removing: %v", err)
	}
	wantCredentials(t, "removed", i.Take(t.Context(), ticket, "c", 1))
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Take": i.Take(t.Context(), ticket, "c", 1), "GiveBack": i.GiveBack(t.Context(), ticket.ID, "c"), "Drop": i.Drop(t.Context(), text),
	} {
		if !errors.Is(err, tokens.ErrUnavailable) {
			t.Errorf("%s without a store: %v", name, err)
		}
	}
}

// TestTakeUses: a use is counted once, whatever its name, and uses of one ticket are not those of
// another.
func TestTakeUses(t *testing.T) {
	t.Parallel()
	f, shop := newFixture(t), account("shop", "secret")
	i := f.issuer(shop)
	first, second := f.ticket(i, shop), f.ticket(i, shop)
	take := func(text, use string, n, used int, want error) {
		t.Helper()
		err := i.Take(t.Context(), &access.Ticket{ID: access.IDOf(text)}, use, n)
		_, ticket, failed := i.Verify(t.Context(), text, "")
		if !errors.Is(err, want) || failed != nil || ticket.Used() != used {
			t.Fatalf("%q of %d: %v, want %v; %+v, %v", use, n, err, want, ticket, failed)
		}
	}
	take(first, "a", 4, 0, access.ErrUsedUp)
	take(first, "", 1, 1, nil)
	take(first, "\x00ě\n", 1, 2, nil)
	take(first, "", 1, 2, nil)
	take(first, "b", 2, 2, access.ErrUsedUp)
	take(first, "b", 1, 3, nil)
	take(first, "\x00ě\n", 1, 3, nil) // also when used up
	take(second, "b", 1, 1, nil)
	for range 2 { // the second time it is missing
		if err := i.GiveBack(t.Context(), access.IDOf(first), "b"); err != nil {
			t.Error(err)
		}
	}
	take(first, "c", 1, 3, nil)
	token := f.login(i)
	wantCredentials(t, "a token", i.Take(t.Context(), &access.Ticket{ID: access.IDOf(token)}, "a", 1))
	f.clock.Advance(2 * time.Minute)
	wantCredentials(t, "expired", i.Take(t.Context(), &access.Ticket{ID: access.IDOf(first)}, "d", 1))
	if err := errors.Join(i.GiveBack(t.Context(), access.IDOf(first), "c"), i.Refuse(t.Context(), &access.Ticket{ID: access.IDOf(token)}, 1)); err != nil {
		t.Error(err)
	}
}

// TestTakeConcurrent: of many uses at once, exactly those that are left succeed.
func TestTakeConcurrent(t *testing.T) {
	t.Parallel()
	f, shop := newFixture(t), account("shop", "secret")
	i := f.issuer(shop)
	ticket := &access.Ticket{ID: access.IDOf(f.ticket(i, shop))}
	for round := range 3 {
		var wg sync.WaitGroup
		var taken atomic.Int64
		var uses [20]string
		for n := range uses {
			wg.Go(func() {
				use := fmt.Sprint(round, n)
				switch err := i.Take(t.Context(), ticket, use, 1); {
				case err == nil:
					taken.Add(1)
					uses[n] = use
				case !errors.Is(err, access.ErrUsedUp):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if taken.Load() != 3 {
			t.Errorf("%d uses of a ticket for 3", taken.Load())
		}
		for _, use := range uses {
			wg.Go(func() {
				if err := i.GiveBack(t.Context(), ticket.ID, use); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

// TestTicketsPerMinute: an account gets 600 tickets a minute. Those that are valid for long count
// once more for every four hours, so the number of valid tickets is limited too.
func TestTicketsPerMinute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lifetime    time.Duration
		atOnce      int
		afterMinute int
	}{
		{time.Minute, 600, 600},
		{4*time.Hour - 1, 600, 600},
		{4 * time.Hour, 300, 300},
		{24 * time.Hour, 85, 85},
		{10_000 * time.Hour, 1, 1},
	} {
		f, shop, blog := newFixture(t), account("shop", "secret"), account("blog", "secret")
		i := f.issuer(shop, blog)
		issue := func(a access.Account) error {
			_, _, err := i.IssueTicket(t.Context(), a, someTicket(), c.lifetime)
			return err
		}
		for _, want := range []int{c.atOnce, c.afterMinute} {
			issued, err := 0, error(nil)
			for err == nil {
				if err = issue(shop); err == nil {
					issued++
				}
			}
			throttled, ok := errors.AsType[*access.ThrottledError](err)
			if !ok || issued != want {
				t.Errorf("%s: %d tickets, want %d, then %v", c.lifetime, issued, want, err)
				break
			}
			if err := issue(blog); err != nil {
				t.Errorf("%s: another account: %v", c.lifetime, err)
			}
			f.clock.Advance(max(throttled.RetryAfter, time.Minute))
			i = f.issuer(shop, blog) // a reload forgets nothing
		}
	}
}

// TestRefuse: a ticket of which ten items for each of its files were refused has none left.
func TestRefuse(t *testing.T) {
	t.Parallel()
	f, shop := newFixture(t), account("shop", "secret")
	i := f.issuer(shop)
	text := f.ticket(i, shop) // for three files
	for _, c := range []struct{ more, left int }{{0, 3}, {29, 3}, {1, 0}, {1, 0}} {
		for range c.more {
			if err := i.Refuse(t.Context(), &access.Ticket{ID: access.IDOf(text)}, 1); err != nil {
				t.Fatal(err)
			}
		}
		if _, ticket, err := i.Verify(t.Context(), text, ""); err != nil || ticket.Left() != c.left {
			t.Errorf("%d more: %+v, error %v", c.more, ticket, err)
		}
	}
}
