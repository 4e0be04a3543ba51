// Package mediahttp speaks the service's HTTP contract: tokens, uploads and the stored
// items, on a site of Caddy's.
package mediahttp

import (
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/mediaapp"
)

func init() {
	caddy.RegisterModule(Handler{})
	httpcaddyfile.RegisterHandlerDirective("media", parseDirective)
	// Outside of templates, so that an uploaded file is never run as one.
	httpcaddyfile.RegisterDirectiveOrder("media", httpcaddyfile.After, "encode")
}

// Handler serves the media service on a site: `/api/auth/generateToken`,
// `/api/upload/image`, `/api/upload/file`, and the stored items below `/static/img/` and
// `/static/file/`. Everything else goes on to the next handler. What it serves is
// configured in the app `media`.
//
// The header names `HTTP_SERVICE_API_KEY` and `HTTP_SERVICE_ACCESS_TOKEN` reach it only
// where the server's `expected_underscore_headers` lists them.
type Handler struct {
	app *mediaapp.App
	log *zap.Logger
	now func() time.Time

	readers  *readers
	unsigned *sync.Map // aliases that should redirect and were found not to
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.media",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision finds the app, and warns where the server drops the documented headers.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.log = ctx.Logger()
	h.unsigned = new(sync.Map)
	h.readers = allReaders()
	h.now = time.Now //nolint:forbidigo // the clock's one default
	app, err := ctx.App("media")
	if err != nil {
		return err
	}
	h.app = app.(*mediaapp.App) // this is what "media" is
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		h.warnOfDroppedHeaders(server)
	}
	return nil
}

// warnOfDroppedHeaders: Caddy takes headers with an underscore out of every request, but
// for those that an option of the server lists.
func (h *Handler) warnOfDroppedHeaders(server *caddyhttp.Server) {
	for _, name := range []string{"HTTP_SERVICE_API_KEY", "HTTP_SERVICE_ACCESS_TOKEN"} {
		if listed(server.ExpectedUnderscoreHeaders, name) {
			continue
		}
		h.log.Warn("the server drops a header that clients may send; "+
			"write in the global options: servers { expected_underscore_headers HTTP_SERVICE_API_KEY HTTP_SERVICE_ACCESS_TOKEN }",
			zap.String("header", name), zap.Strings("listener", server.Listen))
	}
}

// listed tells whether a server lets a header through; its list may hold patterns.
func listed(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if ok, err := path.Match(strings.ToUpper(pattern), name); ok && err == nil {
			return true
		}
	}
	return false
}

// ServeHTTP answers what belongs to the service.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	serve := h.route(r)
	if serve == nil {
		return next.ServeHTTP(w, r)
	}
	// The app stays open until the answer is out, whatever is configured meanwhile.
	app, done, err := h.app.Use()
	if err != nil {
		return caddyhttp.Error(http.StatusServiceUnavailable, err)
	}
	err = func() error {
		defer done()
		return serve(app, w, r)
	}()
	Linger(w, r, h.now)
	return err
}

type endpoint func(app *mediaapp.App, w http.ResponseWriter, r *http.Request) error

// route decides by the decoded path, which is also what keys are made of.
func (h *Handler) route(r *http.Request) endpoint {
	switch r.URL.Path {
	case "/api/auth/generateToken":
		return h.generateToken
	case "/api/upload/image":
		return h.upload(ingest.Image)
	case "/api/upload/file":
		return h.upload(ingest.File)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	for _, kind := range []ingest.Kind{ingest.Image, ingest.File} {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/static/"+string(kind)+"/"); ok {
			return h.static(kind, rest)
		}
	}
	return nil
}

// parseDirective sets up the handler from Caddyfile tokens. Syntax:
//
//	media [<matcher>]
func parseDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	return handler, handler.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile takes no options: they are in the global option media.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // media
	if d.NextArg() {
		return d.Errf("unknown word %q: the options of media are in the global option", d.Val())
	}
	if d.NextBlock(0) {
		return d.Errf("unknown option %q: the options of media are in the global option", d.Val())
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
