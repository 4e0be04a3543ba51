// Package tokentest is the conformance suite of token stores: it tests the contract in the comments
// of tokens.Store.
package tokentest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// soon is the lifetime of a record that should expire. It is short, for stores whose clock cannot
// be moved. A slow test run must not fail because of it.
const soon = 500 * time.Millisecond

// Subject is a store under test.
type Subject struct {
	// Store is the store.
	Store tokens.Store
	// Now is the store's clock. Default: time.Now.
	Now func() time.Time
	// Advance advances the time of the store. Default: time.Sleep.
	Advance func(time.Duration)
	// Reopen closes the store and returns another one over the same data. If it is nil, the store
	// is expected to lose its data when closed.
	Reopen func(*testing.T) tokens.Store
}

var suite = []struct {
	name string
	run  func(*testing.T, Subject)
}{
	{"RoundTrip", testRoundTrip},
	{"Unknown", testUnknown},
	{"Replace", testReplace},
	{"Expiry", testExpiry},
	{"SaveExpired", testSaveExpired},
	{"Extend", testExtend},
	{"Delete", testDelete},
	{"DeleteAccount", testDeleteAccount},
	{"DeleteAccountExpired", testDeleteAccountExpired},
	{"DeleteAccountReplaced", testDeleteAccountReplaced},
	{"DeleteAccountMany", testDeleteAccountMany},
	{"DeleteAccountConcurrent", testDeleteAccountConcurrent},
	{"Ticket", testTicket},
	{"TicketExpiry", testTicketExpiry},
	{"TicketDeleteAccount", testTicketDeleteAccount},
	{"TicketReopen", testTicketReopen},
	{"Take", testTake},
	{"Refuse", testRefuse},
	{"TakeConcurrent", testTakeConcurrent},
	{"Secret", testSecret},
	{"SecretConcurrent", testSecretConcurrent},
	{"Request", testRequest},
	{"RequestLease", testRequestLease},
	{"RequestConcurrent", testRequestConcurrent},
	{"RequestDeleteAccount", testRequestDeleteAccount},
	{"RequestForgotten", testRequestForgotten},
	{"RequestLeft", testRequestLeft},
	{"RequestMost", testRequestMost},
	{"RequestBytes", testRequestBytes},
	{"RequestReopen", testRequestReopen},
	{"RequestExpiry", testRequestExpiry},
	{"Check", testCheck},
	{"Concurrent", testConcurrent},
	{"Reopen", testReopen},
	{"ContextEnded", testContextEnded},
	{"Closed", testClosed},
}

// Run runs the suite and returns when it is done. Every test gets its own Subject; these may share
// their data.
func Run(t *testing.T, newSubject func(*testing.T) Subject) {
	t.Helper()
	t.Run("Conformance", func(t *testing.T) {
		for _, test := range suite {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				s := newSubject(t)
				if s.Now == nil {
					s.Now = time.Now //nolint:forbidigo // the default clock
				}
				if s.Advance == nil {
					s.Advance = time.Sleep
				}
				t.Cleanup(func() { _ = s.Store.Close() })
				test.run(t, s)
			})
		}
	})
}

func testRoundTrip(t *testing.T, s Subject) {
	id, rec := newID(), s.record("key ěš")
	save(t, s.Store, id, rec)
	wantRecord(t, s.Store, id, rec)
	wantRecord(t, s.Store, id, rec)
}

func testUnknown(t *testing.T, s Subject) {
	wantUnknown(t, s.Store, newID())
	id := newID()
	save(t, s.Store, id, s.record("a"))
	id[0] ^= 1
	wantUnknown(t, s.Store, id)
}

func testReplace(t *testing.T, s Subject) {
	id, rec := newID(), s.record("b")
	save(t, s.Store, id, s.record("a"))
	save(t, s.Store, id, rec)
	wantRecord(t, s.Store, id, rec)
}

func testExpiry(t *testing.T, s Subject) {
	id, later, rec := newID(), newID(), s.record("b")
	save(t, s.Store, later, rec)
	save(t, s.Store, id, s.shortRecord("a"))
	s.Advance(soon)
	wantUnknown(t, s.Store, id)
	wantRecord(t, s.Store, later, rec)
}

