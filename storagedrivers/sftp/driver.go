package sftp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/block"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

func init() { caddy.RegisterModule(SFTP{}) }

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
	Address string `json:"address,omitempty"`

	// The user to log in as. Required.
	User string `json:"user,omitempty"`

	// The user's password; also the answer to what the host asks interactively. One of
	// `password`, `private_key` and `agent` is required. Use a placeholder such as
	// `{env.SFTP_PASSWORD}`, and so in all secrets.
	Password string `json:"password,omitempty"`

	// The user's private key: the path of its file, or the key itself, which begins with
	// `-----BEGIN`.
	PrivateKey string `json:"private_key,omitempty"`

	// The passphrase of the private key, if it has one.
	Passphrase string `json:"passphrase,omitempty"`

	// Whether to use the keys of the SSH agent at `SSH_AUTH_SOCK`. Default: `false`.
	Agent bool `json:"agent,omitempty"`

	// Files as OpenSSH writes them (`~/.ssh/known_hosts`) with the keys by which the host
	// is recognised. One of `known_hosts`, `host_key` and `insecure_skip_host_key` is
	// required.
	KnownHosts []string `json:"known_hosts,omitempty"`

	// Public keys of the host, as in its `/etc/ssh/ssh_host_ed25519_key.pub`
	// (`ssh-ed25519 AAAA...`), or their fingerprints (`SHA256:...`).
	HostKey []string `json:"host_key,omitempty"`

	// Whether to talk to whoever answers at the address. Somebody on the way to the host
	// can then read and change everything, and learn the password. Default: `false`.
	InsecureSkipHostKey bool `json:"insecure_skip_host_key,omitempty"`

	// The folder for all objects, relative to the one that the login ends up in. It is
	// made if it is missing. Default: the folder of the login.
	Root string `json:"root,omitempty"`

	// How many SSH connections are opened at most. Each is shared by any number of
	// transfers; more of them use more processor cores. Default: `2`.
	Connections int `json:"connections,omitempty"`

	// How long the host may keep silent, also while it forces an upload to its disk.
	// Default: `30s`.
	SilenceTimeout caddy.Duration `json:"timeout,omitempty"`

	config Config // expanded
}

const (
	defaultPort        = "22"
	defaultConnections = 2
	defaultTimeout     = network.DefaultTimeout
)

// CaddyModule returns the Caddy module information.
func (SFTP) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.sftp",
		New: func() caddy.Module { return new(SFTP) },
	}
}

// Provision expands the options, reads the keys and checks what can be checked without
// the host.
func (s *SFTP) Provision(caddy.Context) error {
	var expand block.Expander
	texts := func(option string, raw []string) []string {
		expanded := make([]string, len(raw))
		for i, text := range raw {
			expanded[i] = expand.Text(option, text)
		}
		return expanded
	}
	config := Config{
		Address:    expand.Text("address", s.Address),
		User:       expand.Text("user", s.User),
		Password:   expand.Text("password", s.Password),
		PrivateKey: expand.Text("private_key", s.PrivateKey),
		Passphrase: expand.Text("passphrase", s.Passphrase),
		Agent:      s.Agent,
		KnownHosts: texts("known_hosts", s.KnownHosts),
		HostKeys:   texts("host_key", s.HostKey),
		Root:       expand.Text("root", s.Root),

		InsecureSkipHostKey: s.InsecureSkipHostKey,
		Connections:         s.Connections,
		Timeout:             time.Duration(s.SilenceTimeout),
	}
	if err := expand.Err(); err != nil {
		return fmt.Errorf("sftp storage: %w", err)
	}
	if err := config.complete(); err != nil {
		return fmt.Errorf("sftp storage: %w", err)
	}
	s.config = config
	return nil
}

// complete fills in the defaults, reads the private key and finds what is wrong.
func (c *Config) complete() error {
	if c.Address == "" {
		return errors.New("address is missing")
	}
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		c.Address = net.JoinHostPort(strings.Trim(c.Address, "[]"), defaultPort)
	}
	if c.User == "" {
		return errors.New("user is missing")
	}
	if c.PrivateKey != "" && !strings.HasPrefix(strings.TrimSpace(c.PrivateKey), "-----BEGIN") {
		key, err := os.ReadFile(c.PrivateKey)
		if err != nil {
			return fmt.Errorf("private_key: %w", err)
		}
		c.PrivateKey = string(key)
	}
	c.Root = path.Clean(c.Root)
	if c.Connections < 0 {
		return fmt.Errorf("connections is a number above zero, not %d", c.Connections)
	}
	if c.Connections == 0 {
		c.Connections = defaultConnections
	}
	if c.Timeout < 0 {
		return fmt.Errorf("timeout is a duration above zero, not %v", c.Timeout)
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	_, err := newDialer(*c)
	return err
}

// PoolKey is everything that the connections depend on.
func (s *SFTP) PoolKey() string { return fmt.Sprintf("sftp %#v", s.config) }

// NewDriver makes the driver; it connects at its first use.
func (s *SFTP) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) { return New(s.config, log) }

// Timeout is how long the host may keep silent.
func (s *SFTP) Timeout() time.Duration { return s.config.Timeout }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	sftp [<address>] {
//		address <host[:port]>
//		user <name>
//		password <password>
//		private_key <path|key>
//		passphrase <passphrase>
//		agent on|off
//		known_hosts <path...>
//		host_key <type> <key> | SHA256:<fingerprint>
//		insecure_skip_host_key on|off
//		root <path>
//		connections <n>
//		timeout <duration>
//	}
//
// known_hosts and host_key may be repeated.
func (s *SFTP) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return block.ParseModule(d, "an sftp storage", "address", &s.Address, block.Options{
		"user":                   block.Text(&s.User),
		"password":               block.Text(&s.Password),
		"private_key":            block.Text(&s.PrivateKey),
		"passphrase":             block.Text(&s.Passphrase),
		"agent":                  block.Switch(&s.Agent),
		"known_hosts":            block.Texts(&s.KnownHosts),
		"host_key":               s.hostKey,
		"insecure_skip_host_key": block.Switch(&s.InsecureSkipHostKey),
		"root":                   block.Text(&s.Root),
		"connections":            block.Count(&s.Connections),
		"timeout":                block.Duration(&s.SilenceTimeout),
	}, "known_hosts", "host_key")
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
	_ storagedrivers.Module = (*SFTP)(nil)
)
