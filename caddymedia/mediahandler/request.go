package mediahandler

import (
	"log/slog"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/mediahttp"
)

// Options returns the options of a handler in Caddy's server, which knows the client, the trusted
// proxies and the original address of each request.
func Options(log *slog.Logger) mediahttp.Options {
	return mediahttp.Options{
		Log:          log,
		Client:       func(r *http.Request) string { return mediaapp.ClientOf(r.Context()) },
		TrustedProxy: TrustedProxy,
		MountPrefix:  MountPrefix,
	}
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
	return mediahttp.MountPrefix(original.URL, r)
}