func testSaveExpired(t *testing.T, s Subject) {
	id, rec := newID(), s.record("a")
	save(t, s.Store, id, rec)
	rec.Expires = s.Now()
	save(t, s.Store, id, rec)
	wantUnknown(t, s.Store, id)
	rec.Expires = time.Time{}
	save(t, s.Store, id, rec)
	wantUnknown(t, s.Store, id)
}

// testExtend saves a record again with a later expiry. The store may then sweep at the first
// expiry.
func testExtend(t *testing.T, s Subject) {
	id, rec := newID(), s.record("a")
	save(t, s.Store, id, s.shortRecord("a"))
	save(t, s.Store, id, rec)
	s.Advance(soon)
	for range 10 {
		save(t, s.Store, newID(), s.record("b"))
	}
	wantRecord(t, s.Store, id, rec)
}

func testDelete(t *testing.T, s Subject) {
	id, other, rec := newID(), newID(), s.record("a")
	save(t, s.Store, id, rec)
	save(t, s.Store, other, rec)
	for range 2 { // the second time it is missing
		if err := s.Store.Delete(t.Context(), id); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		wantUnknown(t, s.Store, id)
	}
	wantRecord(t, s.Store, other, rec)
}

func testCheck(t *testing.T, s Subject) {
	if err := s.Store.Check(t.Context()); err != nil {
		t.Fatalf("Check: %v", err)
	}
}

// testSecret: the first secret of a name stays, whatever is offered later, and whatever happens to
// accounts. Names have their own.
func testSecret(t *testing.T, s Subject) {
	name, other, account := rand.Text(), rand.Text(), rand.Text()
	first := []byte("\x00\xff" + rand.Text())
	wantSecret(t, s.Store, name, first, first)
	wantSecret(t, s.Store, name, []byte("another"), first)
	wantSecret(t, s.Store, other, []byte("of its own"), []byte("of its own"))
	save(t, s.Store, newID(), s.record(account))
	wantDeleted(t, s.Store, account, 1)
	wantDeleted(t, s.Store, name, 0)
	s.Advance(soon)
	wantSecret(t, s.Store, name, []byte("another"), first)
	if s.Reopen == nil {
		return
	}
	again := s.Reopen(t)
	t.Cleanup(func() { _ = again.Close() })
	wantSecret(t, again, name, []byte("another"), first)
}

// testSecretConcurrent: of many that offer a secret at once, all get the same one.
func testSecretConcurrent(t *testing.T, s Subject) {
	name := rand.Text()
	got := make([]string, 20)
	var wg sync.WaitGroup
	for n := range got {
		wg.Go(func() {
			secret, err := s.Store.Secret(t.Context(), name, []byte(rand.Text()))
			if err != nil {
				t.Errorf("Secret: %v", err)
			}
			got[n] = string(secret)
		})
	}
	wg.Wait()
	for _, secret := range got {
		if secret == "" || secret != got[0] {
			t.Fatalf("the secrets differ: %q", got)
		}
	}
}

func wantSecret(t *testing.T, s tokens.Store, name string, fresh, want []byte) {
	t.Helper()
	got, err := s.Secret(t.Context(), name, fresh)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("Secret: got %q and %v, want %q", got, err, want)
	}
}

func testConcurrent(t *testing.T, s Subject) {
	shared, rec := newID(), s.record("shared")
	save(t, s.Store, shared, rec)
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			id, own := newID(), rec
			own.Account = fmt.Sprint(n)
			err := s.Store.Save(t.Context(), id, own)
			got, errLoad := s.Store.Load(t.Context(), id)
			_, errShared := s.Store.Load(t.Context(), shared)
			if err := errors.Join(err, errLoad, errShared, s.Store.Check(t.Context())); err != nil {
				t.Errorf("worker %d: %v", n, err)
			} else if got.Account != own.Account {
				t.Errorf("worker %d got the record of %s", n, got.Account)
			}
			if err := s.Store.Delete(t.Context(), id); err != nil {
				t.Errorf("worker %d: Delete: %v", n, err)
			}
			if _, err := s.Store.Load(t.Context(), id); !errors.Is(err, tokens.ErrUnknown) {
				t.Errorf("worker %d: Load after Delete: %v", n, err)
			}
		})
	}
	wg.Wait()
	wantRecord(t, s.Store, shared, rec)
}

