package edit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/admin/api"
)

// Off is the address of an admin endpoint that is switched off.
const Off = "off"

const (
	appPath       = "/config/apps/media"
	dialTime      = 5 * time.Second
	readTime      = 10 * time.Second
	writeTime     = 2 * time.Minute // a change provisions the whole configuration
	readAttempts  = 3
	readPause     = 100 * time.Millisecond
	maxConfigSize = 64 << 20
)

var (
	// errChanged says that the configuration is not the one that was read any more.
	errChanged = errors.New("the configuration was changed meanwhile")
	// errUnanswered says that nobody knows whether a change was made.
	errUnanswered = errors.New("the admin endpoint did not answer")
)

// Client reads and writes the configuration of the media app, and no other, through the
// admin endpoint of the Caddy that it runs in.
type Client struct {
	origin string // "http://localhost:2019"
	unix   bool
	http   http.Client
}

// NewClient makes a client for the address of an admin endpoint as Caddy writes them, on
// the loopback interface or a unix socket; empty is Caddy's default. Nothing is dialled.
func NewClient(address string) (*Client, error) {
	parsed, err := caddy.ParseNetworkAddress(cmp.Or(address, caddy.DefaultAdminListen))
	if err != nil {
		return nil, fmt.Errorf("admin address: %w", err)
	}
	c := &Client{unix: parsed.IsUnixNetwork()}
	var dial string
	switch {
	case c.unix:
		// Behind the path the permissions of the socket may stand.
		dial, _, _ = strings.Cut(parsed.Host, "|")
		c.origin = "http://127.0.0.1"
	case parsed.PortRangeSize() != 1 || !strings.HasPrefix(parsed.Network, "tcp"):
		return nil, fmt.Errorf("admin address %q is no single TCP address or unix socket", address)
	default:
		host, ok := loopback(parsed.Host)
		if !ok {
			return nil, fmt.Errorf("admin address %q is on another host: only the loopback interface and unix sockets are used", address)
		}
		one := parsed
		one.Host = host
		dial = one.JoinHostPort(0)
		c.origin = "http://" + parsed.JoinHostPort(0)
	}
	c.http = http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			// Each change ends the endpoint that was asked for it.
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{Timeout: dialTime}).DialContext(ctx, parsed.Network, dial)
			},
		},
	}
	return c, nil
}

// loopback gives the host by which an endpoint is reached from inside; false if that is
// another one. An endpoint on all interfaces is on the loopback interface too.
func loopback(host string) (string, bool) {
	if host == "localhost" || host == "" {
		return "localhost", true
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return "", false
	case ip.IsUnspecified() && ip.Is4():
		return "127.0.0.1", true
	case ip.IsUnspecified():
		return "::1", true
	default:
		return host, ip.IsLoopback()
	}
}

// read gives the configuration of the app, empty if there is none, and its tag.
func (c *Client) read(ctx context.Context) (app object, tag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	for range readAttempts {
		if app, tag, err = c.readOnce(ctx); !errors.Is(err, errUnanswered) {
			return app, tag, err
		}
		select { // a change makes another endpoint, and resets who still waited at the old one
		case <-ctx.Done():
		case <-time.After(readPause):
		}
	}
	return nil, "", err
}

func (c *Client) readOnce(ctx context.Context) (object, string, error) {
	status, header, body, err := c.send(ctx, http.MethodGet, nil, "")
	if err != nil {
		return nil, "", err
	}
	if status != http.StatusOK {
		return nil, "", unusable(status, body)
	}
	app := object{}
	if err := decode(body, &app); err != nil {
		return nil, "", fmt.Errorf("reading the configuration: %w", err)
	}
	if app == nil { // "null": the media app runs with its defaults
		app = object{}
	}
	return app, header.Get("ETag"), nil
}

// write replaces the configuration of the app if it still has the tag. The error is
// errChanged if it has not, errUnanswered, or an [Error] with the reason of Caddy.
func (c *Client) write(ctx context.Context, app object, tag string) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	body, err := json.Marshal(app)
	if err != nil {
		return err
	}
	// POST sets the value of a key that is there as well as of one that is not.
	status, _, answer, err := c.send(ctx, http.MethodPost, body, tag)
	switch {
	case err != nil:
		return err
	case status == http.StatusOK:
		return nil
	case status == http.StatusPreconditionFailed:
		return errChanged
	case status == http.StatusBadRequest || status == http.StatusInternalServerError:
		return refused("", "%s", api.Reason(errorOf(answer)))
	default:
		return unusable(status, answer)
	}
}

func (c *Client) send(ctx context.Context, method string, body []byte, tag string) (int, http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.origin+appPath, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	if !c.unix {
		r.Header.Set("Origin", c.origin)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if tag != "" {
		r.Header.Set("If-Match", tag)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, nil, nil, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxConfigSize))
	if err != nil {
		return 0, nil, nil, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	return resp.StatusCode, resp.Header, answer, nil
}

// unusable is an endpoint that does not do what it is there for.
func unusable(status int, answer []byte) error {
	return &Error{
		Status:  http.StatusBadGateway,
		Message: fmt.Sprintf("Caddy's admin endpoint answers %d: %s", status, errorOf(answer)),
	}
}

// errorOf is the text of an answer of Caddy's that is an error.
func errorOf(answer []byte) string {
	var parsed struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(answer, &parsed) != nil || parsed.Error == "" {
		return "no reason given"
	}
	return parsed.Error
}

// decode reads JSON and leaves numbers as they are written.
func decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(into)
}
