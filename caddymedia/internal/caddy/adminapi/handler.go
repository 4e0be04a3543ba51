// Package adminapi is the JSON API for administrators: the configuration and the state of the media
// app, probes of storages, counts of items, the items as clients have them, the last changes of
// them, and the end of tokens. It is not for clients of a site, and no answer contains a secret of
// the configuration. Begin with [Handler] and its routes; its editor changes one storage, alias or
// account at a time, through Caddy's admin endpoint.
//
// Caddy's admin endpoint serves the API below /media/, without the editor. The panel serves it
// below its own address, with the editor.
package adminapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

func init() { caddy.RegisterModule(Module{}) }

// Module serves the API for administrators on Caddy's admin endpoint, below `/media/`. It needs no
// configuration.
type Module struct{}

// CaddyModule returns the Caddy module information.
func (Module) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.media",
		New: func() caddy.Module { return new(Module) },
	}
}

const mounted = "/media"

// Routes returns all routes of the API under one prefix. They hold no app, because this module may
// belong to a rejected configuration.
func (*Module) Routes() []caddy.AdminRoute {
	handler := http.StripPrefix(mounted, New())
	serve := caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		handler.ServeHTTP(w, r)
		return nil
	})
	return []caddy.AdminRoute{{Pattern: mounted, Handler: serve}, {Pattern: mounted + "/", Handler: serve}}
}

// Handler serves the routes of the API, relative to "/". It acquires the running app for each
// request, so a Handler may outlive any configuration.
type Handler struct {
	editor  *editor // nil without the routes of the editor
	log     *zap.Logger
	probes  chan struct{} // one is taken by each probe that runs
	maxTime time.Duration // of a request that waits for a storage
	now     func() time.Time
}

const (
	// Simultaneous probes in this process.
	maxProbes = 4
	// The maximum time of a request that uses a storage.
	maxTime = time.Minute
	// The maximum size of a request in bytes.
	maxBody = 1 << 20
)

// running limits the probes of all handlers, because each may wait for a slow host.
var running = make(chan struct{}, maxProbes)

// New returns a handler without the editor of the configuration.
func New() *Handler {
	return &Handler{
		log: caddy.Log().Named("media.api"), probes: running, maxTime: maxTime,
		now: time.Now, //nolint:forbidigo // the clock's one default
	}
}

// NewEditor returns a handler with the editor of the configuration. address is that of Caddy's
// admin endpoint in Caddy's notation, on the loopback interface or a unix socket. An empty one is
// Caddy's default. With [Off], requests to the editor are refused with the reason.
func NewEditor(address string, log *zap.Logger) (*Handler, error) {
	h := New()
	h.log, h.editor = log, &editor{log: log, sync: syncFile}
	if address == Off {
		return h, nil
	}
	var err error
	h.editor.client, err = newClient(address)
	return h, err
}

// call is one request.
type call struct {
	handler *Handler
	app     *plugin.App // nil for the routes of the editor
	service *service.Service
	w       http.ResponseWriter
	r       *http.Request
	account *access.Account // of a user who may use items and nothing else; nil for others
	args    []string        // the path segments for the wildcards of the route
	secrets []string        // that the request has submitted
}

// scope is where a route is served.
type scope int

const (
	everywhere scope = iota
	inPanel          // not on Caddy's admin endpoint
	edits            // in the panel, through Caddy's admin endpoint, without a running app
)

