package modules

import (
	"log/slog"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers/options"
)

// StoreNamespace is Caddy's namespace of token stores.
const StoreNamespace = "media.tokens"

// StoreConfig is the configuration of a token store, a pointer to the struct of its options.
type StoreConfig interface {
	tokens.StoreConfig
	options.Described
}

// Store is the Caddy module of a token store.
type Store struct{ module[StoreConfig] }

// RegisterStore registers the token store with the configuration C as the Caddy module
// media.tokens.<name>.
func RegisterStore[C any, P interface {
	*C
	StoreConfig
}](name string) {
	caddy.RegisterModule(&Store{module[StoreConfig]{
		id: StoreNamespace + "." + caddy.ModuleID(name), what: "tokens in " + name,
		create: func() StoreConfig { return P(new(C)) },
		copy:   func(config StoreConfig) StoreConfig { return P(new(*config.(P))) },
	}})
}

// CaddyModule returns the Caddy module information.
func (s *Store) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: s.id, New: func() caddy.Module { return &Store{s.fresh()} }}
}

// Provision expands, completes and checks the options.
func (s *Store) Provision(caddy.Context) error {
	if err := s.expand(); err != nil {
		return err
	}
	return s.completed.Complete(filepath.Join(caddy.AppDataDir(), "media"))
}

// NewStore returns the store, without connecting.
func (s *Store) NewStore(log *slog.Logger) (tokens.Store, error) { return s.completed.NewStore(log) }
