// Package media is the running service: storages, aliases, accounts and limits, with the uploader and
// the issuer of tokens on them. It knows neither Caddy nor HTTP; package mediahttp serves it.
package media

import (
	"errors"
	"log/slog"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
)

// ErrClosed means that a service is closed.
var ErrClosed = errors.New("the media service is closed")

// Config are the parts of a Service.
type Config struct {
	// Uploader stores items. Required.
	Uploader *ingest.Uploader
	// Issuer issues tokens and verifies them. Required.
	Issuer *tokens.Issuer
	// Limits of requests.
	Limits Limits
	// Bounds that several services share. Default: its own.
	Bounds *Bounds
	// Observer records events. Default: none.
	Observer Observer
	// Release is called when the service is closed and its last reference released.
	Release func() error
	// Log receives what no caller learns. Default: nothing is logged.
	Log *slog.Logger
}

// Service is the running service. It is safe for concurrent use.
type Service struct {
	uploader   *ingest.Uploader
	issuer     *tokens.Issuer
	limits     Limits
	bounds     *Bounds
	observer   Observer
	log        *slog.Logger
	references *storagedrivers.References
}

// New returns a service, which the caller must close.
func New(config Config) *Service {
	s := &Service{
		uploader: config.Uploader, issuer: config.Issuer, limits: config.Limits.withDefaults(),
		bounds: config.Bounds, observer: config.Observer, log: config.Log,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.bounds == nil {
		s.bounds = NewBounds()
	}
	if s.observer == nil {
		s.observer = NopObserver{}
	}
	release := config.Release
	if release == nil {
		release = func() error { return nil }
	}
	s.references = storagedrivers.NewReferences(release)
	return s
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

// Close lets no further reference be acquired. What the service holds is released now, or with the
// last reference. Closing again does nothing.
func (s *Service) Close() error { return s.references.Close() }

// Uploader returns the uploader, which stores and deletes items.
func (s *Service) Uploader() *ingest.Uploader { return s.uploader }

// Issuer returns the issuer, which issues and verifies tokens.
func (s *Service) Issuer() *tokens.Issuer { return s.issuer }

// Limits returns the limits, with the defaults filled in.
func (s *Service) Limits() Limits { return s.limits }

// Observer returns the observer; it is never nil.
func (s *Service) Observer() Observer { return s.observer }

// Alias returns an alias; false if there is none of that kind and name.
func (s *Service) Alias(kind ingest.Kind, name string) (*ingest.Alias, bool) {
	alias, ok := s.uploader.Aliases[kind][name]
	return alias, ok
}
