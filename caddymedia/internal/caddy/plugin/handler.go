package plugin

import (
	"bytes"
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/mediahttp"
)

func init() {
	caddy.RegisterModule(Handler{})
	httpcaddyfile.RegisterHandlerDirective("media", parseDirective)
	// media is ordered before templates, so that an uploaded file is never executed as a template.
	httpcaddyfile.RegisterDirectiveOrder("media", httpcaddyfile.After, "encode")
}

// Handler serves the media service on a site: `/api/auth/generateToken`,
// `/api/upload/image`, `/api/upload/file`, and the stored items below `/static/img/` and
// `/static/file/`. A misspelt endpoint is answered with 404. Everything else goes on to the next
// handler. The app `media` configures it.
//
// The header names `HTTP_SERVICE_API_KEY` and `HTTP_SERVICE_ACCESS_TOKEN` reach it only
// where the server's `expected_underscore_headers` lists them.
type Handler struct {
	contract *mediahttp.Handler
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.media",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision loads the app. It warns if there is no account, and if the server drops the documented
// headers.
func (h *Handler) Provision(ctx caddy.Context) error {
	module, err := ctx.App("media")
	if err != nil {
		return err
	}
	app := module.(*App) // this is what "media" is
	if len(app.Accounts) == 0 {
		ctx.Logger().Warn("no account: no client can upload; put the output of caddy media account <name> into the global option media")
	}
	h.contract = mediahttp.New(app, HandlerOptions(app.Redacted(ctx.Slogger())))
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		warnOfDroppedHeaders(ctx.Logger(), server)
	}
	return nil
}

// warnOfDroppedHeaders logs a warning for each documented header that the server drops. Caddy
// removes headers with an underscore from every request, unless an option of the server lists them.
func warnOfDroppedHeaders(log *zap.Logger, server *caddyhttp.Server) {
	var dropped []string
	for _, name := range []string{"HTTP_SERVICE_API_KEY", "HTTP_SERVICE_ACCESS_TOKEN"} {
		if !listed(server.ExpectedUnderscoreHeaders, name) {
			dropped = append(dropped, name)
		}
	}
	if len(dropped) > 0 {
		log.Info("the server drops headers that some clients send; clients that send Authorization need none of them, for others "+
			"write in the global options: servers { expected_underscore_headers HTTP_SERVICE_API_KEY HTTP_SERVICE_ACCESS_TOKEN }",
			zap.Strings("headers", dropped), zap.Strings("listener", server.Listen))
	}
}

// listed reports whether one of the server's patterns matches a header.
func listed(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if ok, err := path.Match(strings.ToUpper(pattern), name); ok && err == nil {
			return true
		}
	}
	return false
}

// ServeHTTP serves the addresses of the service.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	handled, err := h.contract.Serve(w, r)
	if !handled {
		return next.ServeHTTP(w, r)
	}
	if failed, ok := errors.AsType[*httpx.Error](err); ok {
		return caddyhttp.Error(failed.Status, failed.Err)
	}
	return err
}

// HandlerOptions returns the options of a handler in Caddy's server, which knows the client, the
// trusted proxies and the original address of each request.
func HandlerOptions(log *slog.Logger) mediahttp.Options {
	return mediahttp.Options{
		Log:          log,
		Client:       func(r *http.Request) string { return ClientOf(r.Context()) },
		TrustedProxy: TrustedProxy,
		MountPrefix:  MountPrefix,
		User:         userOf,
	}
}

// userOf returns the value of a placeholder that an authentication handler of Caddy has set, empty
// if none has.
func userOf(r *http.Request, placeholder string) string {
	replacer, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return ""
	}
	user, _ := replacer.GetString(strings.Trim(placeholder, "{}"))
	return user
}

// TrustedProxy reports whether a request comes from a proxy that Caddy trusts.
func TrustedProxy(r *http.Request) bool {
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	return trusted
}

// MountPrefix returns the prefix of the client's path that was removed before the handler, for
// example by `handle_path`.
func MountPrefix(r *http.Request) string {
	original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if !ok || original.URL == nil {
		return ""
	}
	return caller.MountPrefix(original.URL, r)
}

// Addresses returns the addresses of a path of the handler that a server is provisioning: one for
// each host name of its site. A site without a host name is named by its listener, or by anyHost.
func Addresses(server *caddyhttp.Server, handler, anyHost, path string) []string {
	if len(server.Listen) == 0 {
		return nil
	}
	host, port, err := net.SplitHostPort(server.Listen[0])
	if err != nil {
		return nil // a unix socket
	}
	scheme, usual := "http", "80"
	if len(server.TLSConnPolicies) > 0 {
		scheme, usual = "https", "443"
	}
	hosts := siteHosts(server.Routes, handler)
	if len(hosts) == 0 {
		hosts = []string{cmp.Or(host, anyHost)}
	}
	all := make([]string, 0, len(hosts))
	for _, host := range hosts {
		all = append(all, scheme+"://"+strings.TrimSuffix(net.JoinHostPort(host, port), ":"+usual)+path)
	}
	return all
}

// siteHosts returns the host names of the first route with a handler of a name that is not
// provisioned yet. Caddy drops the JSON of a handler when it has provisioned it.
func siteHosts(routes caddyhttp.RouteList, name string) []string {
	for _, route := range routes {
		for _, handler := range route.HandlersRaw {
			if !bytes.Contains(handler, []byte(`"handler":"`+name+`"`)) {
				continue
			}
			for _, set := range route.MatcherSets {
				for _, matcher := range set {
					if hosts, ok := matcher.(*caddyhttp.MatchHost); ok {
						return *hosts
					}
				}
			}
			return nil
		}
	}
	return nil
}

// parseDirective sets up the handler from Caddyfile tokens. Syntax:
//
//	media [<matcher>]
func parseDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	if err := handler.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	if err := checkOption(h); err != nil {
		return nil, h.WrapErr(err)
	}
	return handler, nil
}

// UnmarshalCaddyfile accepts no options, because they are in the global option media.
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
