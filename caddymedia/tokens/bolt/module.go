package bolt

import (
	"cmp"
	_ "embed"
	"log/slog"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() {
	caddy.RegisterModule(Module{})
}

//go:embed module.go
var comments string

var schema = options.Of[Module](comments)

// Module keeps tokens in a file. They survive a restart.
//
// The file belongs to one Caddy: a second one with the same file cannot issue or check tokens.
// Several Caddys share tokens through `redis`.
type Module struct {
	// The file. It is created at its first use, with its folder, both accessible only to the owner.
	// A damaged file is not repaired: remove it, and callers request new tokens. Placeholders such
	// as `{env.X}` are allowed. Default: `media/tokens.db` in Caddy's data folder.
	Path string `json:"path,omitempty" example:"/srv/media/tokens.db"`

	path string
}

// CaddyModule returns the Caddy module information.
func (Module) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.tokens.bolt",
		New: func() caddy.Module { return new(Module) },
	}
}

// Schema describes the options.
func (*Module) Schema() *options.Schema { return schema.Documented() }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	bolt [<path>]
func (m *Module) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the store
	if d.NextArg() {
		m.Path = d.Val()
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	return options.ParseBlock(d, "tokens in bolt", nil)
}

// Provision sets up the module.
func (m *Module) Provision(caddy.Context) error {
	e := *m
	if err := schema.Expand(&e); err != nil {
		return err
	}
	var err error
	m.path, err = filepath.Abs(cmp.Or(e.Path, filepath.Join(caddy.AppDataDir(), "media", "tokens.db")))
	return err
}

// PoolKey implements tokens.StoreModule.
func (m *Module) PoolKey() string { return "bolt:" + m.path }

// NewStore implements tokens.StoreModule.
func (m *Module) NewStore(log *slog.Logger) (tokens.Store, error) { return New(m.path, log, nil), nil }

// Interface guards
var (
	_ caddy.Module          = (*Module)(nil)
	_ caddy.Provisioner     = (*Module)(nil)
	_ caddyfile.Unmarshaler = (*Module)(nil)
	_ options.Described     = (*Module)(nil)
	_ tokens.StoreModule    = (*Module)(nil)
)
