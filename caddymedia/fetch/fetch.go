// Package fetch downloads from addresses that a stranger may have chosen.
//
// Such an address must not reach what only this machine can reach: its own services, its network, the metadata of
// its cloud. What is checked is the address that is dialled, after the name was resolved and just before the
// connection is made, at every redirect anew; so a name that answers differently the next time gains nothing.
//
// Nothing of this machine goes along: no cookie, no credential, no referrer, no proxy of the environment. One
// connection serves one answer, over HTTP/1.1.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Defaults and limits of a download.
const (
	defaultRedirects = 3
	defaultTimeout   = time.Minute

	connectTimeout = 10 * time.Second // for the connection, and again for TLS
	headerTimeout  = 20 * time.Second // from the request to the end of the answer's header
	maxHeader      = 64 << 10
)

// userAgent is what servers see of the service.
const userAgent = "caddymedia"

// Options are the limits of a [Client]. The zero value is safe.
type Options struct {
	// Allow opens addresses that are not public. An IPv4 prefix is given as such, not inside IPv6.
	Allow []netip.Prefix
	// Ports that may be dialled, none: 80 and 443.
	Ports []uint16
	// MaxRedirects that are followed, 0: 3, below 0: none.
	MaxRedirects int
	// Timeout of one download, from Get until its body is closed, 0: a minute.
	Timeout time.Duration

	resolver *net.Resolver  // nil: the system's
	roots    *x509.CertPool // nil: the system's
}

// Client downloads. Its methods are safe for concurrent use.
type Client struct {
	transport *http.Transport
	ports     []uint16
	redirects int
	timeout   time.Duration
}

// Download is an answer whose header has arrived. Its Body must be closed.
type Download struct {
	// Name that the server gave, or the last segment of the address; "" without either. It is as untrusted as
	// anything else of the server: it has no slash, and is to be sanitized like a submitted name.
	Name string
	// Body has the bytes; how many, only its reader bounds. An error of it is an *[Error]: a download that was
	// cut off looks like one that has ended only where the server announces no end, neither by a length nor by
	// chunks.
	Body io.ReadCloser
	// Size in bytes as announced, -1 where it was not.
	Size int64
	// ContentType as announced, which says nothing about the content.
	ContentType string
}

// New gives a client within the limits of the options.
func New(o Options) *Client {
	if len(o.Ports) == 0 {
		o.Ports = []uint16{80, 443}
	}
	if o.MaxRedirects == 0 {
		o.MaxRedirects = defaultRedirects
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	dialer := &net.Dialer{
		Timeout:        connectTimeout,
		Resolver:       o.resolver,
		ControlContext: newGuard(o.Allow, o.Ports).control,
	}
	return &Client{
		transport: &http.Transport{
			DialContext:            dialer.DialContext, // and no Proxy: it would dial for us, unchecked
			TLSClientConfig:        &tls.Config{RootCAs: o.roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    connectTimeout,
			ResponseHeaderTimeout:  headerTimeout,
			MaxResponseHeaderBytes: maxHeader,
			DisableKeepAlives:      true,
			DisableCompression:     true,
		},
		ports:     slices.Clone(o.Ports),
		redirects: max(o.MaxRedirects, 0),
		timeout:   o.Timeout,
	}
}

// Get asks for an absolute http or https address and follows its redirects. The download ends with the context, and
// with the time-out of the client.
//
// The error is an *[Error]; it matches [ErrRefused] where the address, or one that it led to, may not be fetched. Any
// answer but 200 is an error, and so is one in a content encoding, which was not asked for.
func (c *Client) Get(ctx context.Context, address string) (*Download, error) {
	u, err := parse(&url.URL{}, address, c.ports)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	resp, at, err := c.follow(ctx, u)
	if err != nil {
		cancel()
		return nil, failure(err, "the server gave no proper answer")
	}
	if err := usable(resp); err != nil {
		_ = resp.Body.Close()
		cancel()
		return nil, err
	}
	return &Download{
		Name:        name(resp.Header.Get("Content-Disposition"), at),
		Body:        &body{ReadCloser: resp.Body, cancel: cancel},
		Size:        resp.ContentLength,
		ContentType: resp.Header.Get("Content-Type"),
	}, nil
}

// Close releases what the client holds. Downloads that have begun go on.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// follow gives the answer at the end of the redirects, and the address that gave it.
func (c *Client) follow(ctx context.Context, u *url.URL) (*http.Response, *url.URL, error) {
	for range c.redirects + 1 {
		resp, err := c.transport.RoundTrip(request(ctx, u))
		if err != nil {
			return nil, nil, err
		}
		location := resp.Header.Get("Location")
		if location == "" || !redirects(resp.StatusCode) {
			return resp, u, nil
		}
		_ = resp.Body.Close()
		if u, err = parse(u, location, c.ports); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, &Error{Message: "the address redirects too often"}
}

// request is made anew for every address, so that nothing of one server goes to the next.
func request(ctx context.Context, u *url.URL) *http.Request {
	req := &http.Request{
		Method: http.MethodGet,
		URL:    u,
		Header: http.Header{
			"Accept":          {"*/*"},
			"Accept-Encoding": {"identity"},
			"User-Agent":      {userAgent},
		},
	}
	return req.WithContext(ctx)
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// usable says whether an answer has the item, whole and as it is.
func usable(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return &Error{Message: fmt.Sprintf("the server answered %d", resp.StatusCode)}
	}
	for _, coding := range resp.Header.Values("Content-Encoding") {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return &Error{Message: "the server sent the item compressed, which was not asked for"}
		}
	}
	return nil
}

// body is that of a download: its errors are told plainly, and closing it ends the download.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // only io.EOF itself is the end
		err = failure(err, "the server broke off the download")
	}
	return n, err
}

func (b *body) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}
