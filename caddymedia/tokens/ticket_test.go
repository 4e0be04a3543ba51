package tokens_test

import (
	"errors"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
)

func someTicket() tokens.Ticket {
	return tokens.Ticket{Kind: "image", Alias: "content", SubFolder: "a", Filename: "b.jpg", MaxFiles: 3, MaxSize: 5}
}

// ticket issues a ticket to the account "shop", and fails if it cannot.
func (f *fixture) ticket(i *tokens.Issuer, shop tokens.Account) string {
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
	want.ID, want.Expires = tokens.IDOf(text), expires
	for range 2 {
		got, ticket, err := i.Verify(t.Context(), text, "shop")
		if err != nil || got.APIKey != "shop" || ticket == nil || *ticket != want {
			t.Fatalf("got %+v and %+v, %v, want %+v", got, ticket, err, want)
		}
		ticket.Alias = "changed" // a copy
	}
	token := f.login(i)
	if _, ticket, err := i.Verify(t.Context(), token, ""); err != nil || ticket != nil {
		t.Errorf("a token: %+v, %v", ticket, err)
	}
	if got, ticket, err := i.VerifyTicket(t.Context(), want.ID); err != nil || got.APIKey != "shop" || *ticket != want {
		t.Errorf("by its ID: %+v, %v", ticket, err)
	}
	_, _, err = i.VerifyTicket(t.Context(), tokens.IDOf(token))
	wantCredentials(t, "the ID of a token", err)
	_, _, err = i.Verify(t.Context(), text, "blog")
	wantCredentials(t, "another account", err)
	f.clock.Advance(expires.Sub(f.clock.Now()))
	_, _, err = i.Verify(t.Context(), text, "")
	wantCredentials(t, "expired", err)
}

// TestTicketIsNoToken: a version that does not know tickets takes their records for those of
// tokens, and must refuse them.
func TestTicketIsNoToken(t *testing.T) {
	t.Parallel()
	f, shop := newFixture(t), account("shop", "secret")
	i := f.issuer(shop)
	text := f.ticket(i, shop)
	rec := f.store.saved[0]
	rec.Ticket = nil // as that version decodes it
	if err := f.store.Save(t.Context(), tokens.IDOf(text), rec); err != nil {
		t.Fatal(err)
	}
	_, _, err := i.Verify(t.Context(), text, "")
	wantCredentials(t, "a ticket without its restrictions", err)
}

func TestTicketEnds(t *testing.T) {
	t.Parallel()
	shop, blog := account("shop", "secret", "content"), account("blog", "other")
	for _, test := range []struct {
		name     string
		accounts []tokens.Account
	}{
		{"removed", []tokens.Account{blog}},
		{"password changed", []tokens.Account{account("shop", "secret2", "content")}},
		{"right lost", []tokens.Account{account("shop", "secret", "other")}},
		{"rights changed", []tokens.Account{account("shop", "secret", "content", "other")}},
	} {
		f := newFixture(t)
		text := f.ticket(f.issuer(shop), shop)
		after := f.issuer(test.accounts...)
		_, _, err := after.Verify(t.Context(), text, "")
		wantCredentials(t, test.name, err)
		_, _, err = after.IssueTicket(t.Context(), shop, someTicket(), time.Minute)
		wantCredentials(t, test.name+", a new one", err)
	}
	f := newFixture(t)
	i := f.issuer(shop, blog)
	text := f.ticket(i, shop)
	if n, err := i.Revoke(t.Context(), "shop"); n != 1 || err != nil {
		t.Errorf("revoked %d, %v", n, err)
	}
	_, _, err := i.Verify(t.Context(), text, "")
	wantCredentials(t, "revoked", err)
}

// TestRevokeMeanwhile: a ticket that is stored during a revocation, for a token that is not removed
// yet, is removed too.
func TestRevokeMeanwhile(t *testing.T) {
	t.Parallel()
	f, shop := newFixture(t), account("shop", "secret")
	late := &lateStore{Store: memory.New(f.clock.Now)}
	f.store.Store = late
	i := f.issuer(shop)
	var text string
	late.after = func() {
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
	if err := i.Take(t.Context(), ticket, "b", 1); !errors.Is(err, tokens.ErrUsedUp) {
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
		issue := func(a tokens.Account) error {
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
			throttled, ok := errors.AsType[*tokens.ThrottledError](err)
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
			if err := i.Refuse(t.Context(), tokens.IDOf(text), 1); err != nil {
				t.Fatal(err)
			}
		}
		if _, ticket, err := i.Verify(t.Context(), text, ""); err != nil || ticket.Left() != c.left {
			t.Errorf("%d more: %+v, error %v", c.more, ticket, err)
		}
	}
}
