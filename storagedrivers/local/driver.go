// Package local stores objects as files below one folder, the root.
//
// A key is the path of its file. Nothing outside the root can be reached: every access uses
// [os.Root], so that neither ".." nor a symbolic link leads out.
//
// An object is written to an unnamed file (O_TMPFILE, open(2)) that is linked to its name when it
// is complete. If the system or the file system has no such files, and while an object is being
// replaced, the driver uses names in a hidden folder ".media-tmp-*" of the root. A process locks
// its folder (flock(2)), so that the next start can distinguish the leftovers of a killed process
// from the data of a running one.
//
// A growing object has its name from the start. A writer locks the file itself while it appends. An
// item that was committed from it is a second name of the file; a file with several names is never
// appended to.
package local

import (
	_ "embed"
	"fmt"
	"log/slog"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() { caddy.RegisterModule(Local{}) }

var (
	//go:embed driver.go
	comments string
	//go:embed config.go
	configComments string
)

var schema = options.Of[Local](comments, configComments)

// Local keeps objects as files below one folder.
//
// An object appears under its name when it is whole and on the disk; two uploads of one
// name never mix, also when several processes use the folder. Symbolic links inside the
// folder are followed, unless they lead out of it.
//
// Placeholders such as `{env.MEDIA_ROOT}` are expanded in every text.
type Local struct {
	Config

	config Config // expanded and completed
}

// CaddyModule returns the Caddy module information.
func (Local) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.local",
		New: func() caddy.Module { return new(Local) },
	}
}

// Schema returns the options.
func (*Local) Schema() *options.Schema { return schema.Documented() }

// Provision expands, completes and checks the options.
func (l *Local) Provision(caddy.Context) error {
	e := *l
	if err := schema.Expand(&e); err != nil {
		return err
	}
	l.config = e.Config
	return l.config.complete()
}

// PoolKey returns the folder and whether it is synced.
func (l *Local) PoolKey() string {
	return fmt.Sprintf("local %q sync=%t", l.config.Root, l.config.sync())
}

// NewDriver returns a driver, which uses the folder at its first use.
func (l *Local) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) {
	return NewFollower(l.config, log), nil
}

// Timeout returns 0, the default.
func (*Local) Timeout() time.Duration { return 0 }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	local [<root>] { ... }
//
// The options are the fields by their JSON names.
func (l *Local) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return schema.ParseModule(d, "a local storage", l, nil)
}

// Interface guards
var (
	_ caddy.Module          = (*Local)(nil)
	_ caddy.Provisioner     = (*Local)(nil)
	_ caddyfile.Unmarshaler = (*Local)(nil)
	_ options.Described     = (*Local)(nil)
	_ storagedrivers.Module = (*Local)(nil)
)
