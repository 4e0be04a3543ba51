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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// uploadClient is a client for the HTTP API of a media service. It is safe for concurrent use.
type uploadClient struct {
	server *url.URL
	apiKey string
	// password is called for the first token, and if the service rejects a token.
	password func(context.Context) (string, error)
	http     *http.Client
	wait     func(context.Context, time.Duration) error

	mu       sync.Mutex
	token    string // empty: none yet
	loginErr error  // why there will be no other
}

const (
	// answerTime is the time limit for the answer after the last byte. The service checks the items,
	// makes variants and transfers them to the storage, which may be slow.
	answerTime = 15 * time.Minute
	maxAnswer  = 1 << 20 // bytes
	// maxPause is the longest pause that the client accepts from the service.
	maxPause = 2 * time.Minute
	// busyTries is the number of attempts while the service is busy, and resumeTries that of a
	// resumable upload without progress.
	busyTries, resumeTries = 5, 8
)

// newUploadClient returns a client for the service at an address from [serverAddress].
func newUploadClient(server *url.URL, apiKey string, password func(context.Context) (string, error)) *uploadClient {
	transport := http.DefaultTransport.(*http.Transport).Clone() // it is one
	transport.ResponseHeaderTimeout = answerTime
	return &uploadClient{
		server: server, apiKey: apiKey, password: password,
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		wait: func(ctx context.Context, d time.Duration) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(d):
				return nil
			}
		},
	}
}

// request is a request that can be sent again.
type request struct {
	method, address string
	header          map[string]string
	body            func() io.Reader // nil: none
	length          int64            // of the body
}

// send sends a request with a token, and returns the header and body of a successful answer. It
// renews a rejected token once.
func (c *uploadClient) send(ctx context.Context, r request) (http.Header, []byte, error) {
	token, err := c.validToken(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	header, body, err := c.sendOnce(ctx, r, token)
	if statusOf(err) == http.StatusUnauthorized {
		if token, err = c.validToken(ctx, token); err == nil {
			header, body, err = c.sendOnce(ctx, r, token)
		}
	}
	return header, body, err
}

// sendOnce sends a request, without credentials if token is empty. The error for an answer other than
// success is a *refusedError.
func (c *uploadClient) sendOnce(ctx context.Context, r request, token string) (http.Header, []byte, error) {
	sent, err := http.NewRequestWithContext(ctx, r.method, r.address, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	if r.body != nil {
		// The transport sends the body again if the connection turns out to be closed.
		sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(r.body()), nil }
		sent.Body, sent.ContentLength = io.NopCloser(r.body()), r.length
	}
	for name, value := range r.header {
		sent.Header.Set(name, value)
	}
	if token != "" { // these names contain no underscore, so every Caddy accepts them
		sent.Header.Set("Service-Api-Key", c.apiKey)
		sent.Header.Set("Service-Access-Token", token)
	}
	answer, err := c.http.Do(sent)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, nil, cause
	}
	if err != nil {
		if known, ok := errors.AsType[*url.Error](err); ok {
			err = known.Err // without the address, which the user knows
		}
		return nil, nil, fmt.Errorf("sending: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the answer: %w", err)
	}
	if answer.StatusCode/100 != 2 {
		return nil, nil, &refusedError{answer.StatusCode, answer.Header, messageOf(answer, body)}
	}
	return answer.Header, body, nil
}

// refusedError is an answer of the service other than success.
type refusedError struct {
	status  int
	header  http.Header
	message string
}

func (e *refusedError) Error() string { return e.message }

// statusOf returns the status of a *refusedError, and 0 for other errors.
func statusOf(err error) int {
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return refused.status
	}
	return 0
}

// Errors that are not worth another attempt.
var (
	errNotMedia   = errors.New("the answer is not that of a media service")
	errNotOffered = errors.New("the service has no resumable uploads")
	errLogin      = errors.New("getting a token")
	errChanged    = errors.New("the file has changed while it was sent: upload it again")
)

