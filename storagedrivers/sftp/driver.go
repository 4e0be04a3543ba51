// Package sftp stores objects as files on a host with SFTP (version 3, and the extensions of
// OpenSSH if the host has them).
//
// A key is the path of its file below the root. An object is written to a hidden file ".up-*.part"
// in the folder of its key, synced if the host can, and then named in one step. An experiment
// determines the steps that the host supports, because some hosts announce abilities that they
// lack.
//
// The protocol has neither contexts nor time-outs. Operations run in goroutines of their own, and
// callers return when their context ends. A silent host is detected by missing replies to checks;
// then its connection is closed and the operations on it fail.
package sftp

import (
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

func init() { caddy.RegisterModule(SFTP{}) }

var (
	//go:embed driver.go
	comments string
	//go:embed config.go
	configComments string
)

var schema = options.Of[SFTP](comments, configComments)

// SFTP keeps objects as files on a host that speaks SFTP, the file transfer of SSH.
//
// An upload is written to a hidden file in the folder of its name, forced to the disk where the
// host can, and appears under its name when it is whole. An experiment at the first check or upload
// shows how the host can keep two uploads of one name apart. A host that cannot is logged.
// Everything below the root must be on one file system.
//
// Hidden files `.up-*.part` that a cut connection has left are removed when they are older than a
// day.
type SFTP struct {
	Config

	// How long the host may keep silent, also while it forces an upload to its disk.
	// Default: `30s`.
	SilenceTimeout options.Duration `json:"timeout,omitempty" example:"30s"`

	config Config // expanded and completed
}

// CaddyModule returns the Caddy module information.
func (SFTP) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.sftp",
		New: func() caddy.Module { return new(SFTP) },
	}
}

// Schema returns the options.
func (*SFTP) Schema() *options.Schema { return schema.Documented() }

// Provision expands, completes and checks the options.
func (s *SFTP) Provision(caddy.Context) error {
	e := *s
	if err := schema.Expand(&e); err != nil {
		return err
	}
	s.config = e.Config
	s.config.Timeout = time.Duration(e.SilenceTimeout)
	_, err := s.config.complete()
	return err
}

// PoolKey returns all of the completed options.
func (s *SFTP) PoolKey() string { return fmt.Sprintf("sftp %#v", s.config) }

// NewDriver returns a driver, which connects at its first use.
func (s *SFTP) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) { return New(s.config, log) }

// Timeout returns how long the host may stay silent.
func (s *SFTP) Timeout() time.Duration { return s.config.Timeout }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	sftp [<address>] { ... }
//
// The options are the fields by their JSON names.
func (s *SFTP) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return schema.ParseModule(d, "an sftp storage", s, options.Readers{"host_key": s.hostKey})
}

// hostKey reads one key. Its type, key and comment need no quotes around them.
func (s *SFTP) hostKey(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) == 0 {
		return d.ArgErr()
	}
	s.HostKeys = append(s.HostKeys, strings.Join(args, " "))
	return nil
}

// Interface guards
var (
	_ caddy.Module             = (*SFTP)(nil)
	_ caddy.Provisioner        = (*SFTP)(nil)
	_ caddyfile.Unmarshaler    = (*SFTP)(nil)
	_ options.Described        = (*SFTP)(nil)
	_ storagedrivers.Module    = (*SFTP)(nil)
	_ storagedrivers.HostKeyer = (*SFTP)(nil)
)
