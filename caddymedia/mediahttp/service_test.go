package mediahttp_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/internal/caller"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/internal/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

const (
	someKey  = "site-one"
	otherKey = "site-two"
	password = "correct horse"
)

// noon is the time of all sites, and uploadDay the folder of items that are uploaded then.
var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

const (
	uploadDay  = "26-11/20"
	noonSecond = "1795176000"
)

// site is a service with several storages on one backend. Items are in its root unless an alias
// says otherwise. The aliases are:
//   - images and files: content, exact (names as submitted), replacing (overwrites), dated (folder
//     of the day), broken (unreachable storage), cdn (own address), elsewhere (redirects)
//   - images: few (10 pixels), tiny (200 bytes), keep and nosvg (SVG), pictures (WebP, negotiates)
//   - files: one, two, small (10 bytes), large (1 KiB), web (active types), own (cache_control)
type site struct {
	testservice.Observer

	store   *failingStore
	backend storagedrivers.Driver
	driver  *memory.Driver // the backend; nil if that is another one
	first   *media.Service
	running atomic.Pointer[media.Service] // after a reload; nil while the source is closed
	handler *mediahttp.Handler
	gate    *caller.Gate // of requests of the panel
	log     *logged
	failed  atomic.Int64 // requests
	passed  atomic.Int64 // since noon
	known   []string     // tokens, which no response may contain
	vars    []string     // of the headers in requests: names and values
	change  func(*media.Config)
}

// newSite starts a service with two accounts, until the end of the test.
func newSite(t *testing.T, limits media.Limits) *site {
	t.Helper()
	return newSiteWith(t, limits, nil)
}

// newSiteWith is newSite with a changed configuration.
func newSiteWith(t *testing.T, limits media.Limits, change func(*media.Config)) *site {
	t.Helper()
	return newSiteOn(t, memory.New(), limits, change)
}

// newSiteOn is newSiteWith on a backend.
func newSiteOn(t *testing.T, backend storagedrivers.Driver, limits media.Limits, change func(*media.Config)) *site {
	t.Helper()
	s := &site{backend: backend, log: new(logged), change: change}
	s.driver, _ = backend.(*memory.Driver)
	s.store = &failingStore{Store: tokenmemory.New(s.now)}
	other := access.Account{APIKey: otherKey, PasswordHash: password, Aliases: []string{"two"}}
	s.first = s.service(t, limits, account(), other)
	s.running.Store(s.first)
	s.handler = mediahttp.New(s, mediahttp.Options{Log: slog.New(s.log)})
	s.gate = caller.New(s, caller.Options{Log: slog.New(s.log)})
	return s
}

// aSite is newSite with the default limits.
func aSite(t *testing.T) *site {
	t.Helper()
	return newSite(t, media.Limits{})
}

func (s *site) now() time.Time { return noon.Add(time.Duration(s.passed.Load())) }

func account(aliases ...string) access.Account {
	return access.Account{APIKey: someKey, PasswordHash: password, Aliases: aliases}
}

// words returns rights as in a configuration.
func words(rights []access.Right) []string {
	texts := make([]string, len(rights))
	for i, right := range rights {
		texts[i] = string(right)
	}
	return texts
}

// may returns a constructor of sites whose account has only these rights.
func may(rights ...string) func(*testing.T) *site {
	return func(t *testing.T) *site {
		t.Helper()
		return newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Accounts[someKey].May = rights })
	}
}

// unreachable returns a driver that fails.
func unreachable() storagedrivers.Driver {
	d := memory.New()
	d.Fail = func(string, string) error { return storagedrivers.ErrUnavailable }
	return d
}

// on returns the options of an alias on a storage.
func on(storage string) media.AliasOptions { return media.AliasOptions{Storage: storage} }

