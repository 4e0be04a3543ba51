package api

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
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

// Interface guard
var _ caddy.AdminRouter = (*Module)(nil)
