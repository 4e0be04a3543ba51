package site

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Case is a request and its expected answer.
type Case struct {
	Name   string
	Method string // GET if empty
	Path   string // with the query, as sent
	Header http.Header
	Body   string

	WantStatus int
	WantHeader map[string]string // "" is a header that must be absent
	WantBody   string            // the whole body, if not empty
}

// Check sends the request of the case and checks the answer.
func (c Case) Check(t *testing.T, s *Site) {
	t.Helper()
	r := s.Do(t, c.Method, c.Path, c.Header, c.Body)
	if r.Status != c.WantStatus {
		t.Errorf("status %d, want %d; body %q", r.Status, c.WantStatus, r.Body)
	}
	for name, want := range c.WantHeader {
		if got := r.Header.Get(name); got != want {
			t.Errorf("header %s: %q, want %q", name, got, want)
		}
	}
	if c.WantBody != "" && r.Body != c.WantBody {
		t.Errorf("body %q, want %q", r.Body, c.WantBody)
	}
}

// CheckAll checks every case in a subtest.
func CheckAll(t *testing.T, s *Site, cases []Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { c.Check(t, s) })
	}
}

// Reply is an answer that was read to its end.
type Reply struct {
	Status int
	Proto  string
	Header http.Header
	Body   string
}

// Do sends a request and returns its answer.
func (s *Site) Do(t *testing.T, method, path string, header http.Header, body string) *Reply {
	t.Helper()
	return s.Send(t, s.Client, s.Request(t, method, path, header, strings.NewReader(body)))
}

// Get fetches a path. header are names and values in turn.
func (s *Site) Get(t *testing.T, path string, header ...string) *Reply {
	t.Helper()
	return s.Do(t, http.MethodGet, path, Headers(header...), "")
}

// Headers returns a header from pairs of name and value. The names are sent unchanged.
func Headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
	}
	return h
}

// Merged returns the union of headers.
func Merged(all ...http.Header) http.Header {
	h := http.Header{}
	for _, one := range all {
		for name, values := range one {
			h[name] = append(h[name], values...)
		}
	}
	return h
}

// Request returns a request to the site.
func (s *Site) Request(t *testing.T, method, path string, header http.Header, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	return r
}

// Send sends a request with the client and reads the answer.
func (s *Site) Send(t *testing.T, client *http.Client, r *http.Request) *Reply {
	t.Helper()
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return &Reply{resp.StatusCode, resp.Proto, resp.Header, string(body)}
}

// Token logs in with the key and returns a token.
func (s *Site) Token(t *testing.T, key string) string {
	t.Helper()
	r := s.Login(t, key, Password)
	var answer struct {
		Success bool
		Token   string
	}
	if err := json.Unmarshal([]byte(r.Body), &answer); err != nil || r.Status != http.StatusOK || !answer.Success {
		t.Fatalf("no token: %d %s", r.Status, r.Body)
	}
	return answer.Token
}

// Login asks for a token. header are names and values in turn.
func (s *Site) Login(t *testing.T, key, password string, header ...string) *Reply {
	t.Helper()
	body := url.Values{"api_key": {key}, "password": {password}}.Encode()
	return s.Do(t, http.MethodPost, "/api/auth/generateToken",
		Merged(Headers("Content-Type", "application/x-www-form-urlencoded"), Headers(header...)), body)
}

// Credentials returns the documented headers for the account APIKey, with a new token.
func (s *Site) Credentials(t *testing.T) http.Header {
	t.Helper()
	return AuthHeader(APIKey, s.Token(t, APIKey))
}

// AuthHeader returns the documented headers with credentials.
func AuthHeader(key, token string) http.Header {
	return Headers("HTTP_SERVICE_API_KEY", key, "HTTP_SERVICE_ACCESS_TOKEN", token)
}

// UploadImage sends a form to the endpoint for images, as the account APIKey.
func (s *Site) UploadImage(t *testing.T, parts ...Part) *Reply {
	t.Helper()
	return s.Upload(t, "/api/upload/image", parts...)
}

// UploadFile sends a form to the endpoint for files, as the account APIKey.
func (s *Site) UploadFile(t *testing.T, parts ...Part) *Reply {
	t.Helper()
	return s.Upload(t, "/api/upload/file", parts...)
}

// Upload sends a form to an endpoint, as the account APIKey.
func (s *Site) Upload(t *testing.T, path string, parts ...Part) *Reply {
	t.Helper()
	return s.Do(t, http.MethodPost, path, Merged(s.Credentials(t), FormType), Form(parts...))
}

