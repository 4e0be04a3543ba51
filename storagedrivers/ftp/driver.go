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
	"cmp"
	_ "embed"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() { caddy.RegisterModule(FTP{}) }

//go:embed driver.go
var comments string

var schema = options.Of[FTP](comments)

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
	// The host, with a port after a colon where it is not 21, or 990 with implicit TLS.
	// Required.
	Address string `json:"address,omitempty" option:"required" example:"files.example.com"`

	// The user to log in as. Required.
	User string `json:"user,omitempty" option:"required" example:"media"`

	// The user's password. Without TLS it can be read on the way.
	Password string `json:"password,omitempty" option:"common,secret" example:"{env.FTP_PASSWORD}"`

	// The folder of all objects, which is made where it is missing. One that does not
	// begin with a slash is below the login folder. Default: the login folder.
	Root string `json:"root,omitempty" option:"common" example:"uploads"`

	// How connections are secured: `none`, `explicit` (AUTH TLS, what servers call FTPES)
	// or `implicit` (TLS from the first byte, on a port of its own). Default: `none`.
	TLS TLSMode `json:"tls,omitempty" option:"common,words=none|explicit|implicit"`

	// The path of a PEM file with the certificates to trust. Default: what the system
	// trusts.
	CA string `json:"ca,omitempty" example:"/etc/caddy/ftp-ca.pem"`

	// The name in the server's certificate. Default: the host of the address.
	ServerName string `json:"server_name,omitempty" example:"files.example.com"`

	// Whether any certificate is believed. Whoever stands between can then read and change
	// everything. Default: `false`.
	InsecureSkipVerify bool `json:"insecure_skip_verify,omitempty"`

	// The most connections at a time, if the server does not allow fewer. Each does one
	// thing: the download of an item over 1 MiB takes one until it ends. Downloads leave one
	// or two of them to uploads and checks. Default: `8`.
	Connections int `json:"connections,omitempty" example:"8"`

	// Whether an upload that must not replace anything makes a lock folder for a moment,
	// so that several processes of this service can share the server. One that dies in
	// that moment keeps its one name from being created for ten minutes. Default: `true`.
	Lock *bool `json:"lock,omitempty"`

	// How long the server may keep silent. Default: `30s`.
	SilenceTimeout caddy.Duration `json:"timeout,omitempty" example:"30s"`

	config Config // expanded
	ca     string // what the file holds
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

// Provision expands and checks the options.
func (f *FTP) Provision(caddy.Context) error {
	e := *f
	if err := schema.Expand(&e); err != nil {
		return err
	}
	f.config = Config{
		Address: e.Address, User: e.User, Password: e.Password, Root: e.Root,
		TLS:         cmp.Or(e.TLS, TLSNone),
		Connections: e.Connections,
		Lock:        e.Lock == nil || *e.Lock,
		Timeout:     e.Timeout(),
	}
	for option, value := range map[string]string{
		"address": e.Address, "user": e.User, "password": e.Password, "root": e.Root,
	} {
		if strings.ContainsAny(value, "\r\n\x00") { // each is a line of the protocol, or part of one
			return fmt.Errorf("%s has a line break", option)
		}
	}
	return f.check(e.CA, e.ServerName)
}

// PoolKey is the server, the login and all settings, with what the file of certificates holds:
// a reload after it was renewed must count.
func (f *FTP) PoolKey() string {
	c := f.config
	serverName := ""
	if c.TLSConfig != nil {
		serverName = c.TLSConfig.ServerName
	}
	return fmt.Sprintf("ftp %q %q %q %q %s %q %q %t %d %t %s", c.Address, c.User, c.Password, c.Root, c.TLS,
		f.ca, serverName, f.InsecureSkipVerify, c.Connections, c.Lock, c.Timeout)
}

// NewDriver makes the driver; it connects when it is first used.
func (f *FTP) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) {
	return New(f.config, log), nil
}

// Timeout is how long the server may keep silent.
func (f *FTP) Timeout() time.Duration { return time.Duration(f.SilenceTimeout) }

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
