// Package network opens connections to storage hosts that never block for ever, and identifies the
// errors of hosts that cannot be reached. It guards no addresses: those of untrusted callers are
// for package fetch. Begin with [Dialer] and, for HTTP, [Transport].
package network

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
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

// Unreachable reports whether err means that a host could not be reached, or that its connection
// broke: no such name, refused, reset, cut, timed out. The end of the caller's context does not
// count, nor does an untrusted certificate.
//
// A driver must first check the source's own error: io.ErrUnexpectedEOF may come from either.
func Unreachable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	for _, fault := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrDeadlineExceeded,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT,
	} {
		if errors.Is(err, fault) {
			return true
		}
	}
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		return true
	}
	var opErr *net.OpError
	var dnsErr *net.DNSError
	return errors.As(err, &dnsErr) || errors.As(err, &opErr) && opErr.Op == "dial"
}

// Silent reports whether err is the time-out of a silent host, including dialling. The deadline of
// a caller does not count, unless os.ErrDeadlineExceeded is its cause.
func Silent(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var netErr net.Error
	if !errors.As(err, &netErr) || !netErr.Timeout() {
		return false
	}
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial" || !errors.Is(err, context.DeadlineExceeded)
}

// Host returns the host of an address, and its port unless that is one of defaults, in one
// spelling: lower case, without a dot at the end, IP addresses in their shortest form.
func Host(address string, defaults ...string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), ""
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	if port == "" || slices.Contains(defaults, port) {
		return host
	}
	return net.JoinHostPort(host, port)
}

// ServiceHost is [Host] for the URL of a service. It includes the path, but not the scheme.
func ServiceHost(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	host, path, _ := strings.Cut(rest, "/")
	return strings.TrimRight(Host(host, "80", "443")+"/"+path, "/")
}

// WithoutScheme returns a URL without its scheme, for display.
func WithoutScheme(address string) string {
	return strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://")
}

// Login returns the folder of a user on a host, for display: "user@host ~/folder".
func Login(user, address, root string) string {
	where := address
	if user != "" {
		where = user + "@" + address
	}
	switch {
	case root == "":
		return where
	case strings.HasPrefix(root, "/"):
		return where + " " + root
	}
	return where + " ~/" + root
}

// greetings are the first bytes of servers that begin to speak, or answer bytes that they do not
// understand.
var greetings = []struct{ start, server string }{
	{"SSH-", "an SSH server"},
	{"HTTP", "a web server"},
	{"220 ", "an FTP or mail server"},
	{"220-", "an FTP or mail server"},
	{"+OK ", "a mail server"},
	{"* OK", "a mail server"},
	{"\x15\x03", "a server with TLS"},
	{"\x16\x03", "a server with TLS"},
}

// GreetingSize is how many bytes [Greeter] needs.
const GreetingSize = 4

// Greeter returns the kind of the server that begins with some bytes, with its article; empty if it
// is not known.
func Greeter(start []byte) string {
	for _, g := range greetings {
		if strings.HasPrefix(string(start), g.start) {
			return g.server
		}
	}
	return ""
}
