// Package sftp keeps objects as files on a host that speaks SFTP (version 3, with the
// extensions of OpenSSH where the host has them).
//
// A key is the path of its file below the root. An object is written to a hidden file
// ".up-*.part" in the folder of its key, forced to the disk where the host can, and then
// given its name in one step. Which steps the host offers is found out by experiment,
// since hosts announce what they do not keep.
//
// The protocol has neither contexts nor time-outs. Operations run beside their callers,
// who leave when their context ends; a host that keeps silent is found by signs of life
// that it does not give, and its connection is closed under whoever waits for it.
package sftp

import (
	_ "embed"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() { caddy.RegisterModule(SFTP{}) }

//go:embed driver.go
var comments string

var schema = options.Of[SFTP](comments)

// SFTP keeps objects as files on a host that speaks SFTP, the file transfer of SSH.
//
// An upload is written to a hidden file beside its place, forced to the disk where the
// host can, and appears under its name when it is whole. How the host keeps two uploads
// of one name apart is found out by experiment at the first check or upload; a host that
// cannot is told of in the log. Everything below the root must be on one file system.
//
// Hidden files `.up-*.part` that a cut connection has left are removed when they are
// older than a day.
type SFTP struct {
	// The host, with a port after a colon where it is not 22. Required.
	Address string `json:"address,omitempty" option:"required" example:"files.example.com"`

	// The user to log in as. Required.
	User string `json:"user,omitempty" option:"required" example:"media"`

	// The user's password; also the answer to what the host asks interactively. One of
	// `password`, `private_key` and `agent` is needed.
	Password string `json:"password,omitempty" option:"common,secret" example:"{env.SFTP_PASSWORD}"`

	// The user's private key: the path of its file, or the key itself, which begins with
	// `-----BEGIN` and is best given as a placeholder such as `{env.SFTP_PRIVATE_KEY}`.
	PrivateKey string `json:"private_key,omitempty" option:"common,secret" example:"/etc/caddy/media_ed25519"`

	// The passphrase of the private key, if it has one.
	Passphrase string `json:"passphrase,omitempty" option:"common,secret" example:"{env.SFTP_PASSPHRASE}"`

	// Whether to use the keys of the SSH agent at `SSH_AUTH_SOCK`. Default: `false`.
	Agent bool `json:"agent,omitempty"`

	// Files as OpenSSH writes them (`~/.ssh/known_hosts`) with the keys by which the host
	// is recognised. One of `known_hosts`, `host_key` and `insecure_skip_host_key` is
	// needed.
	KnownHosts []string `json:"known_hosts,omitempty" option:"common,repeat" example:"/etc/ssh/ssh_known_hosts"`

	// Public keys of the host, as in its `/etc/ssh/ssh_host_ed25519_key.pub`
	// (`ssh-ed25519 AAAA...`), or their fingerprints (`SHA256:...`).
	HostKey []string `json:"host_key,omitempty" option:"common,repeat" example:"ssh-ed25519 AAAA..."`

	// Whether to talk to whoever answers at the address. Somebody on the way to the host
	// can then read and change everything, and learn the password. Default: `false`.
	InsecureSkipHostKey bool `json:"insecure_skip_host_key,omitempty"`

	// The folder for all objects, relative to the one that the login ends up in. It is
	// made if it is missing. Default: the folder of the login.
	Root string `json:"root,omitempty" option:"common" example:"uploads"`

	// How many SSH connections are opened at most. Each is shared by any number of
	// transfers; more of them use more processor cores. Default: `2`.
	Connections int `json:"connections,omitempty" example:"2"`

	// How long the host may keep silent, also while it forces an upload to its disk.
	// Default: `30s`.
	SilenceTimeout caddy.Duration `json:"timeout,omitempty" example:"30s"`

	config Config // expanded
}

// CaddyModule returns the Caddy module information.
func (SFTP) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.sftp",
		New: func() caddy.Module { return new(SFTP) },
	}
}

// Schema describes the options.
func (*SFTP) Schema() *options.Schema { return schema.Documented() }

// Provision expands the options, reads the keys and checks what can be checked without
// the host.
func (s *SFTP) Provision(caddy.Context) error {
	e := *s
	if err := schema.Expand(&e); err != nil {
		return err
	}
	config := Config{
		Address: e.Address, User: e.User, Root: path.Clean(e.Root),
		Password: e.Password, PrivateKey: e.PrivateKey, Passphrase: e.Passphrase, Agent: e.Agent,
		KnownHosts: e.KnownHosts, HostKeys: e.HostKey, InsecureSkipHostKey: e.InsecureSkipHostKey,
		Connections: e.Connections, Timeout: time.Duration(e.SilenceTimeout),
	}
	if err := config.complete(); err != nil {
		return err
	}
	s.config = config
	return nil
}

// PoolKey is everything that the connections depend on.
func (s *SFTP) PoolKey() string { return fmt.Sprintf("sftp %#v", s.config) }

// NewDriver makes the driver; it connects at its first use.
func (s *SFTP) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) { return New(s.config, log) }

// Timeout is how long the host may keep silent.
func (s *SFTP) Timeout() time.Duration { return s.config.Timeout }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	sftp [<address>] { ... }
//
// The options are the fields by their JSON names.
func (s *SFTP) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return schema.ParseModule(d, "an sftp storage", s, options.Readers{"host_key": s.hostKey})
}

// hostKey reads one key, whose type, key and comment need no quotes around them.
func (s *SFTP) hostKey(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) == 0 {
		return d.ArgErr()
	}
	s.HostKey = append(s.HostKey, strings.Join(args, " "))
	return nil
}

// Interface guards
var (
	_ caddy.Module          = (*SFTP)(nil)
	_ caddy.Provisioner     = (*SFTP)(nil)
	_ caddyfile.Unmarshaler = (*SFTP)(nil)
	_ options.Described     = (*SFTP)(nil)
	_ storagedrivers.Module = (*SFTP)(nil)
)
