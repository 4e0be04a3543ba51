// Package media is the running service: storages, aliases, accounts and limits, with the uploader
// and the issuer of tokens. It knows neither Caddy nor HTTP endpoints; package mediahttp serves it.
//
// Several services may run side by side. A service that replaces another one shares its bounds and
// takes the states of its storages ([Config.Previous]).
//
// A program calls [New] with its [Config], [Service.Start], and serves the service. The package is
// stable, except what has types of internal packages.
package media

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/derived"
	"github.com/caddymedia/media/caddymedia/internal/fetch"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/resumable"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/locks"
)

// ErrClosed means that a service is closed.
var ErrClosed = errors.New("the media service is closed")

// Service is the running service. It is safe for concurrent use.
type Service struct {
	storages   map[string]*storagedrivers.Storage
	uploader   *upload.Uploader
	store      tokens.Store
	issuer     *tokens.Issuer
	comparer   tokens.Comparer
	fakeHash   []byte
	logins     *Logins
	limits     Limits
	bounds     *Bounds
	remote     *fetch.Client
	resumable  Resumable
	uploads    *resumable.Store
	opened     map[string]chan struct{} // by storage, after an upload was created
	isFirst    bool                     // it replaces no other service
	origins    *Origins                 // nil for none
	trust      *Trust                   // nil for none
	signing    *signingKeys
	client     func(context.Context) string
	health     *health
	observer   Observer
	log        *slog.Logger
	now        func() time.Time
	closing    func() error // of Config.Release
	references *locks.References
}

// New returns a service, which the caller must close. It uses neither the network nor a storage. On
// an error the drivers and the token store stay open.
func New(config Config) (*Service, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	s := &Service{
		storages: map[string]*storagedrivers.Storage{}, opened: map[string]chan struct{}{}, store: config.Tokens, comparer: config.Comparer, fakeHash: config.FakeHash,
		logins: config.Logins, limits: config.Limits, bounds: config.Bounds, client: config.Client,
		observer: config.Observer, log: config.Log, now: config.Now, closing: config.Release,
	}
	s.setDefaults()
	s.health = newHealth(time.Duration(config.HealthInterval), s.now)
	for i := range config.Storages {
		if err := s.open(&config.Storages[i]); err != nil {
			return nil, err
		}
	}
	var err error
	if s.uploader, err = s.newUploader(&config); err != nil {
		return nil, err
	}
	if s.issuer, err = s.newIssuer(&config); err != nil {
		return nil, err
	}
	largest := int64(0)
	for _, alias := range s.Aliases() {
		largest = max(largest, alias.MaxSize)
	}
	if s.resumable, err = config.Resumable.withDefaults(largest); err != nil {
		return nil, fmt.Errorf("resumable: %w", err)
	}
	if len(config.CORS) > 0 {
		s.origins, _ = parseOrigins(config.CORS) // they are checked
	}
	s.trust = newTrust(&config)
	s.signing = newSigningKeys(config.SigningKey, s.store, s.now)
	s.uploads, s.isFirst = s.newUploads(), config.Previous == nil
	if config.Previous != nil {
		s.health.inherit(config.Previous.health)
	}
	downloads, _ := config.Downloads.parse() // they are checked
	s.remote = fetch.New(downloads)
	s.references = locks.NewReferences(s.closeAll)
	return s, nil
}

