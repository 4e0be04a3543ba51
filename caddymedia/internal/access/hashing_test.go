package access_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
)

// TestHashLimiter: of many parallel logins some are hashed, some wait, and the rest are refused.
func TestHashLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		limiter := access.NewHashLimiter(access.HashLimiterOptions{Concurrent: 2, Waiting: 3, MaxWait: 10 * time.Second})
		i, err := access.NewIssuer(access.IssuerOptions{
			Store:    memory.New(nil),
			Accounts: []access.Account{account("shop", "secret")},
			Hashing:  limiter,
			Comparer: tokens.CompareFunc(func(hashed, plaintext []byte) (bool, error) {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				time.Sleep(6 * time.Second)
				return slices.Equal(hashed, plaintext), nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
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
		i, err := access.NewIssuer(access.IssuerOptions{
			Store:    memory.New(nil),
			Accounts: []access.Account{account("shop", "secret")},
			Hashing:  access.NewHashLimiter(access.HashLimiterOptions{Concurrent: 1}),
			Comparer: tokens.CompareFunc(func(_, _ []byte) (bool, error) {
				compared.Add(1)
				<-hold
				return false, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
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
		i, err := access.NewIssuer(access.IssuerOptions{
			Store:    memory.New(nil),
			Accounts: []access.Account{account("shop", "secret"), account("blog", "other")},
			Hashing:  access.NewHashLimiter(access.HashLimiterOptions{Concurrent: 1, MaxWait: time.Hour}),
			Throttle: access.NewThrottle(access.ThrottleOptions{Failures: 1000}),
			Comparer: tokens.CompareFunc(func(hashed, plaintext []byte) (bool, error) {
				time.Sleep(time.Second)
				return slices.Equal(hashed, plaintext), nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
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
