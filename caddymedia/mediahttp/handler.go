// Package mediahttp serves the service's HTTP contract as a net/http handler: tokens, uploads and
// the stored items.
//
// A program calls [New] with a media.Service and passes the handler to its server. New, [Options],
// [Handler] and [Error] are stable.
package mediahttp

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/media"
)

// Source provides the service that answers requests. A *[media.Service] is its own source.
type Source interface {
	// Acquire returns the service for a request. It stays open until release is called.
	Acquire() (service *media.Service, release func(), err error)
	// Running returns the service for new requests, to a caller that holds a reference to an
	// earlier one. It stays open until release is called.
	Running() (service *media.Service, release func())
}

// Options of a Handler. The zero value is usable without a proxy in front.
type Options struct {
	// Log receives errors that are not the caller's fault. Default: nothing is logged.
	Log *slog.Logger
	// Client returns the address of the client of a request. Default: that of its connection.
	Client func(*http.Request) string
	// TrustedProxy reports whether a request comes from a proxy whose X-Forwarded-Proto and
	// X-Forwarded-Host can be trusted. Default: never.
	TrustedProxy func(*http.Request) bool
	// MountPrefix returns the prefix of the client's path that was removed before the handler.
	// Items are also served below it. Default: the prefix removed by http.StripPrefix.
	MountPrefix func(*http.Request) string
	// User returns the ID of the user whom another login of the server has authenticated, given the
	// option trust of the account for such users; empty for none. Default: none.
	User func(r *http.Request, trust string) string
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// withDefaults returns the options with all functions set.
func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = remoteHost
	}
	if o.TrustedProxy == nil {
		o.TrustedProxy = func(*http.Request) bool { return false }
	}
	if o.MountPrefix == nil {
		o.MountPrefix = strippedPrefix
	}
	if o.User == nil {
		o.User = func(*http.Request, string) string { return "" }
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock's one default
	}
	return o
}

// remoteHost returns the address of the client of a connection.
func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

// Handler serves the endpoints of [OpenAPI]: logins and tickets, uploads, items for accounts,
// signed addresses, and the stored items below `/static/`. A path that is almost that of an
// endpoint is answered with 404 and the right one.
type Handler struct {
	source  Source
	options Options

	readers  *readers
	unsigned sync.Map // paths of aliases that should redirect and were found not to
}

// New returns a handler for the service of a source.
func New(source Source, options Options) *Handler {
	return &Handler{source: source, options: options.withDefaults(), readers: allReaders()}
}

// Error is the error of a request without a response. The caller of [Handler.Serve] writes the
// response; headers such as Retry-After are already set.
type Error = httpx.Error

// AnswerUnread writes v as JSON in answer to a request whose body may not be read to its end. Then it
// closes the connection, after it has read a bounded part of the body.
func AnswerUnread(w http.ResponseWriter, r *http.Request, now func() time.Time, status int, v any) error {
	err := httpx.AnswerUnread(w, r, status, v)
	httpx.Linger(w, r, now)
	return err
}

// ServeHTTP answers all requests, unknown paths with 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status := http.StatusNotFound
	if handled, err := h.Serve(w, r); handled {
		failed, ok := errors.AsType[*Error](err)
		if !ok {
			return
		}
		status = failed.Status
	}
	http.Error(w, http.StatusText(status), status)
}

// Serve answers a request. It returns false, and does nothing, if the path is not one of the
// service. The error is an *[Error]; then nothing was written.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request) (handled bool, err error) {
	if r.Method == http.MethodOptions && h.isPreflight(r) {
		return true, h.serveWith(w, r, preflight)
	}
	serve := h.route(r)
	if serve == nil {
		return false, nil
	}
	return true, h.serveWith(w, r, func(service *media.Service, w http.ResponseWriter, r *http.Request) error {
		if origins := service.Origins(); origins != nil {
			exposeResponse(origins, w.Header(), r) // errors included
		}
		return serve(service, w, r)
	})
}

// serveWith answers a request with one service, which stays open until the end of the request, even
// if the configuration changes.
func (h *Handler) serveWith(w http.ResponseWriter, r *http.Request, serve endpoint) error {
	service, release, err := h.source.Acquire()
	if err != nil {
		return &Error{Status: stoppedStatus(r), Err: err}
	}
	err = func() error {
		defer release()
		return serve(service, w, r)
	}()
	httpx.Linger(w, r, h.options.Now)
	return err
}

// stoppedStatus returns the status of a request to a stopped service. Package tus says why HEAD has another one.
func stoppedStatus(r *http.Request) int {
	if r.Method == http.MethodHead && strings.HasPrefix(r.URL.Path, uploadPath) {
		return http.StatusLocked
	}
	return http.StatusServiceUnavailable
}

type endpoint func(service *media.Service, w http.ResponseWriter, r *http.Request) error

// Interface guard
var _ http.Handler = (*Handler)(nil)
