package access_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
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

// TestRightLogins: many successful logins from a known site are never refused, as many at a time as
// may fail, also after failures. Further ones at the same time are refused. Failures stay limited.
func TestRightLogins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := access.NewHashLimiter(access.HashLimiterOptions{Concurrent: 2})
		i := slowIssuer(t, access.IssuerOptions{Hashing: limiter}, func(hashed, plaintext []byte) bool {
			time.Sleep(100 * time.Millisecond)
			return slices.Equal(hashed, plaintext)
		}, account("shop", "secret"))
		login := func(password string) error {
			_, _, err := i.Issue(t.Context(), "shop", password, home)
			return err
		}
		if err := login("secret"); err != nil {
			t.Fatal(err)
		}
		for _, failures := range []int{0, 9} { // the limit is full, and nearly empty
			for n := range failures {
				wantCredentials(t, fmt.Sprint("failure ", n), login("wrong"))
			}
			for range 30 {
				most := 10 - failures
				results := make(chan error, most+1)
				for range cap(results) {
					go func() { results <- login("secret") }()
				}
				synctest.Wait()
				if len(results) != 1 || !isThrottled(<-results) {
					t.Errorf("after %d failures: %d logins ended at once, want one", failures, len(results))
				}
				for range most {
					if err := <-results; err != nil {
						t.Errorf("after %d failures: %v", failures, err)
					}
				}
			}
		}
	})
}

// TestHashLimiter: of many parallel logins some are hashed, some wait, and the rest are refused.
func TestHashLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		limiter := access.NewHashLimiter(access.HashLimiterOptions{Concurrent: 2, Waiting: 3, MaxWait: 10 * time.Second})
		i := slowIssuer(t, access.IssuerOptions{Hashing: limiter}, func(hashed, plaintext []byte) bool {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(6 * time.Second)
			return slices.Equal(hashed, plaintext)
		}, account("shop", "secret"))
		start, next := time.Now(), home
		var mu sync.Mutex
		var wg sync.WaitGroup
		answers := make(map[string]int)
		for range 10 {
			next = next.Next()
			client := next
			wg.Go(func() {
				_, _, err := i.Issue(t.Context(), "shop", "secret", client)
				mu.Lock()
				defer mu.Unlock()
				answers[fmt.Sprintf("throttled %v after %v", isThrottled(err), time.Since(start))]++
			})
			synctest.Wait()
		}
		wg.Wait()
		want := map[string]int{
			"throttled false after 6s": 2, "throttled true after 0s": 5,
			"throttled false after 12s": 2, "throttled true after 10s": 1,
		}
		if fmt.Sprint(answers) != fmt.Sprint(want) || most.Load() != 2 {
			t.Errorf("%d at once, answers:\n got %v\nwant %v", most.Load(), answers, want)
		}
	})
}

// TestHashLimiterContext: a waiting login whose context ends costs nothing.
func TestHashLimiterContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var compared atomic.Int64
		limiter := access.NewHashLimiter(access.HashLimiterOptions{Concurrent: 1})
		i := slowIssuer(t, access.IssuerOptions{Hashing: limiter}, func(_, _ []byte) bool {
			compared.Add(1)
			<-hold
			return false
		}, account("shop", "secret"))
		go func() { _, _, _ = i.Issue(t.Context(), "shop", "wrong", home) }()
		synctest.Wait()
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, _, err := i.Issue(ctx, "shop", "wrong", home)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, access.ErrCredentials) {
				t.Fatalf("got %v, want the context's error", err)
			}
		}
		close(hold)
		synctest.Wait()
		if n := compared.Load(); n != 1 {
			t.Errorf("%d passwords were hashed", n)
		}
	})
}

// TestHashLimiterIsFair: unknown clients overfill the queue. A login from another network still
// gets the second free slot. An account at a known site does not wait for unknown clients.
func TestHashLimiterIsFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := slowIssuer(t, access.IssuerOptions{
			Hashing:  access.NewHashLimiter(access.HashLimiterOptions{Concurrent: 1, MaxWait: time.Hour}),
			Throttle: access.NewThrottle(access.ThrottleOptions{Failures: 1000}),
		}, func(hashed, plaintext []byte) bool {
			time.Sleep(time.Second)
			return slices.Equal(hashed, plaintext)
		}, account("shop", "secret"), account("blog", "other"))
		owner := netip.MustParseAddr("203.0.113.1")
		if _, _, err := i.Issue(t.Context(), "shop", "secret", owner); err != nil {
			t.Fatal(err)
		}
		var refused atomic.Int64
		var wg sync.WaitGroup
		for n := range 400 { // of one network each, and of no account
			for _, client := range []netip.Addr{
				netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}),
				netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 6: byte(n >> 8), 7: byte(n), 15: 1}),
			} {
				wg.Go(func() {
					if _, _, err := i.Issue(t.Context(), fmt.Sprint("nobody", n), "x", client); isThrottled(err) {
						refused.Add(1)
					}
				})
			}
		}
		synctest.Wait()
		login := func(apiKey, password string, client netip.Addr, within time.Duration) {
			wg.Go(func() {
				start := time.Now()
				if _, _, err := i.Issue(t.Context(), apiKey, password, client); err != nil || time.Since(start) > within {
					t.Errorf("%s from %s: %v after %v", apiKey, client, err, time.Since(start))
				}
			})
		}
		login("shop", "secret", owner, 3*time.Second)
		login("blog", "other", netip.MustParseAddr("203.0.114.1"), 6*time.Second)
		wg.Wait()
		if refused.Load() < 600 {
			t.Errorf("%d logins of strangers were refused", refused.Load())
		}
	})
}
