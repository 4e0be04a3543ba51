// Package ftp stores objects as files on an FTP server, plain or over TLS.
//
// A key is the path of its file below the root. An object is sent to a temporary file ".up-*.part"
// in its folder, and renamed when it is complete: a server keeps the received part of an aborted
// transfer and reports it as complete.
//
// The protocol cannot create a name only if it is free. Instead the driver checks the name before
// the rename, under a lock. Within a process that is a name lock, and between processes a lock
// folder ".lock-*" beside the object: making a folder fails if it exists. See lock.go.
//
// A server does not identify the generation of an object that it sends. See open.go.
//
// Hidden names are assumed to be those of this driver. Its leftovers are removed from listed
// folders when they are older than a day. For servers that do not rename over a file, an object is
// moved aside (".aside-" and its name) while it is replaced. The first check, each listing and
// [Driver.Sweep] restore the object if the process died in that moment.
package ftp

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

func init() { caddy.RegisterModule(FTP{}) }

var (
	//go:embed driver.go
	comments string
	//go:embed config.go
	configComments string
)

var schema = options.Of[FTP](comments, configComments)

// FTP keeps objects as files on an FTP server, plain or over TLS, in passive mode.
//
// An object is sent to a hidden temporary file in the folder of its name and renamed when it is
// whole. The login needs the right to store, rename and delete files and to make and remove
// folders. The protocol cannot create a name only if it is free. So this process keeps two uploads
// of one name at the same moment apart, and several processes use lock folders. Other programs that
// write to the folder know neither.
//
// Without TLS the password and all content can be read on the way.
type FTP struct {
	Config

	// How long the server may keep silent. Default: `30s`.
	SilenceTimeout options.Duration `json:"timeout,omitempty" example:"30s"`

	config Config // expanded and completed
}

// CaddyModule returns the Caddy module information.
func (FTP) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.ftp",
		New: func() caddy.Module { return new(FTP) },
	}
}

// Schema returns the options.
func (*FTP) Schema() *options.Schema { return schema.Documented() }

// Provision expands, completes and checks the options.
func (f *FTP) Provision(caddy.Context) error {
	e := *f
	if err := schema.Expand(&e); err != nil {
		return err
	}
	f.config = e.Config
	f.config.Timeout = time.Duration(e.SilenceTimeout)
	return f.config.complete()
}

// PoolKey returns all of the completed options, including the content of the certificate file, so
// that renewed certificates are used after a reload.
func (f *FTP) PoolKey() string {
	c := f.config
	c.Lock = nil // a pointer
	return fmt.Sprintf("ftp %#v %t", c, *f.config.Lock)
}

// NewDriver returns a driver, which connects at its first use.
func (f *FTP) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) { return New(f.config, log) }

// Timeout returns how long the server may stay silent.
func (f *FTP) Timeout() time.Duration { return f.config.Timeout }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	ftp [<address>] { ... }
//
// The options are the fields by their JSON names.
func (f *FTP) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return schema.ParseModule(d, "an ftp storage", f, nil)
}

// Interface guards
var (
	_ caddy.Module          = (*FTP)(nil)
	_ caddy.Provisioner     = (*FTP)(nil)
	_ caddyfile.Unmarshaler = (*FTP)(nil)
	_ options.Described     = (*FTP)(nil)
	_ storagedrivers.Module = (*FTP)(nil)
)
