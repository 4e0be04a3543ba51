package access_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/caddymedia/tokens/tokentest"
)

func TestIssue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.clock.Advance(time.Nanosecond)
	i := f.issuer(account("shop", "secret", "content"))
	token, expires, err := i.Issue(t.Context(), "shop", "secret", home)
	if err != nil {
		t.Fatal(err)
	}
	if len(token) != 43 || strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Errorf("token %q", token)
	}
	if want := f.clock.Now().Add(24*time.Hour + time.Second - 1).Truncate(time.Second); !expires.Equal(want) {
		t.Errorf("expires %v, want %v", expires, want)
	}
	if entry := f.store.saved[0]; !entry.Expires.Equal(expires) || strings.Contains(string(entry.Value), "secret") || strings.Contains(string(entry.Value), token) {
		t.Errorf("stored: %+v", string(entry.Value))
	}
	sum := sha256.Sum256([]byte(token))
	if entry, err := f.store.Get(t.Context(), "token/"+base64.RawURLEncoding.EncodeToString(sum[:])); err != nil || entry.Value == nil {
		t.Errorf("it is not stored under its SHA-256: %v", err)
	}
	for _, apiKey := range []string{"", "shop"} {
		got, _, err := i.Verify(t.Context(), token, apiKey)
		if err != nil || got.APIKey != "shop" || !got.Allows("content") || got.Allows("other") {
			t.Errorf("with key %q: got %+v, %v", apiKey, got, err)
		}
	}
	if f.login(i) == token {
		t.Error("the same token twice")
	}
	if n := len(f.comparer.taken()); n != 2 {
		t.Errorf("%d passwords were hashed for two logins", n)
	}
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := f.issuer(account("shop", "secret"), account("blog", "other"))
	token := f.login(i)
	id := access.IDOf(token)
	flipped := "A" + token[1:]
	if token[0] == 'A' {
		flipped = "B" + token[1:]
	}
	// The last of 43 characters has two unused bits, which a lenient decoder would ignore.
	spare := token[:42] + string(token[42]+1)
	for _, test := range []struct {
		name, token, apiKey string
		malformed           bool
	}{
		{"empty", "", "shop", true},
		{"short", token[:42], "shop", true},
		{"long", token + "A", "shop", true},
		{"much too long", strings.Repeat(token, 1000), "shop", true},
		{"padded", token + "=", "shop", true},
		{"standard alphabet", "+/" + token[2:], "shop", true},
		{"line break inside", token[:20] + "\n" + token[21:], "shop", true},
		{"line break behind", token + "\n", "shop", true},
		{"spare bits", spare, "shop", true},
		{"not text", strings.Repeat("\xff", 43), "shop", true},
		{"unknown", flipped, "shop", false},
		{"another account's", token, "blog", false},
		{"of a key that does not exist", token, "nobody", false},
		{"key in another case", token, "Shop", false},
		{"what is stored of it", string(id[:]), "shop", true},
	} {
		before := f.store.gets
		_, _, err := i.Verify(t.Context(), test.token, test.apiKey)
		wantCredentials(t, test.name, err)
		if errors.Is(err, access.ErrMalformed) != test.malformed {
			t.Errorf("%s: got %v, malformed is %v", test.name, err, test.malformed)
		}
		if asked := f.store.gets > before; asked == test.malformed {
			t.Errorf("%s: the store was called: %v", test.name, asked)
		}
	}
	f.comparer.taken()
	f.clock.Advance(24*time.Hour - 1)
	if _, _, err := i.Verify(t.Context(), token, "shop"); err != nil {
		t.Errorf("just before its end: %v", err)
	}
	f.clock.Advance(1)
	_, _, err := i.Verify(t.Context(), token, "shop")
	wantCredentials(t, "expired", err)
	if n := len(f.comparer.taken()); n != 0 {
		t.Errorf("verifying hashed %d passwords", n)
	}
}

// TestVerifyLateStore: a token ends by the clock of the Issuer, even if that of the store is
// behind.
func TestVerifyLateStore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.Store = memory.New(new(tokentest.Clock).Now)
	i := f.issuer(account("shop", "secret"))
	token := f.login(i)
	f.clock.Advance(24 * time.Hour)
	_, _, err := i.Verify(t.Context(), token, "shop")
	wantCredentials(t, "expired", err)
}

// TestStoreFails: a failure of the store is never reported as wrong credentials.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := f.issuer(account("shop", "secret"))
	token := f.login(i)
	for _, failure := range []error{tokens.ErrUnavailable, errors.New("disk on fire")} {
		f.store.err = failure
		_, _, errVerify := i.Verify(t.Context(), token, "shop")
		_, _, errIssue := i.Issue(t.Context(), "shop", "secret", home)
		for _, err := range []error{errVerify, errIssue} {
			if !errors.Is(err, tokens.ErrUnavailable) || !errors.Is(err, failure) || errors.Is(err, access.ErrCredentials) {
				t.Errorf("%v: got %v", failure, err)
			}
		}
	}
}