// setAliases sets those of a site.
func setAliases(c *media.Config) {
	c.ImageAliases = map[string]*media.ImageAlias{
		"few":      {AliasOptions: on("main"), MaxPixels: 10},
		"tiny":     {AliasOptions: media.AliasOptions{Storage: "main", MaxSize: 200}},
		"keep":     {AliasOptions: on("main"), SVG: "keep"},
		"nosvg":    {AliasOptions: on("main"), SVG: "off"},
		"pictures": {AliasOptions: on("main"), WebP: &media.WebP{}, Negotiate: true},
	}
	c.FileAliases = map[string]*media.FileAlias{
		"one":   {AliasOptions: on("main")},
		"two":   {AliasOptions: on("main")},
		"small": {AliasOptions: media.AliasOptions{Storage: "main", MaxSize: 10}},
		"large": {AliasOptions: media.AliasOptions{Storage: "main", MaxSize: 1 << 10}},
		"web": {
			AliasOptions: on("exact"),
			Extensions:   []string{"txt", "zip", "html", "svg", "xml", "json", "js", "css", "md", "pdf", "mp3"},
		},
		"typed": {
			AliasOptions: on("exact"),
			Extensions:   []string{"step", "page", "draw", "feed", "film", "run", "txt", "m3u8", "ts", "kml"},
			Types: []string{
				"step=model/step", "page=Text/HTML;charset=UTF-8", ".DRAW=image/svg+xml", "feed=application/rss+xml", "film=video/mp4",
				"run=text/javascript", "txt=application/x-mine",
			},
		},
		"own": {AliasOptions: media.AliasOptions{Storage: "main", CacheControl: "private, max-age=60"}},
	}
	elsewhere := media.Redirect{To: "public", Base: "https://bucket.example/media", Lifetime: options.Duration(time.Minute)}
	for name, o := range map[string]media.AliasOptions{
		"content": on("main"), "exact": on("exact"), "replacing": on("replacing"), "dated": on("dated"), "broken": on("broken"),
		"cdn":       {Storage: "main", CDNBase: "https://cdn.example/x"},
		"elsewhere": {Storage: "exact", Redirect: &elsewhere},
	} {
		c.ImageAliases[name], c.FileAliases[name] = &media.ImageAlias{AliasOptions: o}, &media.FileAlias{AliasOptions: o}
	}
}

// service returns a service with the driver and the token store of the site.
func (s *site) service(t *testing.T, limits media.Limits, accounts ...access.Account) *media.Service {
	t.Helper()
	const root = "/"
	keepNames := false
	shared := storagedrivers.Options{Location: storagedrivers.Location{Backend: fmt.Sprintf("memory %p", s.backend)}}
	config := media.Config{
		Storages: []media.Storage{
			{Name: "main", Driver: s.backend, Options: shared, SubFolderFormat: root},
			{Name: "exact", Driver: s.backend, Options: shared, SubFolderFormat: root, Sanitize: &keepNames},
			{Name: "replacing", Driver: s.backend, Options: shared, SubFolderFormat: root, OverwriteStrategy: "overwrite"},
			{Name: "dated", Driver: s.backend, Options: shared},
			{Name: "broken", Driver: unreachable(), SubFolderFormat: root},
		},
		Accounts: map[string]*media.Account{}, Tokens: s.store, Limits: limits, Observer: s, Now: s.now,
		Comparer: tokens.CompareFunc(func(hash, plain []byte) (bool, error) { return string(hash) == string(plain), nil }),
	}
	for _, a := range accounts {
		config.Accounts[a.APIKey] = &media.Account{PasswordHash: a.PasswordHash, Aliases: a.Aliases, May: words(a.Rights)}
	}
	setAliases(&config)
	if s.change != nil {
		s.change(&config)
	}
	var open sync.WaitGroup // storages, whose driver is shared; the work of a started service ends after Close
	for i := range config.Storages {
		if config.Storages[i].Driver == s.backend {
			open.Add(1)
			config.Storages[i].Options.Close = func() error {
				open.Done()
				return nil
			}
		}
	}
	running, err := media.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Close(); err != nil {
			t.Error(err)
		}
		open.Wait()
	})
	return running
}

