package memory

import (
	"log/slog"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() {
	caddy.RegisterModule(Module{})
}

// Module keeps tokens in memory. They survive a reload of the configuration. A restart ends them
// all, and no other process knows them: callers must then request new ones.
//
// It has no settings.
type Module struct{}

// CaddyModule returns the Caddy module information.
func (Module) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.tokens.memory",
		New: func() caddy.Module { return new(Module) },
	}
}

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	memory
func (*Module) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the store
	if d.NextArg() {
		return d.ArgErr()
	}
	return options.ParseBlock(d, "tokens in memory", nil)
}

// PoolKey implements tokens.StoreModule.
func (*Module) PoolKey() string { return "memory" }

// NewStore implements tokens.StoreModule.
func (*Module) NewStore(*slog.Logger) (tokens.Store, error) { return New(nil), nil }

// Interface guards
var (
	_ caddy.Module          = (*Module)(nil)
	_ caddyfile.Unmarshaler = (*Module)(nil)
	_ tokens.StoreModule    = (*Module)(nil)
)
