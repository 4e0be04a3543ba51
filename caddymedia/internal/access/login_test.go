package access_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/access"
)

// TestUnknownKeyCost: an unknown key costs one comparison, like a known one, and is always refused.
// It is always compared with the hash of the same account, in any order of the configuration.
func TestUnknownKeyCost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cheap, dear := account("cheap", "pw1"), account("dear", "pw2")
	var met []string
	for n := range 40 {
		apiKey := fmt.Sprint("nobody", n)
		hashes := make([]string, 0, 6)
		for _, i := range []*access.Issuer{f.issuer(cheap, dear), f.issuer(dear, cheap)} {
			for _, password := range []string{"wrong", "pw1", "pw2"} {
				_, _, err := i.Issue(t.Context(), apiKey, password, home)
				wantCredentials(t, apiKey+" with "+password, err)
				f.clock.Advance(time.Minute)
			}
			hashes = append(hashes, f.comparer.taken()...)
		}
		if len(hashes) != 6 || len(slices.Compact(hashes)) != 1 {
			t.Fatalf("%s was compared with %q", apiKey, hashes)
		}
		met = append(met, hashes[0])
	}
	slices.Sort(met)
	if met = slices.Compact(met); !slices.Equal(met, []string{"pw1", "pw2"}) {
		t.Errorf("unknown keys meet %q only", met)
	}

	_, _, err := f.issuer(cheap, dear).Issue(t.Context(), "dear", "wrong", home)
	wantCredentials(t, "wrong password", err)
	if hashes := f.comparer.taken(); !slices.Equal(hashes, []string{"pw2"}) {
		t.Errorf("a known key was compared with %q", hashes)
	}
	_, _, err = f.issuer().Issue(t.Context(), "nobody", "fake", home)
	wantCredentials(t, "no accounts", err)
	if hashes := f.comparer.taken(); !slices.Equal(hashes, []string{"fake"}) {
		t.Errorf("without accounts it was compared with %q", hashes)
	}
}

// TestNoAccounts: without accounts and FakeHash, logins are refused.
func TestNoAccounts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i, err := access.NewIssuer(access.IssuerOptions{Store: f.store, Comparer: f.comparer})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = i.Issue(t.Context(), "nobody", "", home)
	wantCredentials(t, "no accounts", err)
}

// TestCVE202564526: changing the values that a client can choose does not allow more attempts.
func TestCVE202564526(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := f.issuer(account("shop", "secret"))
	for n := range 30 {
		_, _, err := i.Issue(t.Context(), fmt.Sprint("shop", n), fmt.Sprint("guess", n), home)
		switch {
		case n < 10:
			wantCredentials(t, fmt.Sprint("attempt ", n), err)
		case !isThrottled(err):
			t.Errorf("attempt %d: got %v, want a ThrottledError", n, err)
		}
	}
	if n := len(f.comparer.taken()); n != 10 {
		t.Errorf("%d passwords were hashed", n)
	}
	if _, _, err := i.Issue(t.Context(), "shop", "secret", home); !isThrottled(err) {
		t.Errorf("the right password from there: got %v", err)
	}
	if _, _, err := i.Issue(t.Context(), "shop", "secret", netip.MustParseAddr("198.51.100.1")); err != nil {
		t.Errorf("the right password from elsewhere: %v", err)
	}
	// A new configuration keeps the count of failures.
	if _, _, err := f.issuer(account("shop", "new")).Issue(t.Context(), "shop", "new", home); !isThrottled(err) {
		t.Errorf("after a reload: got %v", err)
	}
}

// TestThrottledAlike: a key attacked from everywhere is refused after the same number of attempts,
// whether it exists or not.
func TestThrottledAlike(t *testing.T) {
	t.Parallel()
	for _, apiKey := range []string{"shop", "nobody"} {
		f := newFixture(t)
		i := f.issuer(account("shop", "secret"))
		client, attempts := home, 0
		for ; attempts < 100; attempts++ {
			client = client.Next()
			if _, _, err := i.Issue(t.Context(), apiKey, "wrong", client); isThrottled(err) {
				break
			}
		}
		if attempts != 30 {
			t.Errorf("%s: %d attempts", apiKey, attempts)
		}
	}
}

// TestLockOut: while its password is guessed from everywhere, an account can still log in from a
// known site.
func TestLockOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := f.issuer(account("shop", "secret"))
	f.login(i)
	for n := range 100 {
		client := netip.AddrFrom4([4]byte{10, 0, byte(n), 1})
		_, _, _ = i.Issue(t.Context(), "shop", "wrong", client)
	}
	if _, _, err := i.Issue(t.Context(), "shop", "secret", netip.MustParseAddr("203.0.113.1")); !isThrottled(err) {
		t.Errorf("from elsewhere: got %v", err)
	}
	f.login(i)
	f.login(f.issuer(account("shop", "secret"))) // a reload forgets nothing
	if n := len(f.comparer.taken()); n != 33 {   // 3 logins and 30 guesses
		t.Errorf("%d passwords were hashed", n)
	}
}

// TestRealms: equal names in two realms have separate limits.
func TestRealms(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := f.issuer(account("admin", "secret"))
	panel := access.NewPasswords(access.PasswordsOptions{
		Realm: "panel", Hashes: map[string]string{"admin": "other"}, Comparer: f.comparer, Throttle: f.throttle, Hashing: f.hashing,
	})
	for n := range 40 {
		_ = panel.Check(t.Context(), "admin", "wrong", netip.AddrFrom4([4]byte{10, 0, byte(n), 1}))
	}
	if err := panel.Check(t.Context(), "admin", "other", home); !isThrottled(err) {
		t.Errorf("the limit is not used up: %v", err)
	}
	if _, _, err := i.Issue(t.Context(), "admin", "secret", home); err != nil {
		t.Error(err)
	}
	f.clock.Advance(time.Minute)
	wantCredentials(t, "the password of the other realm", panel.Check(t.Context(), "admin", "secret", home))
	if err := panel.Check(t.Context(), "admin", "other", home); err != nil {
		t.Error(err)
	}
}

// TestParallelGuesses: parallel guesses get no more comparisons than sequential ones, also from a
// known site.
func TestParallelGuesses(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		f := newFixture(t)
		i := f.issuer(account("shop", "secret"))
		if known {
			f.login(i)
			f.comparer.taken()
		}
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { _, _, _ = i.Issue(t.Context(), "shop", "wrong", home) })
		}
		wg.Wait()
		if n := len(f.comparer.taken()); n != 10 {
			t.Errorf("known %v: %d passwords were hashed", known, n)
		}
	}
}

// TestTooLong: secrets that would take long to hash are refused.
func TestTooLong(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := f.issuer(account("shop", "secret"))
	long := strings.Repeat("x", 1025)
	_, _, errKey := i.Issue(t.Context(), long, "secret", home)
	_, _, errPassword := i.Issue(t.Context(), "shop", long, home)
	wantCredentials(t, "key", errKey)
	wantCredentials(t, "password", errPassword)
	if n := len(f.comparer.taken()); n != 0 {
		t.Errorf("%d passwords were hashed", n)
	}
}

// TestBrokenHash: with an invalid configured hash all logins are refused, and the error has the
// reason.
func TestBrokenHash(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.comparer.err = errors.New("malformed hash")
	_, _, err := f.issuer(account("shop", "secret")).Issue(t.Context(), "shop", "secret", home)
	wantCredentials(t, "broken hash", err)
	if !errors.Is(err, f.comparer.err) {
		t.Errorf("the cause is lost: %v", err)
	}
}