// messageOf returns the message of an answer other than success.
func messageOf(answer *http.Response, body []byte) string {
	var document struct {
		Message string
		Errors  []struct{ Message string }
	}
	if json.Unmarshal(body, &document) == nil {
		if len(document.Errors) > 0 {
			document.Message = document.Errors[0].Message
		}
		if document.Message != "" {
			return printable(document.Message)
		}
	}
	if to := answer.Header.Get("Location"); to != "" && answer.StatusCode/100 == 3 {
		return fmt.Sprintf("the service is at another address: %d, %s", answer.StatusCode, printable(to))
	}
	return fmt.Sprintf("the server answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
}

// validToken returns a token other than the rejected one, which may be empty. Several uploads share
// one. It does not repeat a refused login, because the service limits failed logins.
func (c *uploadClient) validToken(ctx context.Context, rejected string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != rejected {
		return c.token, nil
	}
	if c.loginErr == nil {
		token, err := c.login(ctx)
		if err == nil {
			c.token = token
			return token, nil
		}
		c.loginErr = fmt.Errorf("%w: %w", errLogin, err)
	}
	return "", c.loginErr
}

func (c *uploadClient) login(ctx context.Context) (string, error) {
	password, err := c.password(ctx)
	if err != nil {
		return "", err
	}
	form := url.Values{"api_key": {c.apiKey}, "password": {password}}.Encode()
	var answer struct{ Token string }
	err = c.retry(ctx, busyTries, isBusy, func() (bool, error) {
		_, body, err := c.sendOnce(ctx, request{
			method: http.MethodPost, address: c.server.JoinPath("api/auth/generateToken").String(),
			header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
			body:   func() io.Reader { return strings.NewReader(form) }, length: int64(len(form)),
		}, "")
		if err == nil && (json.Unmarshal(body, &answer) != nil || answer.Token == "") {
			err = errNotMedia
		}
		return false, err
	})
	return answer.Token, err
}

// retry repeats try after errors that mayRepeat accepts: up to a number of tries without progress, and
// after the pause of the Retry-After header.
func (c *uploadClient) retry(
	ctx context.Context, tries int, mayRepeat func(error) bool, try func() (progress bool, err error),
) error {
	for n := 1; ; n++ {
		progress, err := try()
		if progress {
			n = 1
		}
		if err == nil || n == tries || ctx.Err() != nil || !mayRepeat(err) {
			return err
		}
		pause := time.Second << (n - 1)
		if refused, ok := errors.AsType[*refusedError](err); ok {
			retryAfter := refused.header.Get("Retry-After")
			if seconds, err := strconv.ParseUint(retryAfter, 10, 31); err == nil {
				pause = time.Duration(seconds) * time.Second
			} else if at, err := http.ParseTime(retryAfter); err == nil {
				pause = max(0, time.Until(at))
			}
		}
		if pause > maxPause {
			return err
		}
		if err := c.wait(ctx, pause); err != nil {
			return err
		}
	}
}

// isBusy reports whether the service has refused a request before it stored anything.
func isBusy(err error) bool {
	status := statusOf(err)
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// isTemporary reports whether a resumable upload can be continued after an error: a connection that
// broke, a server that restarts, another offset, or a busy service.
func isTemporary(err error) bool {
	switch status := statusOf(err); status {
	case 0:
		final := []error{errNotMedia, errNotOffered, errLogin, errChanged}
		return !slices.ContainsFunc(final, func(one error) bool { return errors.Is(err, one) })
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusLocked, http.StatusTooManyRequests:
		return true
	default:
		return status >= http.StatusInternalServerError && status != http.StatusInsufficientStorage
	}
}

// serverAddress parses the address of a service. Unless insecure is true, it refuses plain HTTP to
// another host, because the password could be read on the way.
func serverAddress(address string, insecure bool) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("--server must be an address such as https://media.example.com")
	}
	ip := net.ParseIP(u.Hostname())
	if isLoopback := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback(); u.Scheme == "http" && !insecure && !isLoopback {
		return nil, errors.New("the password would be sent over plain HTTP to another host: " +
			"use https, or --insecure-http in a trusted network")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}
