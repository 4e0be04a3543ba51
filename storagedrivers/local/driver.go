// Package local keeps objects as files below one folder, the root.
//
// A key is the path of its file. Nothing outside the root can be reached: every access
// goes through [os.Root], so that neither ".." nor a symbolic link leads out.
//
// An object is written to an unnamed file (O_TMPFILE, open(2)) that is linked into place
// when it is whole. Where the system or the file system has no such files, and while an
// object is being replaced, names in a hidden folder ".media-tmp-*" of the root are
// used. A process locks its folder (flock(2)), so that the next start can tell the
// leftovers of one that was killed from the work of one that is running.
package local

import (
	_ "embed"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() { caddy.RegisterModule(Local{}) }

//go:embed driver.go
var comments string

var schema = options.Of[Local](comments)

// Local keeps objects as files below one folder.
//
// An object appears under its name when it is whole and on the disk; two uploads of one
// name never mix, also when several processes use the folder. Symbolic links inside the
// folder are followed, unless they lead out of it.
//
// Placeholders such as `{env.MEDIA_ROOT}` are expanded in every text.
type Local struct {
	// The folder. It is made when it is first used; a relative one is relative to the
	// folder that Caddy was started in. Everything below must be on one file system.
	// Required.
	Root string `json:"root,omitempty" option:"required" example:"/srv/media"`

	// Whether an upload is on the disk (file and folder synced) before it is called
	// stored. Without it many small files are stored faster, and a power failure loses
	// uploads that were answered as stored. Default: `true`.
	Sync *bool `json:"sync,omitempty"`

	root string // expanded
}

// CaddyModule returns the Caddy module information.
func (Local) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.local",
		New: func() caddy.Module { return new(Local) },
	}
}

// Schema describes the options.
func (*Local) Schema() *options.Schema { return schema.Documented() }

// Provision expands the root.
func (l *Local) Provision(caddy.Context) error {
	e := *l
	if err := schema.Expand(&e); err != nil {
		return err
	}
	var err error
	if l.root, err = filepath.Abs(e.Root); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	return nil
}

// PoolKey is the folder and the way of writing.
func (l *Local) PoolKey() string { return fmt.Sprintf("local %q sync=%t", l.root, l.synced()) }

// NewDriver makes the driver; the folder is touched at its first use.
func (l *Local) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) {
	return NewFollower(l.root, l.synced(), log), nil
}

// Timeout is the default one.
func (*Local) Timeout() time.Duration { return 0 }

func (l *Local) synced() bool { return l.Sync == nil || *l.Sync }

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
