package mediaapp

import (
	"log/slog"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() {
	caddy.RegisterModule(memoryTokens{})
}

// memoryTokens keeps tokens in memory. They survive a reload of the configuration. A restart ends them
// all, and no other process knows them: callers must then request new ones.
//
// It has no settings.
type memoryTokens struct{}

// CaddyModule returns the Caddy module information.
func (memoryTokens) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.tokens.memory",
		New: func() caddy.Module { return new(memoryTokens) },
	}
}

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	memory
func (*memoryTokens) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the store
	if d.NextArg() {
		return d.ArgErr()
	}
	return options.ParseBlock(d, "tokens in memory", nil)
}

// PoolKey implements tokens.StoreModule.
func (*memoryTokens) PoolKey() string { return "memory" }

// NewStore implements tokens.StoreModule.
func (*memoryTokens) NewStore(*slog.Logger) (tokens.Store, error) { return memory.New(nil), nil }

// Interface guards
var (
	_ caddy.Module          = (*memoryTokens)(nil)
	_ caddyfile.Unmarshaler = (*memoryTokens)(nil)
	_ tokens.StoreModule    = (*memoryTokens)(nil)
)
