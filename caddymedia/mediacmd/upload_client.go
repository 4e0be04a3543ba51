package mediacmd

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// uploadClient is a client for the HTTP API of a media service. It is safe for concurrent use.
type uploadClient struct {
	server           *url.URL
	apiKey, password string
	http             *http.Client
	wait             func(context.Context, time.Duration) error

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
	// busyTries is the number of attempts while the service is busy.
	busyTries = 5
)

// newUploadClient returns a client for the service at an address from [serverAddress].
func newUploadClient(server *url.URL, apiKey, password string) *uploadClient {
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

// upload is the upload of one file.
type upload struct {
	kind             string // the endpoint, "image" or "file"
	alias, subFolder string // empty for the defaults of the service
	file             *os.File
	size             int64
	sent             *sentBytes
}

// uploaded is a stored item in the service's answer.
type uploaded struct {
	FullPath   string            `json:"full_path,omitempty"`
	Filename   string            `json:"filename,omitempty"`
	WebP       string            `json:"webp,omitempty"`
	Renditions map[string]string `json:"renditions,omitempty"`
}

// upload sends a file as a multipart form. After a broken connection it sends the form again under the
// same key, because the item may have been stored.
func (c *uploadClient) upload(ctx context.Context, u upload) (uploaded, error) {
	var form bytes.Buffer // it never fails
	w := multipart.NewWriter(&form)
	for _, field := range [][2]string{{"alias", u.alias}, {"sub_folder", u.subFolder}} {
		if field[1] != "" {
			_ = w.WriteField(field[0], field[1])
		}
	}
	_, _ = w.CreateFormFile("files[]", filepath.Base(u.file.Name()))
	head := form.Len()
	_ = w.Close()
	r := request{
		key: rand.Text(), path: "api/upload/" + u.kind, contentType: w.FormDataContentType(), length: int64(form.Len()) + u.size,
		body: func() io.Reader {
			u.sent.reset()
			file := io.TeeReader(io.NewSectionReader(u.file, 0, u.size), u.sent)
			return io.MultiReader(bytes.NewReader(form.Bytes()[:head]), file, bytes.NewReader(form.Bytes()[head:]))
		},
	}
	var answer struct {
		Success bool
		Result  []uploaded
	}
	err := c.retry(ctx, r, func() error { return c.sendWithToken(ctx, r, &answer) })
	if err == nil && (!answer.Success || len(answer.Result) != 1) {
		err = errNotMedia
	}
	if err != nil {
		return uploaded{}, err
	}
	return answer.Result[0], nil
}

// request is a POST request that can be sent again.
type request struct {
	key               string // the Idempotency-Key; empty for none
	path, contentType string
	length            int64 // of the body
	body              func() io.Reader
}

// sendWithToken sends a request with a token. It renews a rejected token once.
func (c *uploadClient) sendWithToken(ctx context.Context, r request, answer any) error {
	token, err := c.validToken(ctx, "")
	if err != nil {
		return err
	}
	err = c.send(ctx, r, token, answer)
	if statusOf(err) == http.StatusUnauthorized {
		if token, err = c.validToken(ctx, token); err == nil {
			err = c.send(ctx, r, token, answer)
		}
	}
	return err
}

// send sends a request, without credentials if token is empty, and decodes the answer. The error for
// an answer other than success is a *refusedError.
func (c *uploadClient) send(ctx context.Context, r request, token string, answer any) error {
	sent, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.JoinPath(r.path).String(), r.body())
	if err != nil {
		return err
	}
	// The transport sends the body again if the connection turns out to be closed.
	sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(r.body()), nil }
	sent.ContentLength = r.length
	sent.Header.Set("Content-Type", r.contentType)
	if r.key != "" {
		sent.Header.Set("Idempotency-Key", r.key)
	}
	if token != "" { // these names contain no underscore, so every Caddy accepts them
		sent.Header.Set("Service-Api-Key", c.apiKey)
		sent.Header.Set("Service-Access-Token", token)
		sent.Header.Set("Expect", "100-continue") // a large file must not be sent only to be refused
	}
	resp, err := c.http.Do(sent)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	if err != nil {
		if known, ok := errors.AsType[*url.Error](err); ok {
			err = known.Err // without the address, which the user knows
		}
		return fmt.Errorf("sending: %w: %w", errUnanswered, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("reading the answer: %w: %w", errUnanswered, err)
	case resp.StatusCode/100 != 2:
		return &refusedError{resp.StatusCode, resp.Header.Get("Retry-After"), messageOf(resp, body)}
	case json.Unmarshal(body, answer) != nil:
		return errNotMedia
	}
	return nil
}

// errUnanswered means that the service may have carried out a request.
var errUnanswered = errors.New("no answer")

// refusedError is an answer of the service other than success.
type refusedError struct {
	status     int
	retryAfter string
	message    string
}

func (e *refusedError) Error() string { return e.message }

// statusOf returns the status of a *refusedError, and 0 for other errors.
func statusOf(err error) int {
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return refused.status
	}
	return 0
}

var errNotMedia = errors.New("the answer is not that of a media service")

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
	if c.token != rejected || c.loginErr != nil {
		return c.token, c.loginErr
	}
	form := url.Values{"api_key": {c.apiKey}, "password": {c.password}}.Encode()
	r := request{
		path: "api/auth/generateToken", contentType: "application/x-www-form-urlencoded", length: int64(len(form)),
		body: func() io.Reader { return strings.NewReader(form) },
	}
	var answer struct{ Token string }
	err := c.retry(ctx, r, func() error { return c.send(ctx, r, "", &answer) })
	if err == nil && answer.Token == "" {
		err = errNotMedia
	}
	if err != nil {
		c.token, c.loginErr = "", fmt.Errorf("getting a token: %w", err)
	} else {
		c.token = answer.Token
	}
	return c.token, c.loginErr
}

// mayRepeat reports whether a request may be sent again after an error: while the service is busy, and with
// a key also if its outcome is unknown, or while an earlier attempt is under way.
func (r request) mayRepeat(err error) bool {
	refused, ok := errors.AsType[*refusedError](err)
	switch {
	case !ok:
		return r.key != "" && errors.Is(err, errUnanswered)
	case refused.status == http.StatusTooManyRequests, refused.status == http.StatusServiceUnavailable:
		return true
	}
	return r.key != "" && refused.status == http.StatusConflict && refused.retryAfter != ""
}

// retry calls try again while the request may be repeated, after the pause of the Retry-After header.
func (c *uploadClient) retry(ctx context.Context, r request, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if n == busyTries || ctx.Err() != nil || !r.mayRepeat(err) {
			return err
		}
		refused, ok := errors.AsType[*refusedError](err)
		if !ok {
			refused = &refusedError{}
		}
		pause := time.Second << (n - 1)
		if seconds, err := strconv.ParseUint(refused.retryAfter, 10, 31); err == nil {
			pause = time.Duration(seconds) * time.Second
		} else if at, err := http.ParseTime(refused.retryAfter); err == nil {
			pause = max(0, time.Until(at))
		}
		if pause > maxPause {
			return err
		}
		if err := c.wait(ctx, pause); err != nil {
			return err
		}
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
