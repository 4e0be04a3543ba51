package mediahttp_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
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
	storage *storagedrivers.Storage // of "one" and "two"
	broken  *storagedrivers.Storage
	first   *media.Service
	running atomic.Pointer[media.Service] // after a reload; nil while the source is closed
	handler *mediahttp.Handler
	log     *logged
	failed  atomic.Int64 // requests
}

// newSite starts a service with one account, until the end of the test.
func newSite(t *testing.T, limits media.Limits) *site {
	t.Helper()
	unreachable := memory.New()
	unreachable.Fail = func(string, string) error { return storagedrivers.ErrUnavailable }
	s := &site{
		store:   &failingStore{Store: tokenmemory.New(nil)},
		storage: storagedrivers.New("main", memory.New(), storagedrivers.Options{}),
		broken:  storagedrivers.New("broken", unreachable, storagedrivers.Options{}),
		log:     new(logged),
	}
	s.first = s.service(t, limits, account())
	s.running.Store(s.first)
	s.handler = mediahttp.New(s, mediahttp.Options{Log: slog.New(s.log)})
	return s
}

func account(aliases ...string) tokens.Account {
	return tokens.Account{APIKey: someKey, PasswordHash: password, Aliases: aliases}
}

// service returns a service on the storages of the site.
func (s *site) service(t *testing.T, limits media.Limits, accounts ...tokens.Account) *media.Service {
	t.Helper()
	folder, err := naming.ParseFormat("/")
	if err != nil {
		t.Fatal(err)
	}
	aliases := map[string]*ingest.Alias{}
	for name, storage := range map[string]*storagedrivers.Storage{"one": s.storage, "two": s.storage, "broken": s.broken} {
		aliases[name] = &ingest.Alias{
			Kind: ingest.File, Name: name, Storage: storage, Prefix: "file/" + name, SubFolder: folder, Sanitize: true,
			Extensions: map[string]bool{"txt": true}, MaxSize: 1 << 20, CacheControl: "no-cache",
		}
	}
	issuer, err := tokens.NewIssuer(tokens.IssuerOptions{
		Store: s.store, Accounts: accounts,
		Comparer: tokens.CompareFunc(func(hash, plain []byte) (bool, error) { return string(hash) == string(plain), nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	service := media.New(media.Config{
		Uploader: &ingest.Uploader{
			Aliases: map[ingest.Kind]map[string]*ingest.Alias{ingest.File: aliases}, Now: time.Now,
			Limits:   ingest.Limits{MaxFiles: 10, MaxFields: 10, MaxFieldSize: 1 << 10, MaxPartHeader: 1 << 10},
			Pictures: variant.NewMaker(nil, variant.Limits{}), Log: slog.New(slog.DiscardHandler), Observer: ingest.NopObserver{},
			Staging: media.NewBounds().Staging(),
		},
		Issuer: issuer, Limits: limits, Observer: s,
	})
	t.Cleanup(func() {
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	return service
}

// reload replaces the service as a reload does: the first one is closed, and requests that hold it go on.
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

// stored returns the content of an item; false if there is none.
func (s *site) stored(t *testing.T, key string) (string, bool) {
	t.Helper()
	object, err := s.storage.OpenSeeker(t.Context(), key)
	if err != nil {
		return "", false
	}
	defer object.Close()
	content := make([]byte, object.Info.Size)
	if n, err := object.Read(content); int64(n) != object.Info.Size {
		t.Errorf("read %d bytes of %s: %v", n, key, err)
	}
	return string(content), true
}

// failingStore can be set to fail.
type failingStore struct {
	tokens.Store
	fails atomic.Bool
}

func (s *failingStore) Load(ctx context.Context, id tokens.ID) (tokens.Record, error) {
	if s.fails.Load() {
		return tokens.Record{}, tokens.ErrUnavailable
	}
	return s.Store.Load(ctx, id)
}

// logged is a log that a test reads.
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

// take returns the lines since the last call: level and message, and the status if there is one.
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
