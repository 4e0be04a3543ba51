package testservice

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

// The accounts of all sites, and their password.
const (
	SomeKey  = "site-one"
	OtherKey = "site-two" // only for the alias two
	Password = "correct horse"
)

// Noon is the time of all sites.
var Noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// The folder of items that are uploaded at Noon, and the second that is appended to their names.
const (
	UploadDay  = "26-11/20"
	NoonSecond = "1795176000"
)

// Site is a service with several storages on one backend. Items are in its root unless an alias
// says otherwise. The aliases are:
//   - images and files: content, exact (names as submitted), replacing (overwrites), dated (folder
//     of the day), broken (unreachable storage), cdn (own address), elsewhere (redirects)
//   - images: few (10 pixels), tiny (200 bytes), keep and nosvg (SVG), pictures (WebP, negotiates)
//   - files: one, two, small (10 bytes), large (1 KiB), web (active types), own (cache_control)
type Site struct {
	Observer

	Store    *Store
	Backend  storagedrivers.Driver
	Driver   *memory.Driver // the backend; nil if that is another one
	First    *media.Service
	Current  atomic.Pointer[media.Service] // after a reload; nil while the source is closed
	Handler  *mediahttp.Handler
	Gate     *caller.Gate // of requests of the panel
	Log      *Log
	Refusals atomic.Int64 // requests
	Passed   atomic.Int64 // since Noon
	Known    []string     // tokens, which no response may contain
	Vars     []string     // of the headers in requests: names and values
	Change   func(*media.Config)
}

// New starts a service with two accounts, until the end of the test.
func New(t *testing.T, limits media.Limits) *Site {
	t.Helper()
	return NewWith(t, limits, nil)
}

// NewWith is New with a changed configuration.
func NewWith(t *testing.T, limits media.Limits, change func(*media.Config)) *Site {
	t.Helper()
	return NewOn(t, memory.New(), limits, change)
}

// NewOn is NewWith on a backend.
func NewOn(t *testing.T, backend storagedrivers.Driver, limits media.Limits, change func(*media.Config)) *Site {
	t.Helper()
	s := &Site{Backend: backend, Log: new(Log), Change: change}
	s.Driver, _ = backend.(*memory.Driver)
	s.Store = &Store{Store: tokenmemory.New(s.Now)}
	other := access.Account{APIKey: OtherKey, PasswordHash: Password, Aliases: []string{"two"}}
	s.First = s.Service(t, limits, Account(), other)
	s.Current.Store(s.First)
	s.Handler = mediahttp.New(s, mediahttp.Options{Log: slog.New(s.Log)})
	s.Gate = caller.New(s, caller.Options{Log: slog.New(s.Log)})
	return s
}

// Default is New with the default limits.
func Default(t *testing.T) *Site {
	t.Helper()
	return New(t, media.Limits{})
}

// May returns a constructor of sites whose account has only these rights.
func May(rights ...string) func(*testing.T) *Site {
	return func(t *testing.T) *Site {
		t.Helper()
		return NewWith(t, media.Limits{}, func(c *media.Config) { c.Accounts[SomeKey].May = rights })
	}
}

// WithTicket returns a constructor of sites whose $TICKET has the fields.
func WithTicket(fields string) func(*testing.T) *Site {
	return func(t *testing.T) *Site {
		t.Helper()
		s := Default(t)
		s.Ticket(t, fields)
		return s
	}
}

// Account returns the account of SomeKey.
func Account(aliases ...string) access.Account {
	return access.Account{APIKey: SomeKey, PasswordHash: Password, Aliases: aliases}
}

// On returns the options of an alias on a storage.
func On(storage string) media.AliasOptions { return media.AliasOptions{Storage: storage} }

// unreachable returns a driver that fails.
func unreachable() storagedrivers.Driver {
	d := memory.New()
	d.Fail = func(string, string) error { return storagedrivers.ErrUnavailable }
	return d
}

