package access_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
)

// TestRightLogins: many successful logins from a known site are never refused, as many at a time as
// may fail, also after failures. Further ones at the same time are refused. Failures stay limited.
func TestRightLogins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i, err := access.NewIssuer(access.IssuerOptions{
			Store:    memory.New(nil),
			Accounts: []access.Account{account("shop", "secret")},
			Hashing:  access.NewHashLimiter(access.HashLimiterOptions{Concurrent: 2}),
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