// reload replaces the service as a reload does: the first one is closed, and requests that hold it
// continue.
func (s *site) reload(running *media.Service) {
	s.running.Store(running)
	_ = s.first.Close()
}

// Acquire implements mediahttp.Source.
func (s *site) Acquire() (*media.Service, func(), error) {
	if running := s.running.Load(); running != nil {
		return running.Acquire()
	}
	return s.first.Acquire()
}

// Running implements mediahttp.Source.
func (s *site) Running() (*media.Service, func()) {
	if running := s.running.Load(); running != nil {
		if running, release, err := running.Acquire(); err == nil {
			return running, release
		}
	}
	return s.first, func() {}
}

// Failed implements service.Observer.
func (s *site) Failed(context.Context, string, string) { s.failed.Add(1) }

// token returns a new token of the account that may use all aliases.
func (s *site) token(t *testing.T) string {
	t.Helper()
	return s.tokenOf(t, someKey)
}

func (s *site) tokenOf(t *testing.T, key string) string {
	t.Helper()
	token, _, err := service.Of(s.first).Issuer().Issue(t.Context(), key, password, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	s.known = append(s.known, token)
	return token
}

// objects returns all objects of the backend by key.
func (s *site) objects(t *testing.T) map[string]string {
	t.Helper()
	all, opts := map[string]string{}, storagedrivers.ListOptions{}
	for {
		page, err := s.backend.List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range page.Objects {
			all[info.Key], _ = s.stored(t, info.Key)
		}
		if opts.Cursor = page.Next; opts.Cursor == "" {
			return all
		}
	}
}

// stored returns the content of an item, and false if there is none.
func (s *site) stored(t *testing.T, key string) (string, bool) {
	t.Helper()
	body, _, err := s.backend.Open(t.Context(), key, storagedrivers.Range{})
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
	fails, noTakes atomic.Bool      // noTakes: tickets cannot be changed
	noLoads        atomic.Int32     // how many of the next looks at tokens fail
	saved          func(key string) // called after a token or ticket is stored; nil for nothing
	unextended     atomic.Bool      // leases cannot be extended
	step           func() error     // called before each change of a request; nil for nothing

	mu      sync.Mutex
	indexes []string // of the answers that were kept
}

// Close does nothing, because several services share the store.
func (*failingStore) Close() error { return nil }

const tokenKeys = "token/"

func isRequest(key string) bool {
	return strings.HasPrefix(key, "request/") || strings.HasPrefix(key, tokens.Volatile)
}

// Update implements [tokens.Store]. A change of a request is a step, at which a process may end.
func (s *failingStore) Update(ctx context.Context, key, index string, change func(tokens.Entry) (tokens.Entry, error)) error {
	switch {
	case s.fails.Load(), isRequest(key) && s.step != nil && s.step() != nil:
		return tokens.ErrUnavailable
	case !strings.HasPrefix(key, tokenKeys) && !strings.HasPrefix(key, tokens.Volatile):
		if isRequest(key) && index != "" {
			s.mu.Lock()
			s.indexes = append(s.indexes, index)
			s.mu.Unlock()
		}
		return s.Store.Update(ctx, key, index, change)
	}
	isNew := false
	err := s.Store.Update(ctx, key, index, func(old tokens.Entry) (tokens.Entry, error) {
		isNew = old.Value == nil
		if !isNew && (s.noTakes.Load() && strings.HasPrefix(key, tokenKeys) || s.unextended.Load() && strings.HasPrefix(key, tokens.Volatile)) {
			return old, tokens.ErrUnavailable
		}
		return change(old)
	})
	if err == nil && isNew && s.saved != nil && strings.HasPrefix(key, tokenKeys) {
		s.saved(key)
	}
	return err
}

// Get implements [tokens.Store].
func (s *failingStore) Get(ctx context.Context, key string) (tokens.Entry, error) {
	if s.fails.Load() || strings.HasPrefix(key, tokenKeys) && s.noLoads.Add(-1) >= 0 {
		return tokens.Entry{}, tokens.ErrUnavailable
	}
	return s.Store.Get(ctx, key)
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