// setAliases sets those of a site.
func setAliases(c *media.Config) {
	c.ImageAliases = map[string]*media.ImageAlias{
		"few":      {AliasOptions: On("main"), MaxPixels: 10},
		"tiny":     {AliasOptions: media.AliasOptions{Storage: "main", MaxSize: 200}},
		"keep":     {AliasOptions: On("main"), SVG: "keep"},
		"nosvg":    {AliasOptions: On("main"), SVG: "off"},
		"pictures": {AliasOptions: On("main"), WebP: &media.WebP{}, Negotiate: true},
	}
	c.FileAliases = map[string]*media.FileAlias{
		"one":   {AliasOptions: On("main")},
		"two":   {AliasOptions: On("main")},
		"small": {AliasOptions: media.AliasOptions{Storage: "main", MaxSize: 10}},
		"large": {AliasOptions: media.AliasOptions{Storage: "main", MaxSize: 1 << 10}},
		"web": {
			AliasOptions: On("exact"),
			Extensions:   []string{"txt", "zip", "html", "svg", "xml", "json", "js", "css", "md", "pdf", "mp3"},
		},
		"typed": {
			AliasOptions: On("exact"),
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
		"content": On("main"), "exact": On("exact"), "replacing": On("replacing"), "dated": On("dated"), "broken": On("broken"),
		"cdn":       {Storage: "main", CDNBase: "https://cdn.example/x"},
		"elsewhere": {Storage: "exact", Redirect: &elsewhere},
	} {
		c.ImageAliases[name], c.FileAliases[name] = &media.ImageAlias{AliasOptions: o}, &media.FileAlias{AliasOptions: o}
	}
}

// Service returns a service with the driver and the token store of the site.
func (s *Site) Service(t *testing.T, limits media.Limits, accounts ...access.Account) *media.Service {
	t.Helper()
	const root = "/"
	keepNames := false
	shared := storagedrivers.Options{Location: storagedrivers.Location{Backend: fmt.Sprintf("memory %p", s.Backend)}}
	config := media.Config{
		Storages: []media.Storage{
			{Name: "main", Driver: s.Backend, Options: shared, SubFolderFormat: root},
			{Name: "exact", Driver: s.Backend, Options: shared, SubFolderFormat: root, Sanitize: &keepNames},
			{Name: "replacing", Driver: s.Backend, Options: shared, SubFolderFormat: root, OverwriteStrategy: "overwrite"},
			{Name: "dated", Driver: s.Backend, Options: shared},
			{Name: "broken", Driver: unreachable(), SubFolderFormat: root},
		},
		Accounts: map[string]*media.Account{}, Tokens: s.Store, Limits: limits, Observer: s, Now: s.Now,
		Comparer: tokens.CompareFunc(func(hash, plain []byte) (bool, error) { return string(hash) == string(plain), nil }),
	}
	for _, a := range accounts {
		account := &media.Account{PasswordHash: a.PasswordHash, Aliases: a.Aliases}
		for _, right := range a.Rights {
			account.May = append(account.May, string(right))
		}
		config.Accounts[a.APIKey] = account
	}
	setAliases(&config)
	if s.Change != nil {
		s.Change(&config)
	}
	var open sync.WaitGroup // storages, whose driver is shared; the work of a started service ends after Close
	for i := range config.Storages {
		if config.Storages[i].Driver == s.Backend {
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

// Reload replaces the service as a reload does: the first one is closed, and requests that hold it
// continue.
func (s *Site) Reload(running *media.Service) {
	s.Current.Store(running)
	_ = s.First.Close()
}

// Acquire implements [mediahttp.Source].
func (s *Site) Acquire() (*media.Service, func(), error) {
	if running := s.Current.Load(); running != nil {
		return running.Acquire()
	}
	return s.First.Acquire()
}

// Running implements [mediahttp.Source].
func (s *Site) Running() (*media.Service, func()) {
	if running := s.Current.Load(); running != nil {
		if running, release, err := running.Acquire(); err == nil {
			return running, release
		}
	}
	return s.First, func() {}
}

// Failed implements [service.Observer].
func (s *Site) Failed(context.Context, string, string) { s.Refusals.Add(1) }

// Now returns the time of the site.
func (s *Site) Now() time.Time { return Noon.Add(time.Duration(s.Passed.Load())) }

// Token returns a new token of the account that may use all aliases.
func (s *Site) Token(t *testing.T) string {
	t.Helper()
	return s.TokenOf(t, SomeKey)
}

// TokenOf returns a new token of an account.
func (s *Site) TokenOf(t *testing.T, key string) string {
	t.Helper()
	token, _, err := service.Of(s.First).Issuer().Issue(t.Context(), key, Password, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	s.Known = append(s.Known, token)
	return token
}

// Objects returns all objects of the backend by key.
func (s *Site) Objects(t *testing.T) map[string]string {
	t.Helper()
	all, opts := map[string]string{}, storagedrivers.ListOptions{}
	for {
		page, err := s.Backend.List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range page.Objects {
			all[info.Key], _ = s.Stored(t, info.Key)
		}
		if opts.Cursor = page.Next; opts.Cursor == "" {
			return all
		}
	}
}

// Keys returns the keys with a prefix in the backend, in order.
func (s *Site) Keys(t *testing.T, prefix string) []string {
	t.Helper()
	keys := slices.Sorted(maps.Keys(s.Objects(t)))
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

// StoredAs returns the contents of the objects whose keys contain a text.
func (s *Site) StoredAs(t *testing.T, text string) []string {
	t.Helper()
	var contents []string
	for key, content := range s.Objects(t) {
		if strings.Contains(key, text) {
			contents = append(contents, content)
		}
	}
	return contents
}

// Stored returns the content of an object, and false if there is none.
func (s *Site) Stored(t *testing.T, key string) (string, bool) {
	t.Helper()
	body, _, err := s.Backend.Open(t.Context(), key, storagedrivers.Range{})
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

// Put stores an object in the backend.
func (s *Site) Put(t *testing.T, key, content string) storagedrivers.Info {
	t.Helper()
	info, err := s.Backend.Put(t.Context(), key, strings.NewReader(content), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Interface guards
var (
	_ mediahttp.Source = (*Site)(nil)
	_ service.Observer = (*Site)(nil)
)
