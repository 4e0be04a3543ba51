package adminapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// Off is the address of a disabled admin endpoint.
const Off = "off"

var errOff = failf(http.StatusBadGateway,
	"Caddy's admin endpoint is switched off (`admin off`), so the configuration cannot be changed here.")

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
	// errChanged reports that the configuration has changed since it was read.
	errChanged = errors.New("the configuration has changed since it was read")
	// errUnanswered reports that the endpoint did not answer, so a change may or may not have been
	// made.
	errUnanswered = errors.New("the admin endpoint did not answer")
)

// client reads and writes the configuration of the media app, and no other, through the admin
// endpoint of the Caddy process that it runs in.
type client struct {
	origin string // "http://localhost:2019"
	curl   string // a command that prints the configuration of the app
	unix   bool
	http   http.Client
}

// newClient returns a client for the address of an admin endpoint in Caddy's notation, on the
// loopback interface or a unix socket. An empty address is Caddy's default. It opens no connection.
func newClient(address string) (*client, error) {
	parsed, err := caddy.ParseNetworkAddress(cmp.Or(address, caddy.DefaultAdminListen))
	if err != nil {
		return nil, fmt.Errorf("admin address: %w", err)
	}
	c := &client{unix: parsed.IsUnixNetwork()}
	var dial string
	switch {
	case c.unix:
		// The permissions of the socket may follow its path.
		dial, _, _ = strings.Cut(parsed.Host, "|")
		c.origin = "http://127.0.0.1"
		c.curl = "curl -sS --unix-socket " + quoted(dial) + " " + c.origin + appPath
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
		c.curl = "curl -sS " + quoted(dial+appPath)
	}
	c.http = http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			// Each change closes the endpoint that received it.
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{Timeout: dialTime}).DialContext(ctx, parsed.Network, dial)
			},
		},
	}
	return c, nil
}

// quoted returns a word for a shell.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

var plainWord = regexp.MustCompile(`^[\w@%+:,./-]+$`)

// loopback returns the host at which an endpoint is reached locally. It returns false if the
// endpoint is on another host. An endpoint on all interfaces is on the loopback interface too.
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

// read returns the configuration of the app, empty if there is none, and its tag.
func (c *client) read(ctx context.Context) (app object, tag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	for range readAttempts {
		if app, tag, err = c.readOnce(ctx); !errors.Is(err, errUnanswered) {
			return app, tag, err
		}
		select { // a change starts another endpoint and resets the connections to the old one
		case <-ctx.Done():
		case <-time.After(readPause):
		}
	}
	return nil, "", failf(http.StatusBadGateway, "Caddy's admin endpoint cannot be reached: %v", err)
}

func (c *client) readOnce(ctx context.Context) (object, string, error) {
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

// write replaces the configuration of the app if it still has the tag. It returns errChanged if it
// has not, errUnanswered, or a *failure with Caddy's reason.
func (c *client) write(ctx context.Context, app object, tag string) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	body, err := json.Marshal(app)
	if err != nil {
		return err
	}
	// POST sets the value of a key whether or not the key exists.
	status, _, answer, err := c.send(ctx, http.MethodPost, body, tag)
	switch {
	case err != nil:
		return err
	case status == http.StatusOK:
		return nil
	case status == http.StatusPreconditionFailed:
		return errChanged
	case status == http.StatusBadRequest || status == http.StatusInternalServerError:
		return refused("", "%s", reasonOf(errorOf(answer)))
	default:
		return unusable(status, answer)
	}
}

func (c *client) send(ctx context.Context, method string, body []byte, tag string) (int, http.Header, []byte, error) {
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

// unusable returns an error for an unexpected answer of the endpoint.
func unusable(status int, answer []byte) error {
	return failf(http.StatusBadGateway, "Caddy's admin endpoint answers %d: %s", status, errorOf(answer))
}

// errorOf returns the text of an error answer of Caddy.
func errorOf(answer []byte) string {
	var parsed struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(answer, &parsed) != nil || parsed.Error == "" {
		return "no reason given"
	}
	return parsed.Error
}

// syncFile flushes a file and its folder to the disk. It returns no error if there is no such file:
// with `persist_config off` Caddy writes none.
func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0) // Windows flushes for writers only
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Sync(); err != nil || runtime.GOOS == "windows" { // which journals names by itself
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Sync(); !errors.Is(err, syscall.EINVAL) { // a file system without such a sync
		return err
	}
	return nil
}
