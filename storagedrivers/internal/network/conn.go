// Package network opens connections to storage hosts that never block for ever, and identifies the
// errors of hosts that cannot be reached.
package network

import (
	"context"
	"net"
	"net/http"
	"time"
)

// DefaultTimeout is how long a host may stay silent by default.
const DefaultTimeout = 30 * time.Second

// maxDial bounds connecting, even if the configured time-out is longer.
const maxDial = 10 * time.Second

// Dialer opens connections. The zero value is usable.
type Dialer struct {
	// Timeout is how long a connection may transfer no byte in either direction during a read or
	// write, which then fails with os.ErrDeadlineExceeded. 0 is DefaultTimeout.
	Timeout time.Duration
}

// DialContext opens a connection, as for http.Transport.
func (d Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	timeout := d.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	dialer := net.Dialer{Timeout: min(timeout, maxDial), KeepAlive: 15 * time.Second}
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: raw, timeout: timeout}, nil
}

// conn is a connection whose deadline is extended by every read and write. Both share it: waiting
// for the response to a large upload lasts as long as the upload makes progress.
type conn struct {
	net.Conn
	timeout time.Duration
}

func (c *conn) Read(b []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *conn) Write(b []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *conn) extend() error {
	return c.SetDeadline(time.Now().Add(c.timeout)) //nolint:forbidigo // the operating system's clock counts
}

// CloseWrite closes the connection for writing; reading continues.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// Transport returns the HTTP transport of an object store. It speaks HTTP/1.1, so that a stuck
// connection blocks one request, and uses the proxies of the environment (HTTPS_PROXY and the
// like).
func Transport(timeout time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         Dialer{Timeout: timeout}.DialContext,
		TLSHandshakeTimeout: maxDial,
		MaxIdleConns:        128,
		MaxIdleConnsPerHost: 64,
		WriteBufferSize:     64 << 10,
		ReadBufferSize:      64 << 10,
		DisableCompression:  true, // an object is its bytes
	}
}
