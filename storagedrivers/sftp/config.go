// Package sftp stores objects as files on a host with SFTP (version 3, and the extensions of
// OpenSSH if the host has them). It runs no commands on the host, and does not believe what a host
// announces. Begin with [Config], and then put.go, and probe.go for what a host can do.
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
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Config keeps objects as files on a host with SFTP, the file transfer of SSH.
//
// An upload is written to a hidden temporary file, synced to disk if the host can, and named when
// it is complete. The first check or upload tests whether the host has hard links, which prevent
// two uploads from creating one name. On a host without them only one process may write to the
// folder; a warning is logged. Everything below the root must be on one file system.
//
// Temporary files `.up-*.part` of aborted uploads are removed when they are older than a day.
type Config struct {
	// The host, with `:port` if the port is not 22. Required.
	Address string `json:"address,omitempty" option:"required" example:"files.example.com"`

	// The user to log in as. Required.
	User string `json:"user,omitempty" option:"required" example:"media"`

	// The password of the user. It also answers interactive questions of the host. One of
	// `password`, `private_key` and `agent` is required.
	Password string `json:"password,omitempty" option:"common,secret" example:"{env.SFTP_PASSWORD}"`

	// The private key of the user: the path of its file, or the key itself, which begins with
	// `-----BEGIN`. Give the key itself as a placeholder such as `{env.SFTP_PRIVATE_KEY}`.
	PrivateKey string `json:"private_key,omitempty" option:"common,secret" example:"/etc/caddy/media_ed25519"`

	// The passphrase of the private key, if it is encrypted.
	Passphrase string `json:"passphrase,omitempty" option:"common,secret" example:"{env.SFTP_PASSPHRASE}"`

	// Whether to use the keys of the SSH agent at `SSH_AUTH_SOCK`. Default: `false`.
	Agent bool `json:"agent,omitempty"`

	// Files in the format of OpenSSH (`~/.ssh/known_hosts`) with the trusted keys of the host. One
	// of `known_hosts`, `host_key` and `insecure_skip_host_key` is required.
	KnownHosts []string `json:"known_hosts,omitempty" option:"common,repeat" example:"/etc/ssh/ssh_known_hosts"`

	// Trusted public keys of the host, as in its `/etc/ssh/ssh_host_ed25519_key.pub`
	// (`ssh-ed25519 AAAA...`), or their fingerprints (`SHA256:...`).
	HostKeys []string `json:"host_key,omitempty" option:"common,repeat,joined" example:"ssh-ed25519 AAAA..."`

	// Whether to accept any host key. An attacker on the network can then read and change
	// everything, and steal the password. Default: `false`.
	InsecureSkipHostKey bool `json:"insecure_skip_host_key,omitempty"`

	// The folder of all objects. It is created if it is missing. A path without a leading slash is
	// relative to the login folder. Default: the login folder.
	Root string `json:"root,omitempty" option:"common" example:"uploads"`

	// The maximum number of SSH connections. Any number of operations share a connection; more
	// connections use more processor cores. Default: `2`.
	Connections int `json:"connections,omitempty" example:"2"`

	// How long the host may be silent before an operation fails, including while it syncs an upload
	// to disk. Default: `30s`.
	Timeout options.Duration `json:"timeout,omitempty" example:"30s"`
}

//go:embed config.go
var comments string

var schema = options.Of[Config](comments)

// Schema returns the options.
func (*Config) Schema() *options.Schema { return schema.Documented() }

// NewDriver returns a driver, which connects at its first use.
func (c *Config) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) {
	return newDriver(*c, log)
}

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

// complete is Complete. It also returns the dialer for the options.
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
			if failed, ok := errors.AsType[*fs.PathError](err); ok {
				err = failed.Err // without the path, which would be hidden like a key
			}
			return nil, fmt.Errorf("private_key: reading the file: %w", err)
		}
		c.PrivateKey = string(key)
	}
	d := &dialer{config: *c}
	if c.PrivateKey != "" {
		signer, err := ssh.ParsePrivateKey([]byte(c.PrivateKey))
		if c.Passphrase != "" {
			signer, err = ssh.ParsePrivateKeyWithPassphrase([]byte(c.PrivateKey), []byte(c.Passphrase))
		}
		if err != nil {
			return nil, fmt.Errorf("private_key: %w", err)
		}
		d.signers = append(d.signers, signer)
	}
	if c.Agent && os.Getenv(agentSocket) == "" {
		return nil, errors.New("agent: " + agentSocket + " is not set")
	}
	if c.Password == "" && c.PrivateKey == "" && !c.Agent {
		return nil, errors.New("one of password, private_key and agent is required")
	}
	_, err := trusted(*c)
	return d, err
}

func (c *Config) timeout() time.Duration { return time.Duration(c.Timeout) }

// Describe returns the title, the noun and the folder.
func (c *Config) Describe() storagedrivers.Description {
	return storagedrivers.Description{
		Title: "SFTP", Noun: "folder", Icon: "server", Rank: 20, Where: network.Login(c.User, c.Address, c.Root),
	}
}

// Location returns the host and the folder. It contains the user if the folder is relative to that
// of the login; users with the same absolute path share it.
func (c *Config) Location() storagedrivers.Location {
	address := url.URL{Scheme: "sftp", Host: network.Host(c.Address, defaultPort)}
	if !path.IsAbs(c.Root) {
		address.User = url.User(c.User)
	}
	return storagedrivers.Location{Backend: address.String()}.Join(c.Root)
}

// Limits returns the time-out.
func (c *Config) Limits() storagedrivers.Limits {
	return storagedrivers.Limits{Timeout: c.timeout()}
}
