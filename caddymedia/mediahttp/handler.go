// Package mediahttp serves the service's HTTP contract, [OpenAPI], as a net/http handler for a Go
// program. It routes requests, issues tokens and tickets, and answers preflights (CORS); uploads,
// lists and stored items are answered by packages that it keeps to itself. Begin with [New], with a
// [media.Service] as the source; [NewS3] is for programs that know S3.
package mediahttp

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/front/items"
	"github.com/caddymedia/media/caddymedia/internal/front/serve"
	"github.com/caddymedia/media/caddymedia/internal/front/uploads"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
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

// Handler serves the endpoints of [OpenAPI]: logins and tickets, uploads, items for accounts,
// signed addresses, and the stored items below `/static/`. A path that is almost that of an
// endpoint is answered with 404 and the right one.
type Handler struct {
	gate  *caller.Gate
	items *serve.Server
}

// New returns a handler for the service of a source.
func New(source Source, options Options) *Handler {
	gate := caller.New(source, caller.Options(options))
	return &Handler{gate: gate, items: serve.New(gate)}
}

// ServeHTTP answers all requests, unknown paths with 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status := http.StatusNotFound
	if handled, err := h.Serve(w, r); handled {
		failed, ok := errors.AsType[*httpx.Error](err)
		if !ok {
			return
		}
		status = failed.Status
	}
	http.Error(w, http.StatusText(status), status)
}

// Serve answers a request. It returns false, and does nothing, if the path is not one of the
// service. The error has a method HTTPStatus() int, the status of the response, which the caller
// writes; headers such as Retry-After are already set.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request) (handled bool, err error) {
	if r.Method == http.MethodOptions && h.isPreflight(r) {
		return true, h.gate.Answer(w, r, preflight)
	}
	serve := h.route(r)
	if serve == nil {
		return false, nil
	}
	return true, h.gate.Answer(w, r, func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		if origins := running.Origins(); origins != nil {
			exposeResponse(origins, w.Header(), r) // errors included
		}
		return serve(running, w, r)
	})
}

// Paths of the endpoints that are for no kind.
const (
	tokenPath  = "/api/auth/generateToken" //nolint:gosec // no password
	ticketPath = "/api/auth/ticket"
	signPath   = "/api/sign"
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
	serve func(h *Handler, rest string) caller.Endpoint
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
		upload, resumable, listed := caller.UploadPath+kind.Name(), caller.UploadPath+kind.Name()+uploads.ResumableSuffix, items.Path+kind.Name()
		all = append(all, route{
			path: "/static/" + string(kind), methods: []string{http.MethodGet, http.MethodHead}, owns: isStatic,
			serve: func(h *Handler, rest string) caller.Endpoint { return h.items.Static(kind, rest[1:]) },
		}, route{
			path: upload, methods: post, owns: alone,
			serve: func(h *Handler, _ string) caller.Endpoint { return uploads.Form(h.gate, kind) },
		}, route{
			path: resumable, owns: below,
			methods: []string{http.MethodOptions, http.MethodPost, http.MethodHead, http.MethodGet, http.MethodPatch, http.MethodDelete},
			serve: func(h *Handler, rest string) caller.Endpoint {
				return uploads.Resumable(h.gate, kind, strings.TrimPrefix(rest, "/"))
			},
		}, route{
			path: upload + uploads.HeldSuffix, usage: upload + uploads.HeldSuffix + "/<id>", owns: isHeld,
			methods: []string{http.MethodGet, http.MethodHead, http.MethodDelete},
			serve:   func(h *Handler, rest string) caller.Endpoint { return uploads.Held(h.gate, kind, rest[1:]) },
		}, route{
			path: upload, usage: upload + "/<alias>/<name>", methods: []string{http.MethodPut}, owns: isPut,
			serve: func(h *Handler, _ string) caller.Endpoint { return uploads.Put(h.gate, kind) },
		}, route{
			path: listed, usage: listed + "/<alias>", owns: below,
			methods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete},
			serve:   func(h *Handler, _ string) caller.Endpoint { return items.Endpoint(h.gate, kind) },
		})
	}
	all = append(all, route{
		path: tokenPath, flat: true, methods: post, owns: alone,
		serve: func(h *Handler, _ string) caller.Endpoint { return h.generateToken },
	}, route{
		path: ticketPath, flat: true, methods: post, owns: alone,
		serve: func(h *Handler, _ string) caller.Endpoint { return h.issueTicket },
	}, route{
		path: signPath, flat: true, methods: post, owns: alone,
		serve: func(h *Handler, _ string) caller.Endpoint { return items.Sign(h.gate) },
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

// isHeld reports whether a request is for a held upload. The other methods are those of an alias of
// this name.
func isHeld(method, rest string) bool {
	return len(rest) > 1 && (method == http.MethodGet || method == http.MethodHead || method == http.MethodDelete)
}

// isPut reports whether a request is for the address of an upload of one file. With another method
// than PUT, only a complete address is, and a near miss of a resumable upload is not.
func isPut(method, rest string) bool {
	alias, name, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	return method == http.MethodPut || alias != "" && name != "" && folded(alias) != folded(uploads.ResumableSuffix)
}

// match returns the part of a path behind prefix, and whether the request is for the endpoint.
func (e *route) match(method, path, prefix string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, prefix)
	return rest, ok && (rest == "" || rest[0] == '/') && e.owns(method, rest)
}

// route returns the endpoint of the decoded path, which keys are also made of. It is nil for the
// other paths of the site.
func (h *Handler) route(r *http.Request) caller.Endpoint {
	path := r.URL.Path
	for i := range routes {
		rest, ok := routes[i].match(r.Method, path, routes[i].path)
		switch {
		case !ok:
		case hasDots(rest) && isAPI(path): // a matcher in front of the service may read it as another path
			return h.misaddressed(&routes[i], http.StatusBadRequest, caller.BadSegment)
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
			right := h.gate.MountPrefix(r) + routes[i].usage
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
func (h *Handler) misaddressed(e *route, status int, message string) caller.Endpoint {
	return func(_ *service.Service, w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "no-store")
		if e.flat {
			return httpx.AnswerUnread(w, r, status, caller.FormFailure{Message: message})
		}
		return httpx.Refuse(w, r, h.gate.Log, status, item.Failures{{Message: message}})
	}
}

// Interface guard
var _ http.Handler = (*Handler)(nil)
