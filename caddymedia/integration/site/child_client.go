package site

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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// Client is a client of a child that uses one version of HTTP.
type Client struct {
	*http.Client
	Version string
	Base    string // scheme, host and port
}

// insecure accepts the self-signed certificates of a child.
func insecure() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// HTTP1 returns a client with new connections.
func (c *Child) HTTP1() *Client {
	return c.NewClient("HTTP/1.1", "http://"+c.Plain, &http.Transport{MaxIdleConnsPerHost: 64})
}

// HTTP2 returns a client that uses HTTP/2.
func (c *Child) HTTP2() *Client {
	return c.NewClient("HTTP/2.0", "https://"+c.TLS,
		&http.Transport{TLSClientConfig: insecure(), ForceAttemptHTTP2: true})
}

// HTTP3 returns a client that uses HTTP/3.
func (c *Child) HTTP3() *Client {
	return c.NewClient("HTTP/3.0", "https://"+c.TLS, &http3.Transport{TLSClientConfig: insecure()})
}

// NewClient returns a client of the given version and base address. The end of the test closes it.
func (c *Child) NewClient(version, base string, transport http.RoundTripper) *Client {
	client := &Client{&http.Client{Transport: transport, Timeout: 2 * time.Minute}, version, base}
	c.mu.Lock()
	c.opened = append(c.opened, client)
	c.mu.Unlock()
	c.T.Cleanup(func() {
		client.CloseIdleConnections()
		if closer, ok := transport.(io.Closer); ok {
			closer.Close()
		}
	})
	return client
}

// Clients returns one for every version of HTTP that the child supports.
func (c *Child) Clients() []*Client {
	if c.TLS == "" {
		return []*Client{c.HTTP1()}
	}
	return []*Client{c.HTTP1(), c.HTTP2(), c.HTTP3()}
}

// Answer is an answer of any endpoint.
type Answer struct {
	Status     int           `json:"-"`
	RetryAfter string        `json:"-"`
	Took       time.Duration `json:"-"` // of an upload

	Success   bool
	Token     string
	ExpiresAt int64 `json:"expires_at"`
	Message   string
	Result    []struct {
		FullPath string `json:"full_path"`
		Filename string
		Held     string
		WebP     string
		// Renditions are addresses by name.
		Renditions map[string]string
	}
	Errors []struct{ Message, Filename string }
}

// Busy reports whether the answer is a 503 of the documented form with Retry-After.
func (r Answer) Busy() bool {
	seconds, err := strconv.Atoi(r.RetryAfter)
	return r.Status == http.StatusServiceUnavailable && err == nil && seconds > 0 && !r.Success && r.Message != ""
}

func (r Answer) String() string {
	return fmt.Sprintf("%d %q %v", r.Status, r.Message, r.Errors)
}

