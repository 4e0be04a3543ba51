// Package media makes a media service of its configuration, for programs in Go. It stores, names,
// checks and finds items, and knows neither Caddy nor HTTP endpoints: package mediahttp serves it.
// Begin with [New] and its [Config], then [Service.Start].
//
// Several services may run side by side. One that replaces another takes the states of its storages
// ([Config.Previous]) and shares its counts ([Config.Process]).
package media

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// ErrClosed means that a service is closed.
var ErrClosed = service.ErrClosed

// Service is a running service. It is safe for concurrent use.
type Service struct{ core *service.Service }

func init() {
	service.Of = func(public any) *service.Service {
		return public.(*Service).core //nolint:forcetypeassert // nothing else is given
	}
}

// Process has what the services of a process share: bounds of resources, and counts of logins,
// which go on when one service replaces another.
type Process struct{ process *service.Process }

// NewProcess returns an unused Process.
func NewProcess() *Process { return &Process{service.NewProcess()} }

// New returns a service, which the caller must close. It uses neither the network nor a storage. On
// an error the drivers and the token store stay open.
func New(config Config) (*Service, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	parts := service.Parts{
		Storages: config.storageParts(), Limits: config.Limits.parts(config.needsEncoder()), Resumable: config.Resumable.parts(),
		Trust: config.trust(), TokenLifetime: time.Duration(config.TokenLifetime), Tokens: config.Tokens, Comparer: config.Comparer,
		FakeHash: config.FakeHash, HealthInterval: time.Duration(config.HealthInterval), Client: config.Client,
		Observer: config.observer(), Log: config.Log, Now: config.Now,
		Aliases: func(storages map[string]*storagedrivers.Storage) (service.Aliases, error) {
			return newAliases(&config, storages)
		},
	}
	for _, key := range slices.Sorted(maps.Keys(config.Accounts)) {
		parts.Accounts = append(parts.Accounts, config.Accounts[key].credentials(key))
	}
	for _, key := range config.SigningKey {
		parts.SigningKeys = append(parts.SigningKeys, []byte(key))
	}
	if len(config.CORS) > 0 {
		parts.Origins, _ = service.ParseOrigins(config.CORS) // they are checked
	}
	parts.Downloads, _ = config.Downloads.parse() // they are checked
	if config.Process != nil {
		parts.Process = config.Process.process
	}
	if config.Previous != nil {
		parts.Previous = config.Previous.core
	}
	running, err := service.New(parts)
	if err != nil {
		return nil, err
	}
	return &Service{running}, nil
}

// credentials returns the account of an API key.
func (a *Account) credentials(apiKey string) access.Account {
	return access.Account{
		APIKey: apiKey, PasswordHash: a.PasswordHash, Aliases: a.Aliases, Rights: a.rights(), Trusted: a.Trusts(),
		S3Secret: a.S3Secret, Hold: time.Duration(a.Hold),
	}
}

// Start starts to check the storages in the background, and checks the token store once. Failures
// are logged. The first check of a storage also sweeps the leftovers of an earlier process.
// Resumable uploads are swept, too. Close ends the checks, also if it is called before Start.
func (s *Service) Start() { s.core.Start() }

// Acquire keeps the service open until release is called. The error is [ErrClosed].
func (s *Service) Acquire() (service *Service, release func(), err error) {
	_, release, err = s.core.Acquire()
	if err != nil {
		return nil, nil, err
	}
	return s, release, nil
}

// Running returns the service itself, for a caller that holds a reference.
func (s *Service) Running() (service *Service, release func()) { return s, func() {} }

// Close ends the checks, and refuses further requests. Storages and the token store are closed
// after the last request. Further calls do nothing.
func (s *Service) Close() error { return s.core.Close() }

