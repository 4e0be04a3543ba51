package bolt

import (
	"cmp"
	_ "embed"
	"log/slog"
	"path/filepath"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers/options"
)

//go:embed config.go
var comments string

var schema = options.Of[Config](comments)

// Config keeps tokens in a file. They survive a restart.
//
// The file belongs to one Caddy: a second one with the same file cannot issue or check tokens.
// Several Caddys share tokens through `redis`.
type Config struct {
	// The file. It is created at its first use, with its folder, both accessible only to the owner.
	// A damaged file is not repaired: remove it, and callers request new tokens. Placeholders such
	// as `{env.X}` are allowed. Default: `media/tokens.db` in Caddy's data folder.
	Path string `json:"path,omitempty" option:"argument" example:"/srv/media/tokens.db"`
}

// Schema returns the options.
func (*Config) Schema() *options.Schema { return schema.Documented() }

// Complete makes the path absolute. The default is tokens.db in the folder.
func (c *Config) Complete(folder string) (err error) {
	c.Path, err = filepath.Abs(cmp.Or(c.Path, filepath.Join(folder, "tokens.db")))
	return err
}

// NewStore returns the store, which opens the file at its first use.
func (c *Config) NewStore(log *slog.Logger) (tokens.Store, error) { return New(c.Path, log, nil), nil }