// Login requests a token for the account of the tests.
func (c *Client) Login(t *testing.T, password string) Answer {
	t.Helper()
	form := url.Values{"api_key": {APIKey}, "password": {password}}
	answer, err := Retry(func() (Answer, error) {
		r, err := c.PostForm(c.Base+"/api/auth/generateToken", form)
		if err != nil {
			return Answer{}, UnansweredError{err}
		}
		defer r.Body.Close()
		return ParseAnswer(r)
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// MustLogin returns a token for the account of the tests.
func (c *Client) MustLogin(t *testing.T) string {
	t.Helper()
	r := c.Login(t, Password)
	if r.Status != http.StatusOK || r.Token == "" {
		t.Fatalf("no token: %v", r)
	}
	return r.Token
}

// StreamBoundary is the boundary in the forms of StreamForm.
const StreamBoundary = "boundary-of-the-tests"

// StreamPart is a file in a form.
type StreamPart struct {
	Name string
	Body io.Reader
}

// StreamForm returns the body of an upload.
func StreamForm(alias string, parts ...StreamPart) io.Reader {
	readers := []io.Reader{strings.NewReader("--" + StreamBoundary +
		"\r\nContent-Disposition: form-data; name=\"alias\"\r\n\r\n" + alias)}
	for _, part := range parts {
		head := "\r\n--" + StreamBoundary + "\r\nContent-Disposition: form-data; name=\"files[]\"; filename=\"" +
			part.Name + "\"\r\nContent-Type: application/octet-stream\r\n\r\n"
		readers = append(readers, strings.NewReader(head), part.Body)
	}
	return io.MultiReader(append(readers, strings.NewReader("\r\n--"+StreamBoundary+"--\r\n"))...)
}

// Upload sends files to a file alias, into its root.
func (c *Client) Upload(ctx context.Context, token, alias string, parts ...StreamPart) (Answer, error) {
	return c.Send(ctx, token, "file", StreamForm(alias, parts...))
}

// UploadImage sends an image to an image alias, into its root.
func (c *Client) UploadImage(t *testing.T, token, alias, name, content string) Answer {
	t.Helper()
	r, err := c.Send(t.Context(), token, "image", StreamForm(alias, StreamPart{name, strings.NewReader(content)}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Send sends a form to the upload endpoint for a kind of items.
func (c *Client) Send(ctx context.Context, token, kind string, body io.Reader) (Answer, error) {
	begin := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Base+"/api/upload/"+kind+"?sub_folder=%2F", body)
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary="+StreamBoundary)
	req.Header["HTTP_SERVICE_API_KEY"] = []string{APIKey}
	req.Header["HTTP_SERVICE_ACCESS_TOKEN"] = []string{token}
	r, err := c.Do(req)
	if err != nil {
		return Answer{}, UnansweredError{err}
	}
	defer r.Body.Close()
	if r.Proto != c.Version {
		return Answer{}, fmt.Errorf("the answer came over %s, not %s", r.Proto, c.Version)
	}
	answer, err := ParseAnswer(r)
	answer.Took = time.Since(begin)
	return answer, err
}

// UnansweredError is the failure of a request before any answer.
type UnansweredError struct{ Err error }

func (e UnansweredError) Error() string { return e.Err.Error() }

func (e UnansweredError) Unwrap() error { return e.Err }

// Retry repeats a request that got no answer. At a reload Caddy closes listeners and idle
// connections, which a client may notice too late.
func Retry[T any](try func() (T, error)) (answer T, err error) {
	for range 3 {
		answer, err = try()
		if _, unanswered := errors.AsType[UnansweredError](err); !unanswered {
			break
		}
	}
	return answer, err
}

// Put uploads one file and returns the answer and the stored name.
func (c *Client) Put(t *testing.T, token, alias, name string, content []byte) (Answer, string) {
	t.Helper()
	r, err := Retry(func() (Answer, error) {
		return c.Upload(t.Context(), token, alias, StreamPart{name, bytes.NewReader(content)})
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != http.StatusOK {
		return r, ""
	}
	return r, r.Result[0].Filename
}

// MustPut is Put, but the upload must succeed.
func (c *Client) MustPut(t *testing.T, token, alias, name string, content []byte) string {
	t.Helper()
	r, stored := c.Put(t, token, alias, name, content)
	if r.Status != http.StatusOK {
		t.Fatalf("uploading %s to %s: %v", name, alias, r)
	}
	return stored
}

// Fetch returns a stored file.
func (c *Client) Fetch(t *testing.T, alias, name string) (status int, content []byte) {
	t.Helper()
	r, err := Retry(func() (*http.Response, error) {
		r, err := c.Get(c.Base + "/static/file/" + alias + "/" + name)
		if err != nil {
			err = UnansweredError{err}
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

// MustFetch expects a stored file to have the content want.
func (c *Client) MustFetch(t *testing.T, alias, name string, want []byte) {
	t.Helper()
	status, got := c.Fetch(t, alias, name)
	if status != http.StatusOK || !bytes.Equal(got, want) {
		t.Errorf("%s of %s over %s: status %d, %d bytes, want the %d bytes that were uploaded",
			name, alias, c.Version, status, len(got), len(want))
	}
}

// ParseAnswer returns the answer of an endpoint.
func ParseAnswer(r *http.Response) (Answer, error) {
	answer := Answer{Status: r.StatusCode, RetryAfter: r.Header.Get("Retry-After")}
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
