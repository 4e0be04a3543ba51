package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// childClient is a client of a child that uses one version of HTTP.
type childClient struct {
	*http.Client
	version string
	base    string // scheme, host and port
}

// insecure accepts the self-signed certificates of a child.
func insecure() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// http1 returns a client with new connections.
func (c *child) http1() *childClient {
	return c.newClient("HTTP/1.1", "http://"+c.plain, &http.Transport{MaxIdleConnsPerHost: 64})
}

func (c *child) http2() *childClient {
	return c.newClient("HTTP/2.0", "https://"+c.tls,
		&http.Transport{TLSClientConfig: insecure(), ForceAttemptHTTP2: true})
}

func (c *child) http3() *childClient {
	return c.newClient("HTTP/3.0", "https://"+c.tls, &http3.Transport{TLSClientConfig: insecure()})
}

func (c *child) newClient(version, base string, transport http.RoundTripper) *childClient {
	client := &childClient{&http.Client{Transport: transport, Timeout: 2 * time.Minute}, version, base}
	c.opened = append(c.opened, client)
	c.t.Cleanup(func() {
		client.CloseIdleConnections()
		if closer, ok := transport.(io.Closer); ok {
			closer.Close()
		}
	})
	return client
}

// clients returns one for every version of HTTP that the child supports.
func (c *child) clients() []*childClient {
	if c.tls == "" {
		return []*childClient{c.http1()}
	}
	return []*childClient{c.http1(), c.http2(), c.http3()}
}

// childReply is an answer of any endpoint.
type childReply struct {
	status    int
	Success   bool
	Token     string
	ExpiresAt int64 `json:"expires_at"`
	Message   string
	Result    []struct {
		FullPath string `json:"full_path"`
		Filename string
		WebP     string
	}
	Errors []struct{ Message, Filename string }
}

func (r childReply) String() string {
	return fmt.Sprintf("%d %q %v", r.status, r.Message, r.Errors)
}

// login requests a token for the account of the tests.
func (c *childClient) login(t *testing.T, password string) childReply {
	t.Helper()
	form := url.Values{"api_key": {apiKey}, "password": {password}}
	answer, err := again(func() (childReply, error) {
		r, err := c.PostForm(c.base+"/api/auth/generateToken", form)
		if err != nil {
			return childReply{}, unansweredError{err}
		}
		defer r.Body.Close()
		return parseChildReply(r)
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// mustLogin returns a token for the account of the tests.
func (c *childClient) mustLogin(t *testing.T) string {
	t.Helper()
	r := c.login(t, password)
	if r.status != http.StatusOK || r.Token == "" {
		t.Fatalf("no token: %v", r)
	}
	return r.Token
}

const childBoundary = "boundary-of-the-tests"

// childPart is a file in a form.
type childPart struct {
	name string
	body io.Reader
}

// childForm returns the body of an upload.
func childForm(alias string, parts ...childPart) io.Reader {
	readers := []io.Reader{strings.NewReader("--" + childBoundary +
		"\r\nContent-Disposition: form-data; name=\"alias\"\r\n\r\n" + alias)}
	for _, part := range parts {
		head := "\r\n--" + childBoundary + "\r\nContent-Disposition: form-data; name=\"files[]\"; filename=\"" +
			part.name + "\"\r\nContent-Type: application/octet-stream\r\n\r\n"
		readers = append(readers, strings.NewReader(head), part.body)
	}
	return io.MultiReader(append(readers, strings.NewReader("\r\n--"+childBoundary+"--\r\n"))...)
}

// upload sends files to a file alias, into its root.
func (c *childClient) upload(ctx context.Context, token, alias string, parts ...childPart) (childReply, error) {
	return c.send(ctx, token, childForm(alias, parts...))
}

func (c *childClient) send(ctx context.Context, token string, body io.Reader) (childReply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/api/upload/file?sub_folder=%2F", body)
	if err != nil {
		return childReply{}, err
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary="+childBoundary)
	req.Header["HTTP_SERVICE_API_KEY"] = []string{apiKey}
	req.Header["HTTP_SERVICE_ACCESS_TOKEN"] = []string{token}
	r, err := c.Do(req)
	if err != nil {
		return childReply{}, unansweredError{err}
	}
	defer r.Body.Close()
	if r.Proto != c.version {
		return childReply{}, fmt.Errorf("the answer came over %s, not %s", r.Proto, c.version)
	}
	return parseChildReply(r)
}

// unansweredError is the failure of a request before any answer.
type unansweredError struct{ error }

func (e unansweredError) Unwrap() error { return e.error }

// again repeats a request that got no answer. At a reload Caddy closes listeners and idle
// connections, which a client may notice too late.
func again[T any](try func() (T, error)) (answer T, err error) {
	for range 3 {
		answer, err = try()
		if _, unanswered := errors.AsType[unansweredError](err); !unanswered {
			break
		}
	}
	return answer, err
}

// put uploads one file and returns the answer and the stored name.
func (c *childClient) put(t *testing.T, token, alias, name string, content []byte) (childReply, string) {
	t.Helper()
	r, err := again(func() (childReply, error) {
		return c.upload(t.Context(), token, alias, childPart{name, bytes.NewReader(content)})
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.status != http.StatusOK {
		return r, ""
	}
	return r, r.Result[0].Filename
}

// mustPut is put, but the upload must succeed.
func (c *childClient) mustPut(t *testing.T, token, alias, name string, content []byte) string {
	t.Helper()
	r, stored := c.put(t, token, alias, name, content)
	if r.status != http.StatusOK {
		t.Fatalf("uploading %s to %s: %v", name, alias, r)
	}
	return stored
}

// fetch returns a stored file.
func (c *childClient) fetch(t *testing.T, alias, name string) (status int, content []byte) {
	t.Helper()
	r, err := again(func() (*http.Response, error) {
		r, err := c.Get(c.base + "/static/file/" + alias + "/" + name)
		if err != nil {
			err = unansweredError{err}
		}
		return r, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	content, err = io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, content
}

// mustFetch expects a stored file to have the content want.
func (c *childClient) mustFetch(t *testing.T, alias, name string, want []byte) {
	t.Helper()
	status, got := c.fetch(t, alias, name)
	if status != http.StatusOK || !bytes.Equal(got, want) {
		t.Errorf("%s of %s over %s: status %d, %d bytes, want the %d bytes that were uploaded",
			name, alias, c.version, status, len(got), len(want))
	}
}

func parseChildReply(r *http.Response) (childReply, error) {
	answer := childReply{status: r.StatusCode}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return answer, fmt.Errorf("status %d with %q: %w", r.StatusCode, b, err)
	}
	if len(answer.Errors) > 0 {
		answer.Message = answer.Errors[0].Message
	}
	return answer, nil
}
