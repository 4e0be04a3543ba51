package sftp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// HostKey connects to the host at the address, without logging in, and returns the key that it
// presents: its ed25519 key if it has one.
func (c *Config) HostKey(ctx context.Context) (storagedrivers.HostKey, error) {
	asked := &Config{Address: c.Address, User: "nobody", Timeout: c.Timeout}
	if err := schema.Check(asked); err != nil {
		return storagedrivers.HostKey{}, err
	}
	timeout := cmp.Or(time.Duration(asked.Timeout), network.DefaultTimeout)
	key, err := presentedKey(ctx, withPort(asked.Address), timeout)
	if err != nil {
		return storagedrivers.HostKey{}, storagedrivers.WithCause(fmt.Errorf("asking the host for its key: %w", err), causeOf(err))
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	return storagedrivers.HostKey{Key: line, Fingerprint: ssh.FingerprintSHA256(key)}, nil
}

var errAsked = errors.New("the key of the host is known")

// presentedKey returns the key that a host presents. It closes the connection before the login.
func presentedKey(ctx context.Context, address string, timeout time.Duration) (ssh.PublicKey, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errSilent)
	defer cancel()
	raw, err := network.Dialer{Timeout: timeout}.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	var key ssh.PublicKey
	_, _, _, err = ssh.NewClientConn(&greeted{Conn: raw}, address, &ssh.ClientConfig{ //nolint:dogsled // it always fails
		HostKeyAlgorithms: algorithmsOf([]string{
			ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA,
		}),
		HostKeyCallback: func(_ string, _ net.Addr, presented ssh.PublicKey) error {
			key = presented
			return errAsked
		},
	})
	if !stop() && key == nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	_ = raw.Close() // it may be closed already
	if key == nil {
		return nil, err
	}
	return key, nil
}
