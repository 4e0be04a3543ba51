// Package mediahttp serves the service's HTTP contract as a net/http handler: tokens, uploads and
// the stored items.
//
// A program calls [New] with a service.Service and passes the handler to its server. New, [Options],
// [Handler] and [Error] are stable.
package mediahttp

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/service"
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

// acquire is Acquire of the source.
func (h *Handler) acquire() (running *service.Service, release func(), err error) {
	s, release, err := h.source.Acquire()
	if err != nil {
		return nil, nil, err
	}
	return s.Self(), release, nil
}

// next is Running of the source.
func (h *Handler) next() (running *service.Service, release func()) {
	s, release := h.source.Running()
	return s.Self(), release
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
	return true, h.serveWith(w, r, func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		if origins := running.Origins(); origins != nil {
			exposeResponse(origins, w.Header(), r) // errors included
		}
		return serve(running, w, r)
	})
}

// serveWith answers a request with one service, which stays open until the end of the request, even
// if the configuration changes.
func (h *Handler) serveWith(w http.ResponseWriter, r *http.Request, serve endpoint) error {
	running, release, err := h.acquire()
	if err != nil {
		return &Error{Status: stoppedStatus(r), Err: err}
	}
	err = func() error {
		defer release()
		return serve(running, w, r)
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

type endpoint func(running *service.Service, w http.ResponseWriter, r *http.Request) error

// Paths of the endpoints, and the starts of those that a kind follows.
const (
	tokenPath  = "/api/auth/generateToken" //nolint:gosec // no password
	ticketPath = "/api/auth/ticket"
	signPath   = "/api/sign"
	uploadPath = "/api/upload/"
	itemsPath  = "/api/items/"
)

// route is an endpoint: a path, for some with the paths below it.
type route struct {
	path    string
	folded  string // the path as near misses of it are compared
	usage   string // the whole address, for messages
	flat    bool   // failures are those of a login
	methods []string
	// owns reports whether a request is for the endpoint. rest is the path behind that of the
	// endpoint: empty, or from a slash on.
	owns  func(method, rest string) bool
	serve func(h *Handler, rest string) endpoint
}

// routes are all endpoints. A request is for the first one that owns it. Near misses, the methods
// of CORS and the test of the OpenAPI document use them too.
var routes = newRoutes()

func newRoutes() []route {
	alone := func(_, rest string) bool { return rest == "" }
	below := func(_, _ string) bool { return true }
	post := []string{http.MethodPost}
	var all []route
	for _, kind := range []item.Kind{item.Image, item.File} {
		upload, resumable, items := uploadPath+kind.Name(), uploadPath+kind.Name()+resumableSuffix, itemsPath+kind.Name()
		all = append(all, route{
			path: "/static/" + string(kind), methods: []string{http.MethodGet, http.MethodHead}, owns: isStatic,
			serve: func(h *Handler, rest string) endpoint { return h.static(kind, rest[1:]) },
		}, route{
			path: upload, methods: post, owns: alone,
			serve: func(h *Handler, _ string) endpoint { return h.upload(kind) },
		}, route{
			path: resumable, owns: below,
			methods: []string{http.MethodOptions, http.MethodPost, http.MethodHead, http.MethodGet, http.MethodPatch, http.MethodDelete},
			serve:   func(h *Handler, rest string) endpoint { return h.resumable(kind, strings.TrimPrefix(rest, "/")) },
		}, route{
			path: upload, usage: upload + "/<alias>/<name>", methods: []string{http.MethodPut}, owns: isPut,
			serve: func(h *Handler, _ string) endpoint { return h.putFile(kind) },
		}, route{
			path: items, usage: items + "/<alias>", owns: below,
			methods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete},
			serve:   func(h *Handler, _ string) endpoint { return h.items(kind) },
		})
	}
	all = append(all, route{
		path: tokenPath, flat: true, methods: post, owns: alone,
		serve: func(h *Handler, _ string) endpoint { return h.generateToken },
	}, route{
		path: ticketPath, flat: true, methods: post, owns: alone,
		serve: func(h *Handler, _ string) endpoint { return h.issueTicket },
	}, route{
		path: signPath, flat: true, methods: post, owns: alone,
		serve: func(h *Handler, _ string) endpoint { return h.sign },
	})
	for i := range all {
		all[i].folded, all[i].usage = folded(all[i].path), cmp.Or(all[i].usage, all[i].path)
	}
	return all
}

// isStatic reports whether a request is for an item below the path of a kind.
func isStatic(method, rest string) bool {
	return rest != "" && (method == http.MethodGet || method == http.MethodHead)
}

// isPut reports whether a request is for the address of an upload of one file. With another method
// than PUT, only a complete address is, and a near miss of a resumable upload is not.
func isPut(method, rest string) bool {
	alias, name, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	return method == http.MethodPut || alias != "" && name != "" && folded(alias) != folded(resumableSuffix)
}

// match returns the part of a path behind prefix, and whether the request is for the endpoint.
func (e *route) match(method, path, prefix string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, prefix)
	return rest, ok && (rest == "" || rest[0] == '/') && e.owns(method, rest)
}

// route returns the endpoint of the decoded path, which keys are also made of. It is nil for the
// other paths of the site.
func (h *Handler) route(r *http.Request) endpoint {
	path := r.URL.Path
	for i := range routes {
		rest, ok := routes[i].match(r.Method, path, routes[i].path)
		switch {
		case !ok:
		case hasDots(rest) && isAPI(path): // a matcher in front of the service may read it as another path
			return h.misaddressed(&routes[i], http.StatusBadRequest, badSegment)
		default:
			return routes[i].serve(h, rest)
		}
	}
	if !isAPI(path) {
		return nil // at no cost for the pages of the site
	}
	path = folded(path)
	for i := range routes {
		if _, ok := routes[i].match(r.Method, path, routes[i].folded); ok {
			right := h.options.MountPrefix(r) + routes[i].usage
			return h.misaddressed(&routes[i], http.StatusNotFound, "there is no such address: use "+right)
		}
	}
	return nil
}

// isAPI reports whether a path begins like those of the endpoints but the stored items, in any case
// and with any number of slashes.
func isAPI(path string) bool {
	const first = "api"
	start := strings.TrimLeft(path, "/")
	return len(start) >= len(first) && strings.EqualFold(start[:len(first)], first)
}

// hasDots reports whether a path has a segment that is . or ..
func hasDots(path string) bool {
	return strings.Contains(path, "/.") && slices.ContainsFunc(strings.Split(path, "/"), func(segment string) bool {
		return segment == "." || segment == ".."
	})
}

// folded returns a path in lower case, without extra slashes and without the plural of its
// segments.
func folded(path string) string {
	segments := strings.FieldsFunc(strings.ToLower(path), func(r rune) bool { return r == '/' })
	for i, segment := range segments {
		segments[i] = strings.TrimSuffix(segment, "s")
	}
	return strings.Join(segments, "/")
}

// misaddressed returns an endpoint that refuses a request for an address that is not right.
func (h *Handler) misaddressed(e *route, status int, message string) endpoint {
	return func(_ *service.Service, w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "no-store")
		if e.flat {
			return httpx.AnswerUnread(w, r, status, tokenFailure{Message: message})
		}
		return httpx.Refuse(w, r, h.options.Log, status, item.Failures{{Message: message}})
	}
}

// Interface guard
var _ http.Handler = (*Handler)(nil)