// routes are all routes of the API. "*" stands for one segment of the path and "**" for all that
// follow. Segments are decoded one by one. A route without a method serves all.
var routes = []struct {
	method, pattern string
	serve           func(*call) error
	scope           scope
}{
	{http.MethodGet, "kinds", (*call).kinds, everywhere},
	{http.MethodGet, "storages", (*call).storages, everywhere},
	{http.MethodGet, "storages/*", (*call).storage, everywhere},
	{http.MethodPost, "storages/*/probe", (*call).probeSaved, everywhere},
	{http.MethodPost, "probe", (*call).probeUnsaved, everywhere},
	{http.MethodPost, "aliases/*/*/checks/*/probe", (*call).probeCheck, everywhere},
	{http.MethodPost, "hostkey", (*call).hostKey, everywhere},
	{http.MethodGet, "caches", (*call).caches, everywhere},
	{http.MethodDelete, "caches/*", (*call).emptyCache, everywhere},
	{http.MethodGet, "aliases", (*call).aliases, everywhere},
	{http.MethodGet, "accounts", (*call).accounts, everywhere},
	{http.MethodDelete, "accounts/*/tokens", (*call).endTokens, everywhere},
	{"", "items/*/**", (*call).items, everywhere}, // the panel serves its own
	{http.MethodGet, "facts/*/*/**", (*call).facts, everywhere},
	{http.MethodGet, "preview/*/*/**", (*call).preview, inPanel},
	{http.MethodPost, "zip/*/*", (*call).zip, inPanel},
	{http.MethodGet, "uploads", (*call).uploads, everywhere},
	{http.MethodDelete, "uploads/*/*", (*call).endUpload, everywhere},
	{http.MethodGet, "health", (*call).health, everywhere},
	{http.MethodGet, "usage", (*call).usage, everywhere},
	{http.MethodPost, "usage", (*call).countUsage, everywhere},
	{http.MethodGet, "changes", (*call).changes, everywhere},
	{http.MethodGet, "config", (*call).download, edits},
	{http.MethodGet, "config/caddyfile", (*call).downloadCaddyfile, edits},
	{http.MethodGet, "config/*/**", (*call).entry, edits},
	{http.MethodPut, "config/*/**", (*call).putEntry, edits},
	{http.MethodDelete, "config/*/**", (*call).deleteEntry, edits},
}

// itemRoutes are the patterns of the routes that a user who may use items and nothing else may
// request.
var itemRoutes = []string{"aliases", "facts/*/*/**", "preview/*/*/**", "zip/*/*"}

// ServeHTTP serves a request, whose operations of storages count for its actor. The media app stays
// open until the answer is written.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(storagedrivers.WithOwner(r.Context(), actorOf(r).Owner()))
	c := &call{handler: h, w: w, r: r}
	c.account, _ = r.Context().Value(itemsOnlyKey{}).(*access.Account)
	err := c.serve()
	if err == nil || r.Context().Err() != nil { // the client is gone
		return
	}
	refusal, ok := errors.AsType[*failure](err)
	if !ok {
		h.log.Error("serving the API for administrators", zap.String("error", c.redacted(err.Error())))
		refusal = failf(http.StatusInternalServerError, "The request failed. The log of Caddy has the reason.")
	}
	if c.account != nil && refusal.status >= http.StatusInternalServerError && w.Header().Get("Retry-After") == "" {
		refusal = failf(refusal.status, "This cannot be read now. Try again later.") // the reason is for administrators
	}
	if refusal.Current != nil {
		w.Header().Set("ETag", refusal.Current.Tag)
	}
	_ = c.write(refusal.status, refusal) // texts can be encoded
}

// serve calls the matching route.
func (c *call) serve() error {
	path, err := segments(c.r.URL)
	if err != nil {
		return err
	}
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var allowed []string
	for _, route := range routes {
		args, ok := match(strings.Split(route.pattern, "/"), path)
		switch {
		case !ok || route.scope != everywhere && c.handler.editor == nil:
		case route.method != method && route.method != "":
			allowed = append(allowed, route.method)
		case c.account != nil && !slices.Contains(itemRoutes, route.pattern):
			return errItemsOnly
		case route.scope == edits && c.handler.editor.client == nil:
			return errOff
		case route.scope == edits:
			c.args = args
			return route.serve(c)
		default:
			c.args = args
			return c.withApp(func(c *call) error {
				if c.account != nil && len(args) > 1 {
					if _, err := c.alias(); err != nil {
						return err
					}
				}
				return route.serve(c)
			})
		}
	}
	return c.withApp(func(*call) error { return c.notServed(allowed) })
}

var errItemsOnly = failf(http.StatusForbidden, "Your user may see and change items only.")

const notRunning = "The media app is not running: the configuration has none."

// withApp calls serve with the running app.
func (c *call) withApp(serve func(*call) error) error {
	app, release, err := plugin.AcquireActive()
	if err != nil {
		return failf(http.StatusServiceUnavailable, "%s", notRunning)
	}
	defer release()
	c.app, c.service = app, app.Service()
	return serve(c)
}

// notServed returns the failure for an address that takes only other methods, or none.
func (c *call) notServed(allowed []string) error {
	if allowed == nil {
		return failf(http.StatusNotFound, "There is nothing at this address.")
	}
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	list := strings.Join(allowed, ", ")
	c.w.Header().Set("Allow", list)
	return failf(http.StatusMethodNotAllowed, "This address takes %s only.", list)
}

