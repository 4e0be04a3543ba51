package mediahttp_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

const (
	someKey  = "site"
	password = "password"
)

// site is a service with the file aliases "one", "two" and "broken", whose storage is unreachable.
type site struct {
	media.NopObserver

	store   *failingStore
	driver  *memory.Driver // of "one" and "two"
	first   *media.Service
	running atomic.Pointer[media.Service] // after a reload; nil while the source is closed
	handler *mediahttp.Handler
	log     *logged
	failed  atomic.Int64 // requests
}

// newSite starts a service with one account, until the end of the test.
func newSite(t *testing.T, limits media.Limits) *site {
	t.Helper()
	s := &site{store: &failingStore{Store: tokenmemory.New(nil)}, driver: memory.New(), log: new(logged)}
	s.first = s.service(t, limits, account())
	s.running.Store(s.first)
	s.handler = mediahttp.New(s, mediahttp.Options{Log: slog.New(s.log)})
	return s
}

func account(aliases ...string) tokens.Account {
	return tokens.Account{APIKey: someKey, PasswordHash: password, Aliases: aliases}
}

// keepOpen is a Close for a driver that several services share.
func keepOpen() error { return nil }

// unreachable returns a driver that fails.
func unreachable() storagedrivers.Driver {
	d := memory.New()
	d.Fail = func(string, string) error { return storagedrivers.ErrUnavailable }
	return d
}

// service returns a service with the driver and the token store of the site.
func (s *site) service(t *testing.T, limits media.Limits, accounts ...tokens.Account) *media.Service {
	t.Helper()
	folder, err := naming.ParseFormat("/")
	if err != nil {
		t.Fatal(err)
	}
	service, err := media.New(media.Config{
		Storages: []media.Storage{
			{Name: "main", Driver: s.driver, Options: storagedrivers.Options{Close: keepOpen}, SubFolder: folder},
			{Name: "broken", Driver: unreachable(), SubFolder: folder},
		},
		Aliases: []media.Alias{
			{Kind: ingest.File, Name: "one", Storage: "main"},
			{Kind: ingest.File, Name: "two", Storage: "main"},
			{Kind: ingest.File, Name: "broken", Storage: "broken"},
		},
		Accounts: accounts, Tokens: s.store, Limits: limits, Observer: s,
		Comparer: tokens.CompareFunc(func(hash, plain []byte) (bool, error) { return string(hash) == string(plain), nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	return service
}

// reload replaces the service as a reload does: the first one is closed, and requests that hold it
// continue.
func (s *site) reload(running *media.Service) {
	s.running.Store(running)
	_ = s.first.Close()
}

// Acquire implements mediahttp.Source.
func (s *site) Acquire() (*media.Service, func(), error) { return s.first.Acquire() }

// Running implements mediahttp.Source.
func (s *site) Running() (*media.Service, func()) {
	if running := s.running.Load(); running != nil {
		if service, release, err := running.Acquire(); err == nil {
			return service, release
		}
	}
	return s.first, func() {}
}

// Failed implements media.Observer.
func (s *site) Failed(context.Context, string, string) { s.failed.Add(1) }

// token returns a new token of the account.
func (s *site) token(t *testing.T) string {
	t.Helper()
	token, _, err := s.first.Issuer().Issue(t.Context(), someKey, password, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// stored returns the content of an item, and false if there is none.
func (s *site) stored(t *testing.T, key string) (string, bool) {
	t.Helper()
	body, _, err := s.driver.Open(t.Context(), key, storagedrivers.Range{})
	if err != nil {
		return "", false
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}
	return string(content), true
}

// failingStore can be set to fail.
type failingStore struct {
	tokens.Store
	fails atomic.Bool
}

// Close does nothing, because several services share the store.
func (*failingStore) Close() error { return nil }

func (s *failingStore) Load(ctx context.Context, id tokens.ID) (tokens.Record, error) {
	if s.fails.Load() {
		return tokens.Record{}, tokens.ErrUnavailable
	}
	return s.Store.Load(ctx, id)
}

// logged is a log for tests to read.
type logged struct {
	mu      sync.Mutex
	records []slog.Record
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	return nil
}

func (l *logged) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *logged) WithGroup(string) slog.Handler      { return l }

// take returns the lines since the last call: level, message, and the status if there is one.
func (l *logged) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := make([]string, len(l.records))
	for i, r := range l.records {
		lines[i] = r.Level.String() + " " + r.Message
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "status" {
				lines[i] += " " + strconv.FormatInt(a.Value.Int64(), 10)
			}
			return true
		})
	}
	l.records = nil
	return lines
}

// Interface guards
var (
	_ mediahttp.Source = (*site)(nil)
	_ mediahttp.Source = (*media.Service)(nil)
	_ http.Handler     = (*mediahttp.Handler)(nil)
)