// TestGHSA56p6: tokens and tickets of a removed or changed account are refused at once, and it gets
// no new tickets; others stay valid.
func TestGHSA56p6(t *testing.T) {
	t.Parallel()
	blog := account("blog", "other")
	for _, test := range []struct {
		name     string
		accounts []access.Account
		ends     bool
	}{
		{"removed", []access.Account{blog}, true},
		{"all removed", nil, true},
		{"password changed", []access.Account{account("shop", "secret2", "content"), blog}, true},
		{"aliases changed", []access.Account{account("shop", "secret", "other"), blog}, true},
		{"alias added", []access.Account{account("shop", "secret", "content", "other"), blog}, true},
		{"aliases lifted", []access.Account{account("shop", "secret"), blog}, true},
		{"renamed", []access.Account{account("shop2", "secret", "content"), blog}, true},
		{"unchanged", []access.Account{blog, account("shop", "secret", "content")}, false},
		{"another one removed", []access.Account{account("shop", "secret", "content")}, false},
	} {
		f := newFixture(t)
		shop := account("shop", "secret", "content")
		before, after := f.issuer(shop, blog), f.issuer(test.accounts...)
		_, _, errToken := after.Verify(t.Context(), f.login(before), "")
		_, _, errTicket := after.Verify(t.Context(), f.ticket(before, shop), "")
		_, _, errNew := after.IssueTicket(t.Context(), shop, someTicket(), time.Minute)
		for what, err := range map[string]error{"token": errToken, "ticket": errTicket, "new ticket": errNew} {
			if test.ends {
				wantCredentials(t, test.name+", "+what, err)
			} else if err != nil {
				t.Errorf("%s, %s: %v", test.name, what, err)
			}
		}
	}
}

func TestNewIssuer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	good := account("shop", "secret")
	for _, test := range []struct {
		opts access.IssuerOptions
		want string
	}{
		{access.IssuerOptions{Store: f.store, Comparer: f.comparer, Accounts: []access.Account{good}}, ""},
		{access.IssuerOptions{Comparer: f.comparer}, "store"},
		{access.IssuerOptions{Store: f.store}, "comparer"},
		{access.IssuerOptions{Store: f.store, Comparer: f.comparer, Accounts: []access.Account{good, good}}, `"shop" is there twice`},
		{access.IssuerOptions{Store: f.store, Comparer: f.comparer, Accounts: []access.Account{account("", "x")}}, "without an API key"},
		{access.IssuerOptions{Store: f.store, Comparer: f.comparer, Accounts: []access.Account{account("x", "")}}, "no password hash"},
		{access.IssuerOptions{Store: f.store, Comparer: f.comparer, Accounts: []access.Account{account(strings.Repeat("x", 1025), "x")}}, "1024 bytes"},
	} {
		i, err := access.NewIssuer(test.opts)
		switch {
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("got %v, want an error with %q", err, test.want)
		case test.want == "" && err != nil:
			t.Error(err)
		case test.want == "": // with its defaults it works
			if _, _, err := i.Issue(t.Context(), "shop", "secret", netip.Addr{}); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestSecret: the first secret of a name stays for all Issuers of a store, whatever happens to
// accounts. It is read from a store that refuses writes.
func TestSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var wg sync.WaitGroup
	var secrets [20][]byte
	for n := range secrets {
		wg.Go(func() {
			var err error
			if secrets[n], err = access.Secret(t.Context(), f.store, "a", []byte{byte(n)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := f.issuer(account("a", "secret")).Revoke(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	f.clock.Advance(365 * 24 * time.Hour)
	f.store.fail(tokens.ErrUnavailable)
	last, err := access.Secret(t.Context(), f.store, "a", []byte("other"))
	if err != nil {
		t.Error(err)
	}
	for _, secret := range secrets {
		if !bytes.Equal(secret, last) {
			t.Errorf("secrets %q, then %q", secret, last)
		}
	}
	if _, err := access.Secret(t.Context(), f.store, "b", []byte("b")); !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("a secret that cannot be stored: %v", err)
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	i := f.issuer(account("shop", "secret"), account("shop2", "other"))
	first, second := f.login(i), f.ticket(i, account("shop", "secret"))
	others, _, err := i.Issue(t.Context(), "shop2", "other", home)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := i.Revoke(t.Context(), "shop"); n != 2 || err != nil {
		t.Errorf("ended %d tokens, want 2: %v", n, err)
	}
	for _, token := range []string{first, second} {
		_, _, err := i.Verify(t.Context(), token, "shop")
		wantCredentials(t, "an ended token or ticket", err)
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