func testReopen(t *testing.T, s Subject) {
	if s.Reopen == nil {
		t.Skip("the store keeps nothing when it is closed")
	}
	id, expired, rec := newID(), newID(), s.record("a")
	save(t, s.Store, expired, s.shortRecord("a"))
	save(t, s.Store, id, rec)
	ended, account := newID(), rand.Text()
	save(t, s.Store, ended, s.record(account))
	wantDeleted(t, s.Store, account, 1)
	s.Advance(soon)
	again := s.Reopen(t)
	t.Cleanup(func() { _ = again.Close() })
	wantRecord(t, again, id, rec)
	wantUnknown(t, again, expired)
	wantUnknown(t, again, ended)
}

func testContextEnded(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range callAll(ctx, s) {
		if !errors.Is(err, tokens.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want ErrUnavailable and context.Canceled", name, err)
		}
	}
}

func testClosed(t *testing.T, s Subject) {
	save(t, s.Store, newID(), s.record("a"))
	for range 2 {
		if err := s.Store.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	for name, err := range callAll(t.Context(), s) {
		if !errors.Is(err, tokens.ErrUnavailable) {
			t.Errorf("%s: got %v, want ErrUnavailable", name, err)
		}
	}
}

func callAll(ctx context.Context, s Subject) map[string]error {
	_, errLoad := s.Store.Load(ctx, newID())
	_, errAccount := s.Store.DeleteAccount(ctx, "a")
	_, errSecret := s.Store.Secret(ctx, "a", []byte("b"))
	_, errBegin := s.Store.BeginRequest(ctx, newRequest("a"), lease)
	return map[string]error{
		"Save":   s.Store.Save(ctx, newID(), s.record("a")),
		"Load":   errLoad,
		"Delete": s.Store.Delete(ctx, newID()),
		"Check":  s.Store.Check(ctx),

		"Take":          s.Store.Take(ctx, newID(), "a", 1, 1),
		"GiveBack":      s.Store.GiveBack(ctx, newID(), "a"),
		"DeleteAccount": errAccount,
		"Secret":        errSecret,

		"BeginRequest":  errBegin,
		"ExtendRequest": s.Store.ExtendRequest(ctx, newRequest("a"), lease),
		"ClaimRequest":  s.Store.ClaimRequest(ctx, newRequest("a"), "b", nil),
		"EndRequest":    s.Store.EndRequest(ctx, newRequest("a"), []byte("b")),
		"ForgetRequest": s.Store.ForgetRequest(ctx, newRequest("a")),
	}
}

func (s Subject) record(account string) tokens.Record {
	return tokens.Record{Account: account, Fingerprint: "of " + account, Expires: s.Now().Add(time.Hour)}
}

func (s Subject) shortRecord(account string) tokens.Record {
	rec := s.record(account)
	rec.Expires = s.Now().Add(soon)
	return rec
}

func newID() tokens.ID { return tokens.IDOf(rand.Text()) }

func save(t *testing.T, s tokens.Store, id tokens.ID, rec tokens.Record) {
	t.Helper()
	if err := s.Save(t.Context(), id, rec); err != nil {
		t.Fatalf("Save: %v", err)
	}
}

func wantRecord(t *testing.T, s tokens.Store, id tokens.ID, want tokens.Record) {
	t.Helper()
	got, err := s.Load(t.Context(), id)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	if got.Account != want.Account || got.Fingerprint != want.Fingerprint || !got.Expires.Equal(want.Expires) {
		t.Fatalf("Load: got %+v, want %+v", got, want)
	}
}

func wantUnknown(t *testing.T, s tokens.Store, id tokens.ID) {
	t.Helper()
	if _, err := s.Load(t.Context(), id); !errors.Is(err, tokens.ErrUnknown) {
		t.Fatalf("Load: got %v, want ErrUnknown", err)
	}
}
