package tokens_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
)

// TestRightLogins: many successful logins, also 20 at a time and after failures, are never refused.
// Failures between them stay limited.
func TestRightLogins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i, err := tokens.NewIssuer(tokens.IssuerOptions{
			Store:    memory.New(nil),
			Accounts: []tokens.Account{account("shop", "secret")},
			Hashing:  tokens.NewHashLimiter(tokens.HashLimiterOptions{Concurrent: 2}),
			Comparer: tokens.CompareFunc(func(hashed, plaintext []byte) (bool, error) {
				time.Sleep(100 * time.Millisecond)
				return slices.Equal(hashed, plaintext), nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		login := func(password string) error {
			_, _, err := i.Issue(t.Context(), "shop", password, home)
			return err
		}
		start := time.Now()
		if err := login("secret"); err != nil {
			t.Fatal(err)
		}
		for _, failures := range []int{0, 9} { // the limit is full, and nearly empty
			for n := range failures {
				wantCredentials(t, fmt.Sprint("failure ", n), login("wrong"))
			}
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					for range 30 {
						if err := login("secret"); err != nil {
							t.Errorf("after %d failures and %v: %v", failures, time.Since(start), err)
							return
						}
					}
				})
			}
			wg.Wait()
		}
		if spent := time.Since(start); spent > 2*time.Minute {
			t.Errorf("1200 logins took %v", spent)
		}
	})
}

// TestRightLoginsCancelled: a cancelled login that waits for parallel ones ends at once and costs
// nothing.
func TestRightLoginsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		i, err := tokens.NewIssuer(tokens.IssuerOptions{
			Store:    memory.New(nil),
			Accounts: []tokens.Account{account("shop", "secret")},
			Throttle: tokens.NewThrottle(tokens.ThrottleOptions{Failures: 1}),
			Comparer: tokens.CompareFunc(func(hashed, plaintext []byte) (bool, error) {
				<-hold
				return slices.Equal(hashed, plaintext), nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		results := make(chan error, 3)
		login := func(ctx context.Context) {
			go func() {
				_, _, err := i.Issue(ctx, "shop", "secret", home)
				results <- err
			}()
			synctest.Wait()
		}
		login(t.Context())
		hold <- struct{}{} // the pair is known
		if err := <-results; err != nil {
			t.Fatal(err)
		}
		login(t.Context()) // holds the only token
		ctx, cancel := context.WithCancel(t.Context())
		login(ctx)
		login(t.Context())
		cancel()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: got %v", err)
		}
		close(hold)
		for range 2 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		wantCredentials(t, "a failure", func() error { _, _, err := i.Issue(t.Context(), "shop", "wrong", home); return err }())
	})
}
