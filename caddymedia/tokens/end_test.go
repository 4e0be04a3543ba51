package tokens_test

import (
	"context"
	"errors"
	"testing"

	"github.com/caddymedia/media/caddymedia/tokens"
)

func TestEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := f.issuer(account("shop", "secret"), account("shop2", "other"))
	first, second := f.login(i), f.login(i)
	others, _, err := i.Issue(t.Context(), "shop2", "other", home)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := i.End(t.Context(), "shop"); n != 2 || err != nil {
		t.Errorf("ended %d tokens, want 2: %v", n, err)
	}
	for _, token := range []string{first, second} {
		_, err := i.Verify(t.Context(), token, "shop")
		wantCredentials(t, "an ended token", err)
	}
	if _, err := i.Verify(t.Context(), others, "shop2"); err != nil {
		t.Errorf("another account's token: %v", err)
	}
	if _, err := i.Verify(t.Context(), f.login(i), "shop"); err != nil {
		t.Errorf("a token issued afterwards: %v", err)
	}
}

// TestEndOfUnknown ends tokens of an account that is not configured: those that it had, or none.
func TestEndOfUnknown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.issuer(account("shop", "secret"))
	token := f.login(before)
	after := f.issuer()
	for apiKey, want := range map[string]int{"nobody": 0, "": 0, "shop": 1} {
		if n, err := after.End(t.Context(), apiKey); n != want || err != nil {
			t.Errorf("%q: ended %d tokens, want %d: %v", apiKey, n, want, err)
		}
	}
	_, err := before.Verify(t.Context(), token, "shop") // the account has come back
	wantCredentials(t, "an ended token", err)
}

func TestEndWithoutStore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := f.issuer(account("shop", "secret"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := i.End(ctx, "shop"); !errors.Is(err, tokens.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("without a context: %v", err)
	}
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := i.End(t.Context(), "shop"); !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("without a store: %v", err)
	}
}
