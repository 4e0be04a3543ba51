package integration

import (
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// httpCase is a request and its expected answer.
type httpCase struct {
	name   string
	method string // GET if empty
	path   string // with the query, as sent
	header http.Header
	body   string

	wantStatus int
	wantHeader map[string]string // "" is a header that must be absent
	wantBody   string            // the whole body, if not empty
	wantInBody []string
}

// check sends the request of the case and checks the answer.
func (c httpCase) check(t *testing.T, s *site) {
	t.Helper()
	r := s.do(t, c.method, c.path, c.header, c.body)
	if r.status != c.wantStatus {
		t.Errorf("status %d, want %d; body %q", r.status, c.wantStatus, r.body)
	}
	for name, want := range c.wantHeader {
		if got := r.header.Get(name); got != want {
			t.Errorf("header %s: %q, want %q", name, got, want)
		}
	}
	if c.wantBody != "" && r.body != c.wantBody {
		t.Errorf("body %q, want %q", r.body, c.wantBody)
	}
	for _, want := range c.wantInBody {
		if !strings.Contains(r.body, want) {
			t.Errorf("body %q, want %q in it", r.body, want)
		}
	}
}

func checkAll(t *testing.T, s *site, cases []httpCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.check(t, s) })
	}
}

// reply is an answer that was read to its end.
type reply struct {
	status int
	proto  string
	header http.Header
	body   string
}

func (s *site) do(t *testing.T, method, path string, header http.Header, body string) *reply {
	t.Helper()
	return s.send(t, s.client, s.request(t, method, path, header, strings.NewReader(body)))
}

func (s *site) get(t *testing.T, path string, header ...string) *reply {
	t.Helper()
	return s.do(t, http.MethodGet, path, headers(header...), "")
}

// headers returns a header from pairs of name and value. The names are sent unchanged.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
	}
	return h
}

// merged returns the union of headers.
func merged(all ...http.Header) http.Header {
	h := http.Header{}
	for _, one := range all {
		for name, values := range one {
			h[name] = append(h[name], values...)
		}
	}
	return h
}

func (s *site) request(t *testing.T, method, path string, header http.Header, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	return r
}

func (s *site) send(t *testing.T, client *http.Client, r *http.Request) *reply {
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
	return &reply{resp.StatusCode, resp.Proto, resp.Header, string(body)}
}

// token logs in with the key and returns a token.
func (s *site) token(t *testing.T, key string) string {
	t.Helper()
	r := s.login(t, key, password)
	var answer struct {
		Success bool
		Token   string
	}
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.status != http.StatusOK || !answer.Success {
		t.Fatalf("no token: %d %s", r.status, r.body)
	}
	return answer.Token
}

func (s *site) login(t *testing.T, key, password string, header ...string) *reply {
	t.Helper()
	body := url.Values{"api_key": {key}, "password": {password}}.Encode()
	return s.do(t, http.MethodPost, "/api/auth/generateToken",
		merged(headers("Content-Type", "application/x-www-form-urlencoded"), headers(header...)), body)
}

// credentials returns the documented headers for the account apiKey, with a new token.
func (s *site) credentials(t *testing.T) http.Header {
	t.Helper()
	return documented(apiKey, s.token(t, apiKey))
}

func documented(key, token string) http.Header {
	return headers("HTTP_SERVICE_API_KEY", key, "HTTP_SERVICE_ACCESS_TOKEN", token)
}

// uploadImage and uploadFile send a form to the endpoint, as the account apiKey.
func (s *site) uploadImage(t *testing.T, parts ...formPart) *reply {
	t.Helper()
	return s.upload(t, "/api/upload/image", parts...)
}

func (s *site) uploadFile(t *testing.T, parts ...formPart) *reply {
	t.Helper()
	return s.upload(t, "/api/upload/file", parts...)
}

func (s *site) upload(t *testing.T, path string, parts ...formPart) *reply {
	t.Helper()
	return s.do(t, http.MethodPost, path, merged(s.credentials(t), formType), form(parts...))
}

// stored is one element of the result of an upload.
type stored struct {
	FullPath string `json:"full_path"`
	Filename string `json:"filename"`
	WebP     string `json:"webp"` // empty for a picture without a variant, and for files
}

// result decodes the answer to a successful upload, of exactly the documented shape.
func (r *reply) result(t *testing.T) []stored {
	t.Helper()
	var answer struct {
		Success bool     `json:"success"`
		Result  []stored `json:"result"`
	}
	r.decode(t, &answer)
	if r.status != http.StatusOK || !answer.Success || len(answer.Result) == 0 {
		t.Fatalf("upload failed: %d %s", r.status, r.body)
	}
	return answer.Result
}

// one returns the result of a successful upload of one file.
func (r *reply) one(t *testing.T) stored {
	t.Helper()
	result := r.result(t)
	if len(result) != 1 {
		t.Fatalf("%d results, want 1: %s", len(result), r.body)
	}
	return result[0]
}

// failed is one element of the errors of an upload.
type failed struct {
	Message  string `json:"message"`
	Filename string `json:"filename"`
}

// failures decodes the answer to an upload that was refused with a status.
func (r *reply) failures(t *testing.T, status int) []failed {
	t.Helper()
	var answer struct {
		Success bool     `json:"success"`
		Errors  []failed `json:"errors"`
	}
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	r.decode(t, &answer)
	if answer.Success || len(answer.Errors) == 0 {
		t.Fatalf("no errors: %s", r.body)
	}
	for _, f := range answer.Errors {
		if f.Message == "" {
			t.Errorf("an error has no message: %s", r.body)
		}
	}
	return answer.Errors
}

// decode decodes the JSON of an answer and fails the test for undocumented fields.
func (r *reply) decode(t *testing.T, into any) {
	t.Helper()
	if got := r.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q, want application/json", got)
	}
	if got := r.header.Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("X-Content-Type-Options %q, want nosniff", got)
	}
	d := json.NewDecoder(strings.NewReader(r.body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("answer %d %q: %v", r.status, r.body, err)
	}
}

// fetch gets a public address, which must be below this site.
func (s *site) fetch(t *testing.T, address string) *reply {
	t.Helper()
	path, ok := strings.CutPrefix(address, s.url)
	if !ok {
		t.Fatalf("address %q is not below %s", address, s.url)
	}
	return s.get(t, path)
}

// withinOneDay waits for the next day if that begins soon, so that a test sees only one date.
func withinOneDay() {
	const enough = 20 * time.Second
	now := time.Now()
	if next := now.Add(enough); next.Day() != now.Day() {
		time.Sleep(enough)
	}
}

// files returns all files below a folder, including hidden ones.
func files(t *testing.T, folder string) map[string][]byte {
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

// wantNothing fails if there is a file in the folder of the site's storage.
func (s *site) wantNothing(t *testing.T) {
	t.Helper()
	for name := range files(t, s.root) {
		t.Errorf("%s remains in the storage", name)
	}
}
