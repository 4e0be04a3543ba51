package mediacmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// uploadClient is a client for the HTTP API of a media service. It is safe for concurrent use.
type uploadClient struct {
	server *url.URL
	apiKey string
	tokens tokenFile
	// password is called if there is no kept token, or the service rejects it.
	password func(context.Context) (string, error)

	// resumeFrom is the size from which files are sent by resumable uploads; 0 is never.
	resumeFrom int64
	states     uploadStates

	http *http.Client
	now  func() time.Time
	wait func(context.Context, time.Duration) error

	mu      sync.Mutex
	token   string // empty: none yet
	refused error  // why there will be no other

	offersMu sync.Mutex
	offers   map[string]bool // resumable uploads, by kind
}

// The names of these headers contain no underscore, so every Caddy accepts them.
const (
	headerKey   = "Service-Api-Key"
	headerToken = "Service-Access-Token"
)

// newUploadClient returns a client for the service at an address from [serverAddress].
func newUploadClient(server *url.URL, apiKey string, password func(context.Context) (string, error)) *uploadClient {
	transport := http.DefaultTransport.(*http.Transport).Clone() // it is one
	transport.ResponseHeaderTimeout = answerTime
	return &uploadClient{
		server: server, apiKey: apiKey, password: password,
		tokens: newTokenFile(server.String(), apiKey), resumeFrom: resumeFrom, states: newUploadStates(),
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		now:  time.Now, //nolint:forbidigo // the clock's one default
		wait: sleep,
	}
}

// answerTime is the time limit for the answer after the last byte. The service checks the items,
// makes variants and transfers them to the storage, which may be slow.
const answerTime = 15 * time.Minute

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// serverAddress parses the address of a service. Unless insecure is true, it refuses plain HTTP to
// another host, because the password could be read on the way.
func serverAddress(address string, insecure bool) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("--server is an address like https://media.example.com")
	}
	if u.Scheme == "http" && !insecure && !isLoopback(u.Hostname()) {
		return nil, errors.New("the password would go over plain HTTP to another host: " +
			"use https, or --insecure-http where no one else can listen")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// refusedError is an answer of the service other than success.
type refusedError struct {
	status     int
	message    string
	retryAfter string // the header
}

func (e *refusedError) Error() string { return e.message }

// maxAnswer is the maximum size of an answer in bytes.
const maxAnswer = 1 << 20

// send sends a request and decodes the answer. It returns a *refusedError for an answer other than
// success.
func (c *uploadClient) send(r *http.Request, into any) error {
	resp, err := c.http.Do(r) //nolint:gosec // the user names the address
	if err != nil {
		return sendingError(r.Context(), err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return &refusedError{resp.StatusCode, messageOf(resp, body), resp.Header.Get("Retry-After")}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return notOfTheService()
	}
	return nil
}

// sendingError returns the error of a request without an answer.
func sendingError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if known, ok := errors.AsType[*url.Error](err); ok {
		err = known.Err // without the address, which everybody knows
	}
	return fmt.Errorf("sending: %w", err)
}

// messageOf returns the message of an answer other than success.
func messageOf(resp *http.Response, body []byte) string {
	var answer struct {
		Message string
		Errors  []struct{ Message string }
	}
	if json.Unmarshal(body, &answer) == nil {
		if len(answer.Errors) > 0 {
			answer.Message = answer.Errors[0].Message
		}
		if answer.Message != "" {
			return printable(answer.Message)
		}
	}
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode/100 == 3 {
		return fmt.Sprintf("the service is at another address: %d, %s", resp.StatusCode, printable(to))
	}
	return fmt.Sprintf("the server answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
}
