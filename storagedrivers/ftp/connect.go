package ftp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/textproto"
	"path"
	"regexp"
	"strings"
	"time"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// aliveTimeout is how long an idle connection may take to show that it is alive.
const aliveTimeout = 5 * time.Second

// connect dials, logs in and finds the root. ctx bounds only this, not the life of the connection.
func (d *Driver) connect(ctx context.Context) (*conn, error) {
	life, cut := context.WithCancel(context.WithoutCancel(ctx))
	c := &conn{connect: d.connect, cut: cut}
	stop := context.AfterFunc(ctx, cut)
	err := c.login(life, d.config)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cut()
		return nil, fmt.Errorf("connecting to %s: %w", d.config.Address, ended(ctx, err))
	}
	return c, nil
}

// login opens the control connection, which ends with life.
func (c *conn) login(life context.Context, config Config) error {
	tlsConfig := config.tls()
	dialer := network.Dialer{Timeout: config.Timeout}
	raw, err := dialer.DialContext(life, "tcp", config.Address)
	if err != nil {
		return err
	}
	context.AfterFunc(life, func() { _ = raw.Close() })
	if c.control, err = greet(life, raw, config.TLS, tlsConfig); err != nil {
		if unknownCommand(err) {
			err = storagedrivers.WithCause(err, storagedrivers.NoTLS)
		}
		return plainly(config.TLS, err)
	}
	options := []jftp.DialOption{jftp.DialWithDialFunc(c.dialFunc(life, dialer, tlsConfig)), jftp.DialWithWritingMDTM(true)}
	if tlsConfig != nil {
		options = append(options, jftp.DialWithTLS(tlsConfig))
	}
	if c.ftp, err = jftp.Dial(config.Address, options...); err != nil {
		return err
	}
	if err = c.ftp.Login(config.User, config.Password); err != nil {
		err = plainly(config.TLS, fmt.Errorf("logging in as %q: %w", config.User, c.control.said.reply(err)))
		if errors.Is(mapError(err), fs.ErrPermission) {
			err = storagedrivers.WithCause(err, wrongLogin)
		}
		return err
	}
	c.base, err = c.findBase(config.Root)
	return err
}

// dialFunc returns the dial function for the library. Its first call returns the control
// connection, further calls dial data connections. All end with life.
func (c *conn) dialFunc(
	life context.Context, dialer network.Dialer, tlsConfig *tls.Config,
) func(network, address string) (net.Conn, error) {
	control, cut, first := c.control, c.cut, true
	return func(network, address string) (net.Conn, error) {
		if first {
			first = false
			return control, nil
		}
		raw, err := dialer.DialContext(life, network, address)
		if err != nil {
			return nil, err
		}
		return newDataConn(life, raw, tlsConfig, control, cut), nil
	}
}

var errWantsTLS = fmt.Errorf("%w: the server requires TLS: set tls explicit", fs.ErrPermission)

// plainly adds advice if the server refuses connections without TLS. The reply often has the code
// of a server that is temporarily unavailable.
func plainly(mode TLSMode, err error) error {
	reply, ok := errors.AsType[*textproto.Error](err)
	if mode == TLSNone && ok && wantsTLS.MatchString(reply.Msg) {
		return fmt.Errorf("%w: %w", errWantsTLS, err)
	}
	return err
}

var wantsTLS = regexp.MustCompile(`(?i)\b(tls|ssl|encrypt\w*)\b`)

// findBase returns the absolute path of the root, without a slash at its end. With absolute paths
// the start of a key is never an option or a home folder.
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

// alive reports whether an idle connection still answers.
func alive(ctx context.Context, c *conn) bool {
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	return c.run(ctx, c.ping) == nil
}

// hangUp closes a connection.
func hangUp(c *conn) {
	if !c.broken {
		_ = c.ftp.Quit() // politeness; the server may be gone
	}
	c.cut()
}
