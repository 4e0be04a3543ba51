package sftp

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Config says where the objects are and how to get there.
type Config struct {
	// Address is host and port.
	Address string
	// User is who logs in, with whatever of the following is given.
	User     string
	Password string
	// PrivateKey is the key itself, as in its file.
	PrivateKey string
	Passphrase string
	// Agent also uses the keys of the agent at SSH_AUTH_SOCK.
	Agent bool
	// KnownHosts are files, HostKeys public keys or SHA256 fingerprints, by which the
	// host is recognised.
	KnownHosts []string
	HostKeys   []string
	// InsecureSkipHostKey trusts whoever answers.
	InsecureSkipHostKey bool
	// Root is the folder for all keys; "." is the one of the login.
	Root string
	// Connections are how many are opened at most.
	Connections int
	// Timeout is how long the host may keep silent.
	Timeout time.Duration
}

const (
	defaultPort        = "22"
	defaultConnections = 2
	defaultTimeout     = network.DefaultTimeout
)

// complete fills in the defaults, reads the private key and finds what is wrong.
func (c *Config) complete() error {
	c.Connections = cmp.Or(c.Connections, defaultConnections)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		c.Address = net.JoinHostPort(strings.Trim(c.Address, "[]"), defaultPort)
	}
	if c.PrivateKey != "" && !strings.HasPrefix(strings.TrimSpace(c.PrivateKey), "-----BEGIN") {
		key, err := os.ReadFile(c.PrivateKey)
		if err != nil {
			return fmt.Errorf("private_key: %w", err)
		}
		c.PrivateKey = string(key)
	}
	_, err := newDialer(*c)
	return err
}
