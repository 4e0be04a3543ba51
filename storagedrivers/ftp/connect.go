package ftp

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path"
	"strings"
	"time"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// TLSMode says how connections are secured.
type TLSMode string

// The ways of securing connections.
const (
	TLSNone     TLSMode = "none"     // not at all
	TLSExplicit TLSMode = "explicit" // AUTH TLS after connecting (RFC 4217)
	TLSImplicit TLSMode = "implicit" // from the first byte on
)

// aliveTimeout is how long a connection that was idle may take to say that it lives.
const aliveTimeout = 5 * time.Second

// connect dials, logs in and finds the root. ctx bounds that, not the connection's life.
func (d *Driver) connect(ctx context.Context) (*conn, error) {
	life, cut := context.WithCancel(context.WithoutCancel(ctx))
	c := &conn{connect: d.connect, cut: cut, heardLast: &tail{}}
	stop := context.AfterFunc(ctx, cut)
	err := c.login(life, d.opts)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cut()
		return nil, fmt.Errorf("connecting to %s: %w", d.opts.Address, ended(ctx, err))
	}
	return c, nil
}

// login makes the control connection, which ends with life.
func (c *conn) login(life context.Context, opts Options) error {
	options := []jftp.DialOption{jftp.DialWithDebugOutput(c.heardLast)}
	var config *tls.Config
	if opts.TLS != TLSNone {
		// Servers demand that data connections resume the session of their control
		// connection, and of no other.
		config = opts.TLSConfig.Clone()
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	switch opts.TLS {
	case TLSNone:
	case TLSExplicit:
		options = append(options, jftp.DialWithExplicitTLS(config))
	case TLSImplicit:
		options = append(options, jftp.DialWithTLS(config))
	}
	options = append(options, jftp.DialWithDialFunc(dialFunc(life, opts, config, c.cut)))
	var err error
	if c.ftp, err = jftp.Dial(opts.Address, options...); err != nil {
		return err
	}
	if err = c.ftp.Login(opts.User, opts.Password); err != nil {
		return fmt.Errorf("logging in as %q: %w", opts.User, c.heardLast.reply(err))
	}
	c.heardLast.reset() // it has the password
	c.base, err = c.findBase(opts.Root)
	return err
}

// dialFunc gives what dials the control connection first, then the data connections. All
// end with life.
func dialFunc(
	life context.Context, opts Options, config *tls.Config, cut func(),
) func(network, address string) (net.Conn, error) {
	dialer := network.Dialer{Timeout: opts.Timeout}
	control := true
	return func(network, address string) (net.Conn, error) {
		raw, err := dialer.DialContext(life, network, address)
		if err != nil {
			return nil, err
		}
		if !control {
			return newDataConn(life, raw, config, cut), nil
		}
		control = false
		context.AfterFunc(life, func() { _ = raw.Close() })
		if opts.TLS == TLSImplicit {
			return tls.Client(raw, config), nil
		}
		return raw, nil
	}
}

// findBase gives the absolute path of the root, without a slash at its end. Absolute ones
// are safe: nothing at the start of a key is taken for an option or somebody's home.
func (c *conn) findBase(root string) (string, error) {
	if !path.IsAbs(root) {
		home, err := c.ftp.CurrentDir()
		if err != nil {
			return "", fmt.Errorf("asking for the login folder: %w", err)
		}
		root = path.Join("/", strings.ReplaceAll(home, `""`, `"`), root)
	}
	return strings.TrimSuffix(path.Clean(root), "/"), nil
}

// alive tells whether a connection that was idle still answers.
func alive(ctx context.Context, c *conn) bool {
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	return c.run(ctx, c.ping) == nil
}

// hangUp ends a connection.
func hangUp(c *conn) {
	if !c.broken {
		_ = c.ftp.Quit() // politeness; the server may be gone
	}
	c.cut()
}
