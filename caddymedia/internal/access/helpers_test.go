package access_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/caddymedia/internal/access"
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
	store    *countingStore
	comparer *countingComparer
	throttle *access.Throttle
	hashing  *access.HashLimiter
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, comparer: new(countingComparer), hashing: access.NewHashLimiter(access.HashLimiterOptions{})}
	f.store = &countingStore{Store: memory.New(f.clock.Now)}
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

// countingStore counts calls, and fails on request.
type countingStore struct {
	tokens.Store
	mu    sync.Mutex
	gets  int
	saved []tokens.Entry
	err   error
}

func (s *countingStore) Update(ctx context.Context, key, index string, change func(tokens.Entry) (tokens.Entry, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.err, s.Store.Update(ctx, key, index, func(old tokens.Entry) (tokens.Entry, error) {
		entry, err := change(old)
		s.saved = append(s.saved, entry)
		return entry, err
	}))
}

func (s *countingStore) Get(ctx context.Context, key string) (tokens.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	entry, err := s.Store.Get(ctx, key)
	if s.err != nil {
		return tokens.Entry{}, s.err
	}
	return entry, err
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

// lateStore calls after when an index is removed.
type lateStore struct {
	tokens.Store
	after func()
}

func (s *lateStore) DeleteIndex(ctx context.Context, index string) (int, error) {
	n, err := s.Store.DeleteIndex(ctx, index)
	s.after()
	return n, err
}
