package mediahttp_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// origin is the scheme and host of the requests.
const origin = "http://example.com"

// httpCase is a request to a new site, and its expected response.
type httpCase struct {
	name   string
	method string // default: GET, with a body POST
	target string
	header string // lines "Name: value"; $TOKEN and $OTHER are tokens of the accounts
	body   string

	status int
	want   string // lines "Name: value" of the header; one without a value must be missing
	text   string // the whole body, if not empty
	has    string // a part of the body
}

// run runs each case on its own site, in parallel.
func run(t *testing.T, newSite func(*testing.T) *site, cases []httpCase) {
	t.Helper()
	for _, c := range cases {
		c.run(t, newSite)
	}
}

// run runs the case on its own site, in parallel.
func (c httpCase) run(t *testing.T, newSite func(*testing.T) *site) {
	t.Helper()
	t.Run(c.name, func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		c.check(t, s)
	})
}

func (c httpCase) check(t *testing.T, s *site) *reply {
	t.Helper()
	if c.method == "" {
		c.method = http.MethodGet
		if c.body != "" {
			c.method = http.MethodPost
		}
	}
	r := s.do(t, c.method, c.target, c.header, c.body)
	if r.status != c.status {
		t.Errorf("status %d, want %d: %.300q", r.status, c.status, r.body)
	}
	for line := range strings.Lines(s.replaced(t, c.want)) {
		name, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if got := strings.Join(r.header.Values(name), ", "); got != strings.TrimSpace(want) {
			t.Errorf("header %s: %q, want %q", name, got, strings.TrimSpace(want))
		}
	}
	if c.text != "" && r.body != c.text {
		t.Errorf("body %.300q, want %.300q", r.body, c.text)
	}
	if !strings.Contains(r.body, c.has) {
		t.Errorf("body %.300q, want %q in it", r.body, c.has)
	}
	return r
}

// reply is a response.
type reply struct {
	status int
	header http.Header
	body   string
}

// do sends a request to the handler.
func (s *site) do(t *testing.T, method, target, header, body string) *reply {
	t.Helper()
	return s.send(t, s.request(t, method, target, header, body))
}

func (s *site) request(t *testing.T, method, target, header, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if body == "" {
		r.Body = http.NoBody
	}
	for line := range strings.Lines(s.replaced(t, header)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		r.Header.Add(name, strings.TrimPrefix(value, " "))
	}
	return r
}

// replaced returns lines with the values of the variables.
func (s *site) replaced(t *testing.T, lines string) string {
	t.Helper()
	for name, key := range map[string]string{"$TOKEN": someKey, "$OTHER": otherKey} {
		if strings.Contains(lines, name) {
			lines = strings.ReplaceAll(lines, name, s.tokenOf(t, key))
		}
	}
	return strings.NewReplacer(s.vars...).Replace(lines)
}

// send sends a request and checks what every response promises.
func (s *site) send(t *testing.T, r *http.Request) *reply {
	t.Helper()
	sent := replay(t, r)
	before := s.objects(t)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	got := &reply{w.Code, w.Result().Header, w.Body.String()}
	s.observe(t, r, sent, got)
	if got.status >= 400 && !maps.Equal(before, s.objects(t)) {
		t.Errorf("%s %s: the storage has changed with status %d", r.Method, r.URL.Path, got.status)
	}
	if got.status >= 400 {
		for _, internal := range append([]string{password, someKey, "/tmp", "/home", "root:", ".go:", "goroutine"}, s.known...) {
			if strings.Contains(got.body, internal) {
				t.Errorf("%q is in the response %s", internal, got.body)
			}
		}
	}
	want := map[string]string{"Set-Cookie": ""}
	if answersJSON[r.URL.Path] || strings.HasPrefix(r.URL.Path, itemsPath+"image/") || strings.HasPrefix(r.URL.Path, itemsPath+"file/") {
		want = map[string]string{
			"Set-Cookie": "", "Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		}
	} else if got.status < 400 {
		want["X-Content-Type-Options"] = "nosniff"
	}
	for name, value := range want {
		if h := got.header.Get(name); h != value {
			t.Errorf("%s %s: header %s: %q, want %q", r.Method, r.URL.Path, name, h, value)
		}
	}
	return got
}

// unread sends a request whose body must not be read.
func (s *site) unread(t *testing.T, r *http.Request, status int) {
	t.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != status {
		t.Errorf("%d %s, want %d", w.Code, w.Body, status)
	}
}

// replay reads the body of a request and restores it.
func replay(t *testing.T, r *http.Request) string {
	t.Helper()
	if r.Body == http.NoBody {
		return ""
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}

const (
	tokenPath = "/api/auth/generateToken"
	imagePath = "/api/upload/image"
	filePath  = "/api/upload/file"
)

var answersJSON = map[string]bool{tokenPath: true, ticketPath: true, signPath: true, imagePath: true, filePath: true}

// part is a part of a form. With a file name it is a file.
type part struct {
	name     string
	file     bool
	filename string
	content  string
	header   string // further lines of its header, each with CR LF
}

func field(name, value string) part { return part{name: name, content: value} }

func file(filename, content string) part {
	return part{name: "files[]", file: true, filename: filename, content: content}
}

// named returns the part under another name.
func named(name string, p part) part {
	p.name = name
	return p
}

// form returns the body of a form of multipartType, with names as curl writes them.
func form(parts ...part) string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "--x\r\nContent-Disposition: form-data; name=\"%s\"", quote.Replace(p.name))
		if p.file {
			fmt.Fprintf(&b, "; filename=\"%s\"\r\nContent-Type: application/octet-stream", quote.Replace(p.filename))
		}
		fmt.Fprintf(&b, "\r\n%s\r\n%s\r\n", p.header, p.content)
	}
	b.WriteString("--x--\r\n")
	return b.String()
}

const (
	multipart  = "Content-Type: " + multipartType + "\n"
	urlencoded = "Content-Type: application/x-www-form-urlencoded\n"
	bearer     = "Authorization: Bearer $TOKEN\n"
)
