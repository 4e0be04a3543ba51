package access_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/tokens"
)

func TestRevoke(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := f.issuer(account("shop", "secret"), account("shop2", "other"))
	first, second := f.login(i), f.login(i)
	others, _, err := i.Issue(t.Context(), "shop2", "other", home)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := i.Revoke(t.Context(), "shop"); n != 2 || err != nil {
		t.Errorf("ended %d tokens, want 2: %v", n, err)
	}
	for _, token := range []string{first, second} {
		_, _, err := i.Verify(t.Context(), token, "shop")
		wantCredentials(t, "an ended token", err)
	}
	if _, _, err := i.Verify(t.Context(), others, "shop2"); err != nil {
		t.Errorf("another account's token: %v", err)
	}
	if _, _, err := i.Verify(t.Context(), f.login(i), "shop"); err != nil {
		t.Errorf("a token issued afterwards: %v", err)
	}
}

// TestRevokeUnknown: the tokens of an account that is no longer configured can be revoked.
func TestRevokeUnknown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.issuer(account("shop", "secret"))
	token := f.login(before)
	after := f.issuer()
	for apiKey, want := range map[string]int{"nobody": 0, "": 0, "shop": 1} {
		if n, err := after.Revoke(t.Context(), apiKey); n != want || err != nil {
			t.Errorf("%q: ended %d tokens, want %d: %v", apiKey, n, want, err)
		}
	}
	_, _, err := before.Verify(t.Context(), token, "shop") // the account has come back
	wantCredentials(t, "an ended token", err)
}

// TestRevokeDuringLogins: tokens are revoked during logins, with two Issuers on one store as during
// a reload. Tokens issued before are invalid for both, and every token is counted once.
func TestRevokeDuringLogins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	issuers := []*access.Issuer{f.issuer(account("shop", "secret")), f.issuer(account("shop", "secret"))}
	const each = 20
	before := make([]string, each)
	for n := range before {
		before[n] = f.login(issuers[n%2])
	}
	ended := make([]int, len(issuers))
	var group sync.WaitGroup
	for n, i := range issuers {
		group.Go(func() {
			for range each {
				if _, _, err := i.Issue(t.Context(), "shop", "secret", home); err != nil {
					t.Errorf("logging in: %v", err)
				}
			}
		})
		group.Go(func() {
			count, err := i.Revoke(t.Context(), "shop")
			if ended[n] = count; err != nil {
				t.Errorf("ending: %v", err)
			}
		})
	}
	group.Wait()
	for _, token := range before {
		for _, i := range issuers {
			_, _, err := i.Verify(t.Context(), token, "shop")
			wantCredentials(t, "an ended token", err)
		}
	}
	rest, err := issuers[0].Revoke(t.Context(), "shop")
	if total := ended[0] + ended[1] + rest; err != nil || total != 3*each {
		t.Errorf("ended %d and then %d, want %d in all: %v", ended, rest, 3*each, err)
	}
}

func TestRevokeWithoutStore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := f.issuer(account("shop", "secret"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := i.Revoke(ctx, "shop"); !errors.Is(err, tokens.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("without a context: %v", err)
	}
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Revoke(t.Context(), "shop"); !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("without a store: %v", err)
	}
}
