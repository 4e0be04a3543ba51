// Package fetch downloads from untrusted addresses. It is not for the hosts of storages, which
// administrators configure. Begin with [New] and [Client.Get].
//
// Such an address must not reach services that only this machine can reach: its own, its network's,
// the metadata of its cloud. The check applies to the dialled IP address, after name resolution and
// just before the connection, again at every redirect. So a name that resolves differently the next
// time gains nothing.
//
// Requests carry no cookie, credential or referrer, and use no proxy of the environment. One
// connection serves one response, over HTTP/1.1.
package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
)

// Defaults and limits of a download.
const (
	defaultRedirects = 3
	defaultTimeout   = time.Minute

	connectTimeout = 10 * time.Second // for the connection, and again for TLS
	headerTimeout  = 20 * time.Second // from the request to the end of the answer's header
	maxHeader      = 64 << 10
)

// userAgent identifies the service to servers.
const userAgent = "caddymedia"

// Options are the settings of a [Client]. The zero value is safe.
type Options struct {
	// Allow lists non-public addresses that are allowed. An IPv4 prefix is written as such, not
	// inside IPv6.
	Allow []netip.Prefix
	// Ports that may be dialled. None means 80 and 443.
	Ports []uint16
	// MaxRedirects is the number of redirects to follow. 0 means 3, a negative number none.
	MaxRedirects int
	// Timeout of one download, from Get until its body is closed. 0 means a minute.
	Timeout time.Duration

	resolver *net.Resolver  // nil means the system's
	roots    *x509.CertPool // nil means the system's
}

// Client downloads. Its methods are safe for concurrent use.
type Client struct {
	transport *http.Transport
	ports     []uint16
	redirects int
	timeout   time.Duration
}

// Download is a response whose header has arrived. Its Body must be closed.
type Download struct {
	// Name is the file name from the server, else the last segment of the address, else "". It is
	// untrusted: it has no slash, and must be sanitized like a submitted name.
	Name string
	// Body has the bytes; only its reader limits their number. Its errors are *[Error]s. A
	// truncated download is reported if the server announces its end by a length or by chunks.
	Body io.ReadCloser
	// Size in bytes as announced, -1 if unknown.
	Size int64
	// ContentType as announced, which is no evidence of the content.
	ContentType string
}

// New returns a client with these limits.
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

// Get requests an absolute http or https address and follows redirects. The download ends with ctx
// and at the time-out of the client.
//
// The error is an *[Error]. It matches [ErrRefused] if the address, or a redirect from it, may not
// be fetched, or if its host is unknown. A status other than 200 is an error. So is a content
// encoding, since none was requested.
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
	if err := checkResponse(resp); err != nil {
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

// Close releases idle connections. Downloads in progress continue.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// follow follows the redirects and returns the final response with its address.
func (c *Client) follow(ctx context.Context, u *url.URL) (*http.Response, *url.URL, error) {
	for range c.redirects + 1 {
		// Each request is a new one, so that no header from one server reaches the next.
		req := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{
			"Accept": {"*/*"}, "Accept-Encoding": {"identity"}, "User-Agent": {userAgent},
		}}
		resp, err := c.transport.RoundTrip(req.WithContext(ctx))
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

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// checkResponse returns an error unless the response has the whole item, unencoded.
func checkResponse(resp *http.Response) error {
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

// maxName, in bytes, is far above the limit for stored names. So a name that is cut here is still
// refused later.
const maxName = 4 << 10

// name returns the name of a download from its Content-Disposition (filename* before filename),
// else the last segment of its address, percent-decoded once. Both are decoded like submitted
// names.
func name(disposition string, at *url.URL) string {
	var sent string
	if _, params, err := mime.ParseMediaType(disposition); err == nil { // an invalid header is ignored
		sent = params["filename"]
		if extended, found, err := naming.ExtendedName(disposition); found && err == nil {
			sent = extended // mime knows no other character set than UTF-8
		}
	}
	n := cmp.Or(naming.FileNameOf(sent), naming.FileNameOf(at.Path))
	return n[:min(len(n), maxName)]
}

// body is the body of a download. It explains errors, and ends the download when closed.
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

// ErrRefused is matched by the errors of addresses that may not be fetched.
var ErrRefused = errors.New("the address may not be fetched")

// Error is a failed download.
type Error struct {
	// Message is for the caller: a lower-case phrase that names no host, address or path.
	Message string
	// Err is the detail for the log, if any. It may name hosts, never an address with its query.
	Err error
}

// Error returns the message and the detail, for the log.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

// Unwrap returns the detail.
func (e *Error) Unwrap() error { return e.Err }

// refused returns the error for an address that is refused before dialling.
func refused(message string) error { return &Error{Message: message, Err: ErrRefused} }

// failure returns err with a message for the caller. otherwise is the message for unknown errors.
func failure(err error, otherwise string) error {
	var (
		known       *Error
		timeout     net.Error
		certificate *tls.CertificateVerificationError
		connection  *net.OpError
		resolution  *net.DNSError
	)
	message := otherwise
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, ErrRefused):
		message = ErrRefused.Error()
	case errors.As(err, &resolution) && resolution.IsNotFound: // else the caller could find the names of a network
		message, err = ErrRefused.Error(), fmt.Errorf("%w: %w", ErrRefused, err)
	case errors.Is(err, context.Canceled):
		message = "the download was cancelled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		message = "the server took too long"
	case errors.As(err, &certificate):
		message = "the certificate of the server is not valid"
	case errors.As(err, &connection) && connection.Op == "dial":
		message = "the server could not be reached"
	}
	return &Error{Message: message, Err: err}
}