// segments returns the decoded segments of the path. A segment with an encoded slash is not found.
func segments(u *url.URL) ([]string, error) {
	path := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for i, segment := range path {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return nil, failf(http.StatusBadRequest, "The address is malformed.")
		}
		if strings.Contains(plain, "/") {
			return nil, failf(http.StatusNotFound, "There is nothing at this address.")
		}
		path[i] = plain
	}
	return path, nil
}

// match returns the path segments for the wildcards of a pattern, or false if the path does not
// match.
func match(pattern, path []string) ([]string, bool) {
	var args []string
	for i, want := range pattern {
		switch {
		case i >= len(path):
			return nil, false
		case want == "**":
			return append(args, strings.Join(path[i:], "/")), true
		case want == "*":
			args = append(args, path[i])
		case want != path[i]:
			return nil, false
		}
	}
	return args, len(path) == len(pattern)
}

// failure is the reason why a request is not served.
type failure struct {
	status int
	// Message is for an administrator. It has no secrets.
	Message string `json:"error"`
	// Option is the path of the option at fault, if known: "driver.root".
	Option string `json:"option,omitempty"`
	// UsedBy are the uses that keep an entry from being removed.
	UsedBy []use `json:"used_by,omitempty"`
	// Current is the present entry, if another change has been made to it.
	Current *shownEntry `json:"current,omitempty"`
}

func (f *failure) Error() string { return f.Message }

func failf(status int, format string, args ...any) *failure {
	return &failure{status: status, Message: fmt.Sprintf(format, args...)}
}

// storageFailed returns the failure for an error of a storage.
func storageFailed(driver storagedrivers.Description, err error) error {
	status := http.StatusBadGateway
	if errors.Is(err, storagedrivers.ErrUnavailable) || errors.Is(err, storagedrivers.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) {
		status = http.StatusServiceUnavailable
	}
	return failf(status, "%s", explain(driver, err))
}

// explain is [storagedrivers.Description.Explain] with a sentence for every error.
func explain(driver storagedrivers.Description, err error) string {
	return cmp.Or(driver.Explain(err),
		"An error without an explanation. The details have its text.")
}

// redacted returns text without the secrets of the configuration and those that the request has
// submitted.
func (c *call) redacted(text string) string {
	app := c.app
	if app == nil {
		app, _ = plugin.Active() // without an app there are no other secrets
	}
	return app.Redact(text, c.secrets...)
}

// answer writes v as a successful answer.
func (c *call) answer(v any) error { return c.write(http.StatusOK, v) }

// write writes v as the answer, whether or not the body of the request was read.
func (c *call) write(status int, v any) error {
	c.w.Header().Set("Cache-Control", "no-store")
	return httpx.AnswerAndLinger(c.w, c.r, c.handler.now, status, v)
}

// noContent writes a successful answer without a body.
func (c *call) noContent() error {
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.Header().Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// readJSON decodes the body of the request. example is such a body, for a message.
func (c *call) readJSON(into any, example string) error {
	err := plugin.ReadJSON(c.w, c.r, maxBody, into)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return failf(http.StatusRequestEntityTooLarge, "The request is larger than 1 MiB.")
	}
	if err != nil {
		return failf(http.StatusBadRequest, "The body is no JSON such as %s.", example)
	}
	return nil
}

// bounded returns the context for operations of a storage.
func (c *call) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.r.Context(), c.handler.maxTime)
}

type (
	actorKey     struct{}
	itemsOnlyKey struct{}
)

// WithItemsOnly returns a context for the requests of a user who may use items of the aliases of an
// account, by its rights, and nothing else.
func WithItemsOnly(ctx context.Context, account access.Account) context.Context {
	return context.WithValue(ctx, itemsOnlyKey{}, &account)
}

// WithActor returns a context for the requests of a known actor.
func WithActor(ctx context.Context, actor item.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// actor returns the actor of the request.
func (c *call) actor() item.Actor { return actorOf(c.r) }

// actorOf returns the actor of a request. Caddy's admin endpoint knows only the addresses of its
// clients.
func actorOf(r *http.Request) item.Actor {
	if actor, ok := r.Context().Value(actorKey{}).(item.Actor); ok {
		return actor
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = "" // a client of a unix socket has no address
	}
	return item.Actor{Origin: item.OriginAdmin, Client: host}
}

// Interface guards
var (
	_ caddy.AdminRouter = (*Module)(nil)
	_ http.Handler      = (*Handler)(nil)
)
