package access_test

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/caddymedia/tokens/tokentest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

var home = netip.MustParseAddr("192.0.2.1")

// fixture is the state that outlives a configuration, with counters.
type fixture struct {
	*testing.T
	clock    tokentest.Clock
	store    *fakeStore
	comparer *countingComparer
	throttle *access.Throttle
	hashing  *access.HashLimiter
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, comparer: new(countingComparer), hashing: access.NewHashLimiter(access.HashLimiterOptions{})}
	f.store = &fakeStore{Store: memory.New(f.clock.Now)}
	f.throttle = access.NewThrottle(access.ThrottleOptions{Now: f.clock.Now})
	return f
}

// issuer returns an Issuer of a configuration with the accounts.
func (f *fixture) issuer(accounts ...access.Account) *access.Issuer {
	f.Helper()
	i, err := access.NewIssuer(access.IssuerOptions{
		Store: f.store, Accounts: accounts, Comparer: f.comparer, FakeHash: []byte("fake"),
		Throttle: f.throttle, Hashing: f.hashing, Now: f.clock.Now,
	})
	if err != nil {
		f.Fatal(err)
	}
	return i
}

// login issues a token to the account "shop", and fails if it cannot.
func (f *fixture) login(i *access.Issuer) string {
	f.Helper()
	token, _, err := i.Issue(f.Context(), "shop", "secret", home)
	if err != nil {
		f.Fatal(err)
	}
	return token
}

// slowIssuer returns an issuer of the accounts that compares each password by a function.
func slowIssuer(t *testing.T, opts access.IssuerOptions, compare func(hashed, plaintext []byte) bool, accounts ...access.Account) *access.Issuer {
	t.Helper()
	opts.Store, opts.Accounts = memory.New(nil), accounts
	opts.Comparer = tokens.CompareFunc(func(hashed, plaintext []byte) (bool, error) { return compare(hashed, plaintext), nil })
	i, err := access.NewIssuer(opts)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// account returns an account whose password hash is the password.
func account(apiKey, password string, aliases ...string) access.Account {
	return access.Account{APIKey: apiKey, PasswordHash: password, Aliases: aliases}
}

// countingComparer records its arguments.
type countingComparer struct {
	mu     sync.Mutex
	hashes []string
	err    error
}

func (c *countingComparer) Compare(hashed, plaintext []byte) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hashes = append(c.hashes, string(hashed))
	return slices.Equal(hashed, plaintext), c.err
}

// taken returns the arguments since the last call.
func (c *countingComparer) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	hashes := c.hashes
	c.hashes = nil
	return hashes
}

// fakeStore counts calls, and fails on request.
type fakeStore struct {
	tokens.Store
	before  func(key string) // called before an update, if set
	deleted func()           // called after an index was removed, if set

	mu           sync.Mutex
	gets         int
	saved        []tokens.Entry
	err, updates error // of all calls, and of updates only
	late         bool  // failing updates do their work nevertheless
}

// fail sets the error of updates; nil for none.
func (s *fakeStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates = err
}

func (s *fakeStore) Update(ctx context.Context, key, index string, change func(tokens.Entry) (tokens.Entry, error)) error {
	s.mu.Lock()
	err := cmp.Or(s.err, s.updates)
	s.mu.Unlock()
	if s.before != nil {
		s.before(key)
	}
	if err != nil && !s.late {
		return err
	}
	return errors.Join(err, s.Store.Update(ctx, key, index, func(old tokens.Entry) (tokens.Entry, error) {
		entry, err := change(old)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.saved = append(s.saved, entry)
		return entry, err
	}))
}

func (s *fakeStore) Get(ctx context.Context, key string) (tokens.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	if s.err != nil {
		return tokens.Entry{}, s.err
	}
	return s.Store.Get(ctx, key)
}

func (s *fakeStore) DeleteIndex(ctx context.Context, index string) (int, error) {
	n, err := s.Store.DeleteIndex(ctx, index)
	if s.deleted != nil {
		s.deleted()
	}
	return n, err
}

// wantCredentials fails unless err is ErrCredentials.
func wantCredentials(t *testing.T, what string, err error) {
	t.Helper()
	_, throttled := errors.AsType[*access.ThrottledError](err)
	if !errors.Is(err, access.ErrCredentials) || errors.Is(err, tokens.ErrUnavailable) || throttled {
		t.Errorf("%s: got %v, want ErrCredentials", what, err)
	}
}

func isThrottled(err error) bool {
	throttled, ok := errors.AsType[*access.ThrottledError](err)
	return ok && throttled.RetryAfter > 0 && !errors.Is(err, access.ErrCredentials)
}
