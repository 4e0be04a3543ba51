package mediacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeService imitates a media service. It answers with the prepared refusals first.
type fakeService struct {
	*httptest.Server

	mu      sync.Mutex
	valid   string                        // the token that is taken
	logins  int                           // up to now
	refuse  map[string][]http.HandlerFunc // by path, the next first
	forms   []*multipart.Form             // of uploads that were taken
	uploads []*http.Request               // also those that were refused
}

func newFakeService(t *testing.T) *fakeService {
	t.Helper()
	f := &fakeService{refuse: map[string][]http.HandlerFunc{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/api/upload/") {
		f.uploads = append(f.uploads, r)
	} else if r.FormValue("password") != "" {
		f.logins++
	}
	if next := f.refuse[r.URL.Path]; len(next) > 0 {
		f.refuse[r.URL.Path] = next[1:]
		next[0](w, r)
		return
	}
	if r.URL.Path == "/api/auth/generateToken" {
		f.logIn(w, r)
	} else {
		f.upload(w, r)
	}
}

func (f *fakeService) logIn(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("api_key") != "site" || r.FormValue("password") != "secret" {
		answering(http.StatusUnauthorized, `{"success":false,"message":"wrong API key or password"}`)(w, r)
		return
	}
	f.valid = fmt.Sprintf("token-%d", f.logins)
	fmt.Fprintf(w, `{"success":true,"token":%q,"expires_at":1}`, f.valid)
}

func (f *fakeService) upload(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Service-Api-Key") != "site" || r.Header.Get("Service-Access-Token") != f.valid {
		answering(http.StatusUnauthorized, `{"success":false,"errors":[{"message":"expired","filename":""}]}`)(w, r)
		return
	}
	if err := r.ParseMultipartForm(1 << 20); err != nil {
		answering(http.StatusBadRequest, `{}`)(w, r)
		return
	}
	f.forms = append(f.forms, r.MultipartForm)
	io.WriteString(w, `{"success":true,"result":[{"full_path":"https://cdn/a.png","filename":"a.png","webp":"https://cdn/a.png.webp"}]}`)
}

// answering returns a handler with a fixed answer. headers are alternating names and values.
func answering(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func busy(retryAfter string) http.HandlerFunc {
	return answering(http.StatusServiceUnavailable, `{"errors":[{"message":"busy"}]}`, "Retry-After", retryAfter)
}

// testClient is a client that never waits.
type testClient struct {
	*uploadClient
	waits []time.Duration
}

// client returns a client of the service.
func (f *fakeService) client(t *testing.T) *testClient {
	t.Helper()
	server, err := serverAddress(f.URL, false)
	if err != nil {
		t.Fatal(err)
	}
	c := &testClient{uploadClient: newUploadClient(server, "site", "secret")}
	c.wait = func(_ context.Context, d time.Duration) error {
		c.waits = append(c.waits, d)
		return nil
	}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// send uploads a file, and returns the number of its bytes that were counted.
func (c *testClient) send(t *testing.T, path string, u upload) (uploaded, int64, error) {
	t.Helper()
	var err error
	if u.file, err = os.Open(path); err != nil {
		t.Fatal(err)
	}
	defer u.file.Close()
	stat, err := u.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	u.size, u.sent = stat.Size(), &sentBytes{bar: new(bar)}
	item, err := c.upload(t.Context(), u)
	return item, u.sent.n.Load(), err
}

// sendFile uploads a small file.
func (c *testClient) sendFile(t *testing.T) error {
	t.Helper()
	_, _, err := c.send(t, aFile(t, "a.txt", "0123456789"), upload{kind: "file"})
	return err
}

// aFile creates a file to upload.
func aFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantRefused(t *testing.T, err error, status int, message string) {
	t.Helper()
	var refused *refusedError
	if !errors.As(err, &refused) || refused.status != status || !strings.Contains(refused.message, message) {
		t.Errorf("error %v, want %d %s", err, status, message)
	}
}
