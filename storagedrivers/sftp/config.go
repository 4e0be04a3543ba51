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
	"cmp"
	_ "embed"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Config keeps objects as files on a host that speaks SFTP, the file transfer of SSH.
//
// An upload is written to a hidden file in the folder of its name, forced to the disk where the
// host can, and appears under its name when it is whole. An experiment at the first check or upload
// shows how the host can keep two uploads of one name apart. A host that cannot is logged.
// Everything below the root must be on one file system.
//
// Hidden files `.up-*.part` that a cut connection has left are removed when they are older than a
// day.
type Config struct {
	// The host, with a port after a colon where it is not 22. Required.
	Address string `json:"address,omitempty" option:"required" example:"files.example.com"`

	// The user to log in as. Required.
	User string `json:"user,omitempty" option:"required" example:"media"`

	// The user's password; also the answer to interactive questions of the host. One of `password`,
	// `private_key` and `agent` is needed.
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
	HostKeys []string `json:"host_key,omitempty" option:"common,repeat,joined" example:"ssh-ed25519 AAAA..."`

	// Whether to accept any host key. An attacker on the way to the host can then read and change
	// everything, and learn the password. Default: `false`.
	InsecureSkipHostKey bool `json:"insecure_skip_host_key,omitempty"`

	// The folder for all objects, relative to the one that the login ends up in. It is
	// made if it is missing. Default: the folder of the login.
	Root string `json:"root,omitempty" option:"common" example:"uploads"`

	// How many SSH connections are opened at most. Each is shared by any number of
	// transfers; more of them use more processor cores. Default: `2`.
	Connections int `json:"connections,omitempty" example:"2"`

	// How long the host may keep silent, also while it forces an upload to its disk.
	// Default: `30s`.
	Timeout options.Duration `json:"timeout,omitempty" example:"30s"`
}

//go:embed config.go
var comments string

var schema = options.Of[Config](comments)

// Schema returns the options.
func (*Config) Schema() *options.Schema { return schema.Documented() }

// NewDriver returns a driver, which connects at its first use.
func (c *Config) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) { return New(*c, log) }

const (
	defaultPort        = "22"
	defaultConnections = 2
)

// withPort returns an address with the default port if it has none.
func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return net.JoinHostPort(strings.Trim(address, "[]"), defaultPort)
	}
	return address
}

// Complete checks the options, sets the defaults and reads the private key.
func (c *Config) Complete() error {
	_, err := c.complete()
	return err
}

func (c *Config) complete() (*dialer, error) {
	if err := schema.Check(c); err != nil {
		return nil, err
	}
	c.Root = path.Clean(c.Root)
	c.Connections = cmp.Or(c.Connections, defaultConnections)
	c.Timeout = cmp.Or(c.Timeout, options.Duration(network.DefaultTimeout))
	c.Address = withPort(c.Address)
	if c.PrivateKey != "" && !strings.HasPrefix(strings.TrimSpace(c.PrivateKey), "-----BEGIN") {
		key, err := os.ReadFile(c.PrivateKey)
		if err != nil {
			return nil, fmt.Errorf("private_key: %w", err)
		}
		c.PrivateKey = string(key)
	}
	return newDialer(*c)
}

func (c *Config) timeout() time.Duration { return time.Duration(c.Timeout) }