func (s *Service) setDefaults() {
	if s.observer == nil {
		s.observer = NopObserver{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now //nolint:forbidigo // the clock's one default
	}
	if s.bounds == nil {
		s.bounds = NewBounds()
	}
	if s.logins == nil {
		s.logins = NewLogins(s.limits)
	}
	if s.client == nil {
		s.client = func(context.Context) string { return "" }
	}
}

func (s *Service) newUploader(config *Config) (*upload.Uploader, error) {
	u := &upload.Uploader{
		Limits: s.limits.requests(), Staging: s.bounds.staging, Now: s.now, Observer: s.observer, Log: s.log,
		Derived: &derived.Maker{Images: config.Images, Now: s.now, Observer: s.observer},
	}
	var err error
	if u.Aliases, err = newAliases(config, s.storages); err != nil {
		return nil, err
	}
	if u.Derived.Images == nil {
		u.Derived.Images, err = NewImages(s.limits, config.NeedsEncoder(), s.log)
	}
	return u, err
}

// Acquire keeps the service open until release is called. The error is ErrClosed.
func (s *Service) Acquire() (service *Service, release func(), err error) {
	if !s.references.Acquire() {
		return nil, nil, ErrClosed
	}
	return s, s.release, nil
}

func (s *Service) release() {
	if err := s.references.Release(); err != nil {
		s.log.Error("closing the service after its last request", "error", err)
	}
}

// Running returns the service itself, for a caller that holds a reference.
func (s *Service) Running() (service *Service, release func()) { return s, func() {} }

// Close ends the checks, and Acquire fails from then on. Storages and the token store are closed
// when the last reference is released. Further calls do nothing.
func (s *Service) Close() error {
	s.health.cancel()
	return s.references.Close()
}

func (s *Service) closeAll() error {
	s.remote.Close()
	var errs []error
	for _, storage := range s.storages {
		errs = append(errs, storage.Close())
	}
	errs = append(errs, s.store.Close())
	if s.closing != nil {
		errs = append(errs, s.closing())
	}
	return errors.Join(errs...)
}

// Uploader returns the uploader, which stores, deletes and maintains items.
func (s *Service) Uploader() *upload.Uploader { return s.uploader }

// Issuer returns the issuer of tokens, which also verifies them.
func (s *Service) Issuer() *tokens.Issuer { return s.issuer }

// Limits returns the limits, including the defaults.
func (s *Service) Limits() Limits { return s.limits }

// Observer returns the observer; it is never nil.
func (s *Service) Observer() Observer { return s.observer }

// Origins returns the origins of the pages that may use the service in a browser; nil for none.
func (s *Service) Origins() *Origins { return s.origins }

// Storage returns the storage of a name, and false if there is none.
func (s *Service) Storage(name string) (*storagedrivers.Storage, bool) {
	storage, ok := s.storages[name]
	return storage, ok
}

// Alias returns the alias of a kind and name, and false if there is none.
func (s *Service) Alias(kind item.Kind, name string) (*item.Alias, bool) {
	alias, ok := s.uploader.Aliases[kind][name]
	return alias, ok
}

// Aliases returns the aliases, images first, sorted by name.
func (s *Service) Aliases() []*item.Alias {
	var all []*item.Alias
	for _, kind := range []item.Kind{item.Image, item.File} {
		of := s.uploader.Aliases[kind]
		for _, name := range slices.Sorted(maps.Keys(of)) {
			all = append(all, of[name])
		}
	}
	return all
}

// ImagePath returns the public address of an image alias, to which "/" and a stored name are added:
// "https://cdn.example.com/static/img/content". Without a base URL it starts with "/static/". With
// "content@thumb" it is the address of a rendition of the alias.
func (s *Service) ImagePath(alias string) (string, error) { return s.pathOf(item.Image, alias) }

// FilePath is [Service.ImagePath] for a file alias.
func (s *Service) FilePath(alias string) (string, error) { return s.pathOf(item.File, alias) }

func (s *Service) pathOf(kind item.Kind, name string) (string, error) {
	plain, rendition, isRendition := strings.Cut(name, "@")
	alias, ok := s.Alias(kind, plain)
	if !ok {
		return "", fmt.Errorf("unknown alias %q", plain)
	}
	if !isRendition {
		return alias.BaseURL + alias.Path(), nil
	}
	if _, ok := alias.Rendition(rendition); !ok {
		return "", fmt.Errorf("unknown rendition %q of the alias %q", rendition, plain)
	}
	return alias.BaseURL + alias.Path() + "@" + rendition, nil
}

// ImageSrcset returns the value of a srcset attribute for a stored image: "<address> 320w, ..." in
// ascending order, of its renditions with a width and of the image itself. A width is that of the
// image that a client gets, and occurs once. An SVG has no widths, so the result is its address
// alone. It is empty if there is no such image, or if the storage cannot be read.
//
// The error is that of an unknown alias.
func (s *Service) ImageSrcset(ctx context.Context, name, filename string) (string, error) {
	alias, ok := s.Alias(item.Image, name)
	if !ok {
		return "", fmt.Errorf("unknown alias %q", name)
	}
	_, release, err := s.Acquire()
	if err != nil {
		return "", nil // a page of an earlier configuration lacks the attribute
	}
	defer release()
	sizes, err := s.uploader.Derived.Sizes(ctx, alias, filename)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("finding the sizes of an image", "alias", name, "filename", filename, "error", err)
		}
		return "", nil
	}
	return derived.Srcset(sizes), nil
}