// Stored is one element of the result of an upload.
type Stored struct {
	FullPath string `json:"full_path"`
	Filename string `json:"filename"`
	WebP     string `json:"webp"` // empty for an image without a variant, and for files
	// Renditions are the addresses of renditions by their names.
	Renditions map[string]string `json:"renditions"`
}

// Result decodes the answer to a successful upload, of exactly the documented shape.
func (r *Reply) Result(t *testing.T) []Stored {
	t.Helper()
	var answer struct {
		Success bool     `json:"success"`
		Result  []Stored `json:"result"`
	}
	r.Decode(t, &answer)
	if r.Status != http.StatusOK || !answer.Success || len(answer.Result) == 0 {
		t.Fatalf("upload failed: %d %s", r.Status, r.Body)
	}
	return answer.Result
}

// One returns the result of a successful upload of one file.
func (r *Reply) One(t *testing.T) Stored {
	t.Helper()
	result := r.Result(t)
	if len(result) != 1 {
		t.Fatalf("%d results, want 1: %s", len(result), r.Body)
	}
	return result[0]
}

// Failure is one element of the errors of an upload.
type Failure struct {
	Message  string `json:"message"`
	Filename string `json:"filename"`
}

// Failures decodes the answer to an upload that was refused with a status.
func (r *Reply) Failures(t *testing.T, status int) []Failure {
	t.Helper()
	var answer struct {
		Success bool      `json:"success"`
		Errors  []Failure `json:"errors"`
	}
	if r.Status != status {
		t.Fatalf("status %d, want %d: %s", r.Status, status, r.Body)
	}
	r.Decode(t, &answer)
	if answer.Success || len(answer.Errors) == 0 {
		t.Fatalf("no errors: %s", r.Body)
	}
	for _, f := range answer.Errors {
		if f.Message == "" {
			t.Errorf("an error has no message: %s", r.Body)
		}
	}
	return answer.Errors
}

// Decode decodes the JSON of an answer and fails the test for undocumented fields.
func (r *Reply) Decode(t *testing.T, into any) {
	t.Helper()
	if got := r.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q, want application/json", got)
	}
	if got := r.Header.Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("X-Content-Type-Options %q, want nosniff", got)
	}
	d := json.NewDecoder(strings.NewReader(r.Body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("answer %d %q: %v", r.Status, r.Body, err)
	}
}

// Fetch gets a public address, which must be below this site.
func (s *Site) Fetch(t *testing.T, address string) *Reply {
	t.Helper()
	path, ok := strings.CutPrefix(address, s.URL)
	if !ok {
		t.Fatalf("address %q is not below %s", address, s.URL)
	}
	return s.Get(t, path)
}

// Files returns all files below a folder, including hidden ones.
func Files(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		found[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return found
}

// WantNothing fails if there is a file in the folder of the site's storage.
func (s *Site) WantNothing(t *testing.T) {
	t.Helper()
	for name := range Files(t, s.Root) {
		t.Errorf("%s remains in the storage", name)
	}
}

// Part is a part of a form. With a file name it is a file.
type Part struct {
	Name     string
	File     bool
	Filename string
	Content  string
	Header   string // further lines of its header, each with CR LF
}

// Field returns a part that is a form field.
func Field(name, value string) Part { return Part{Name: name, Content: value} }

// File returns a part that is a file.
func File(filename, content string) Part {
	return Part{Name: "files[]", File: true, Filename: filename, Content: content}
}

// FormBoundary is the boundary in the forms of Form.
const FormBoundary = "a-formBoundary-of-the-tests"

// FormType is the header with the media type of Form.
var FormType = Headers("Content-Type", "multipart/form-data; boundary="+FormBoundary)

// Form returns the body of a form, with names as curl writes them.
func Form(parts ...Part) string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data; name=\"%s\"", FormBoundary, quote.Replace(p.Name))
		if p.File {
			fmt.Fprintf(&b, "; filename=\"%s\"\r\nContent-Type: application/octet-stream", quote.Replace(p.Filename))
		}
		fmt.Fprintf(&b, "\r\n%s\r\n%s\r\n", p.Header, p.Content)
	}
	b.WriteString("--" + FormBoundary + "--\r\n")
	return b.String()
}

// ReadAnswer reads an answer from a connection.
func ReadAnswer(t *testing.T, conn net.Conn) *Reply {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return &Reply{resp.StatusCode, resp.Proto, resp.Header, string(body)}
}
