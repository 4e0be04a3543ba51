// Package ftp keeps objects as files on an FTP server, plain or over TLS.
//
// A key is the path of its file below the root. An object is sent to a temporary file
// ".up-*.part" in its folder, and renamed when it is whole: a server keeps what it got
// when a transfer breaks off, and calls it complete.
//
// The protocol has no way to create a name only if it is free. What stands in for it is a
// look before the rename, under a lock in this process and, between processes that keep
// to it, a lock folder ".lock-*" beside the object, because making a folder is refused
// where it exists. See lock.go.
//
// A server does not say which generation of an object it sends. See open.go.
//
// Hidden names are taken for this driver's: leftovers of it that are older than a day are
// removed when they are met in a listing. What a server that does not rename over objects
// had put aside (".old-*") is not: it may be the only one left of its name.
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
// An object is sent to a hidden temporary file beside its place and renamed when it is
// whole. The login needs the right to store, rename and delete files and to make and
// remove folders. The protocol cannot create a name only if it is free, so two uploads of
// one name at the same moment are kept apart by this process and, between several of them,
// by lock folders; somebody else who writes to the folder knows neither.
//
// Without TLS the password and all content can be read on the way.
type FTP struct {
	Config

	// How long the server may keep silent. Default: `30s`.
	SilenceTimeout caddy.Duration `json:"timeout,omitempty" example:"30s"`

	config Config // expanded and completed
}

// CaddyModule returns the Caddy module information.
func (FTP) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.ftp",
		New: func() caddy.Module { return new(FTP) },
	}
}

// Schema describes the options.
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

// PoolKey is all of the completed options, with what the file of certificates holds: a reload after it
// was renewed must count.
func (f *FTP) PoolKey() string {
	c := f.config
	c.Lock = nil // a pointer
	return fmt.Sprintf("ftp %#v %t", c, *f.config.Lock)
}

// NewDriver makes the driver; it connects when it is first used.
func (f *FTP) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) { return New(f.config, log) }

// Timeout is how long the server may keep silent.
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