// ImagePath returns the public address of an image alias, to which "/" and a stored name are added:
// "https://cdn.example.com/static/img/content". Without a base URL it starts with "/static/". With
// "content@thumb" it is the address of a rendition of the alias.
func (s *Service) ImagePath(alias string) (string, error) { return s.pathOf(item.Image, alias) }

// FilePath is [Service.ImagePath] for a file alias.
func (s *Service) FilePath(alias string) (string, error) { return s.pathOf(item.File, alias) }

func (s *Service) pathOf(kind item.Kind, name string) (string, error) {
	plain, rendition, isRendition := strings.Cut(name, "@")
	alias, ok := s.core.Alias(kind, plain)
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
// ascending order, of the image itself and of its renditions with a width, without those that crop
// it to another shape. A width is that of the image that a client gets, and occurs once. An SVG has
// any width, so the result is its address alone. It is empty if there is no such image, or if the
// storage cannot be read.
//
// The error is that of an unknown alias.
func (s *Service) ImageSrcset(ctx context.Context, alias, filename string) (string, error) {
	_, srcset, err := s.imageSizes(ctx, alias, filename)
	return srcset, err
}

// Size is the size of an image in pixels, as shown.
type Size struct{ Width, Height int }

// ImageSize returns the size of a stored image. With "content@thumb" it is that of a rendition. It
// is nil if there is no such image or it cannot have the rendition, for an SVG that says no size,
// or if the storage cannot be read.
//
// The error is that of an unknown alias or rendition.
func (s *Service) ImageSize(ctx context.Context, alias, filename string) (*Size, error) {
	if _, err := s.ImagePath(alias); err != nil {
		return nil, err
	}
	alias, rendition, _ := strings.Cut(alias, "@")
	sizes, _, err := s.imageSizes(ctx, alias, filename)
	for _, size := range sizes {
		isWanted := size.Rendition == nil && (rendition == "" || size.Scalable) ||
			size.Rendition != nil && size.Rendition.Name == rendition
		if isWanted && size.Width > 0 {
			return &Size{size.Width, size.Height}, nil
		}
	}
	return nil, err
}

// imageSizes returns the sizes of a stored image and of its renditions, and its srcset; none if
// they cannot be found. The error is that of an unknown alias.
func (s *Service) imageSizes(ctx context.Context, alias, filename string) ([]derived.Size, string, error) {
	found, ok := s.core.Alias(item.Image, alias)
	if !ok {
		return nil, "", fmt.Errorf("unknown alias %q", alias)
	}
	_, release, err := s.Acquire()
	if err != nil {
		return nil, "", nil // a page of an earlier configuration lacks the attributes
	}
	defer release()
	sizes, srcset, err := s.core.ImageSizes(ctx, found, filename)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.core.Log().Warn("finding the sizes of an image", "alias", alias, "filename", filename, "error", err)
	}
	return sizes, srcset, nil
}

// ImageURL returns the signed address of an item of a private image alias, which is valid for the
// lifetime, 7 days at most; 0 means an hour. With "content@thumb" it is that of a rendition, for
// which alone it is valid. The item need not exist.
func (s *Service) ImageURL(ctx context.Context, alias, filename string, lifetime time.Duration) (string, error) {
	return s.signedURL(ctx, item.Image, alias, filename, lifetime)
}

// FileURL is [Service.ImageURL] for a file alias.
func (s *Service) FileURL(ctx context.Context, alias, filename string, lifetime time.Duration) (string, error) {
	return s.signedURL(ctx, item.File, alias, filename, lifetime)
}

func (s *Service) signedURL(ctx context.Context, kind item.Kind, name, filename string, lifetime time.Duration) (string, error) {
	alias, rendition, _ := strings.Cut(name, "@")
	signed, err := s.core.Sign(ctx, service.SignRequest{
		Kind: kind, Alias: alias, Rendition: rendition, Filenames: []string{filename}, ExpiresIn: lifetime,
	})
	if err != nil {
		return "", err
	}
	return signed[0].URL, nil
}
