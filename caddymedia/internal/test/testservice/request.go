package testservice

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Origin is the scheme and host of the requests.
const Origin = "http://example.com"

// Paths of endpoints.
const (
	TokenPath     = "/api/auth/generateToken"
	TicketPath    = "/api/auth/ticket"
	SignPath      = "/api/sign"
	ImagePath     = "/api/upload/image"
	FilePath      = "/api/upload/file"
	PutPath       = "/api/upload/file/"
	ResumablePath = "/api/upload/file/resumable"
	ItemsPath     = "/api/items/"
)

var answersJSON = map[string]bool{TokenPath: true, TicketPath: true, SignPath: true, ImagePath: true, FilePath: true}

// Lines of headers. $TOKEN and $OTHER are tokens of the accounts, and $TICKET is the last ticket.
const (
	MultipartType = "multipart/form-data; boundary=x"

	Multipart    = "Content-Type: " + MultipartType + "\n"
	Urlencoded   = "Content-Type: application/x-www-form-urlencoded\n"
	Bearer       = "Authorization: Bearer $TOKEN\n"
	TicketBearer = "Authorization: Bearer $TICKET\n"
	IfAny        = "If-Match: *\n"
	TusHeader    = Bearer + "Tus-Resumable: 1.0.0\n" // of every request of the protocol
	TusBody      = "Content-Type: application/offset+octet-stream\n"
)

// Case is a request to a new site, and its expected response.
type Case struct {
	Name   string
	Method string // default: GET, with a body POST
	Target string
	Header string // lines "Name: value"; $TOKEN and $OTHER are tokens of the accounts
	Body   string

	Status int
	Want   string // lines "Name: value" of the header; one without a value must be missing
	Text   string // the whole body, if not empty
	Has    string // a part of the body
}

// Run runs each case on its own site, in parallel.
func Run(t *testing.T, newSite func(*testing.T) *Site, cases []Case) {
	t.Helper()
	for _, c := range cases {
		c.Run(t, newSite)
	}
}

// Run runs the case on its own site, in parallel.
func (c Case) Run(t *testing.T, newSite func(*testing.T) *Site) {
	t.Helper()
	t.Run(c.Name, func(t *testing.T) {
		t.Parallel()
		c.Check(t, newSite(t))
	})
}

// Check sends the request and checks the response.
func (c Case) Check(t *testing.T, s *Site) *Reply {
	t.Helper()
	if c.Method == "" {
		c.Method = http.MethodGet
		if c.Body != "" {
			c.Method = http.MethodPost
		}
	}
	r := s.Do(t, c.Method, c.Target, c.Header, c.Body)
	if r.Status != c.Status {
		t.Errorf("%s %s: status %d, want %d: %.300q", c.Method, c.Target, r.Status, c.Status, r.Body)
	}
	r.checkHeader(t, s.Replaced(t, c.Want))
	if c.Text != "" && r.Body != c.Text {
		t.Errorf("body %.300q, want %.300q", r.Body, c.Text)
	}
	if !strings.Contains(r.Body, c.Has) {
		t.Errorf("body %.300q, want %q in it", r.Body, c.Has)
	}
	return r
}

// Reply is a response.
type Reply struct {
	Status int
	Header http.Header
	Body   string
}

// checkHeader checks lines "Name: value" of the header; one without a value must be missing.
func (r *Reply) checkHeader(t *testing.T, lines string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		name, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if got := strings.Join(r.Header.Values(name), ", "); got != strings.TrimSpace(want) {
			t.Errorf("header %s: %.200q, want %q", name, got, strings.TrimSpace(want))
		}
	}
}

// Want checks the status and lines of the header.
func (r *Reply) Want(t *testing.T, status int, header string) *Reply {
	t.Helper()
	if r.Status != status {
		t.Fatalf("status %d, want %d: %.300q", r.Status, status, r.Body)
	}
	r.checkHeader(t, header)
	return r
}

// Decode decodes JSON of exactly the documented fields.
func (r *Reply) Decode(t *testing.T, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(r.Body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("response %d %q: %v", r.Status, r.Body, err)
	}
}

// Request returns a request with a header of lines.
func (s *Site) Request(t *testing.T, method, target, header, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if body == "" {
		r.Body = http.NoBody
	}
	for line := range strings.Lines(s.Replaced(t, header)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		r.Header.Add(name, strings.TrimPrefix(value, " "))
	}
	return r
}

// Replaced returns lines with the values of the variables.
func (s *Site) Replaced(t *testing.T, lines string) string {
	t.Helper()
	for name, key := range map[string]string{"$TOKEN": SomeKey, "$OTHER": OtherKey} {
		if strings.Contains(lines, name) {
			lines = strings.ReplaceAll(lines, name, s.TokenOf(t, key))
		}
	}
	return strings.NewReplacer(s.Vars...).Replace(lines)
}

// Exchange sends a request, and compares it and the response with the OpenAPI document.
func (s *Site) Exchange(t *testing.T, r *http.Request) *Reply {
	t.Helper()
	sent := ""
	if r.Body != http.NoBody {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		sent, r.Body = string(body), io.NopCloser(bytes.NewReader(body))
	}
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	got := &Reply{w.Code, w.Result().Header, w.Body.String()}
	compare(t, r, sent, got)
	return got
}

// Do sends a request as Send does.
func (s *Site) Do(t *testing.T, method, target, header, body string) *Reply {
	t.Helper()
	return s.Send(t, s.Request(t, method, target, header, body))
}

// Send is Exchange that checks what every response promises. A refused request changes nothing.
func (s *Site) Send(t *testing.T, r *http.Request) *Reply {
	t.Helper()
	before := s.Objects(t)
	got := s.Exchange(t, r)
	if got.Status >= 400 && !maps.Equal(before, s.Objects(t)) {
		t.Errorf("%s %s: the storage has changed with status %d", r.Method, r.URL.Path, got.Status)
	}
	if got.Status >= 400 {
		for _, internal := range append([]string{Password, SomeKey, "/tmp", "/home", "root:", ".go:", "goroutine"}, s.Known...) {
			if strings.Contains(got.Body, internal) {
				t.Errorf("%q is in the response %s", internal, got.Body)
			}
		}
	}
	want := map[string]string{"Set-Cookie": ""}
	isItems := strings.HasPrefix(r.URL.Path, ItemsPath+"image/") || strings.HasPrefix(r.URL.Path, ItemsPath+"file/")
	if answersJSON[r.URL.Path] || isItems && len(r.URL.Query().Get("trash")) <= len("1") { // others ask for bytes
		want = map[string]string{
			"Set-Cookie": "", "Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		}
	} else if got.Status < 400 {
		want["X-Content-Type-Options"] = "nosniff"
	}
	for name, value := range want {
		if h := got.Header.Get(name); h != value {
			t.Errorf("%s %s: header %s: %q, want %q", r.Method, r.URL.Path, name, h, value)
		}
	}
	return got
}

// Unread sends a request that is answered with a status, whatever its body is.
func (s *Site) Unread(t *testing.T, r *http.Request, status int) {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	if w.Code != status {
		t.Errorf("%d %s, want %d", w.Code, w.Body, status)
	}
}

// Ticket requests a ticket with a token, and sets $TICKET.
func (s *Site) Ticket(t *testing.T, fields string) string {
	t.Helper()
	r := Case{Target: TicketPath, Header: Urlencoded + Bearer, Body: fields, Status: 200}.Check(t, s)
	var answer struct {
		Success   bool   `json:"success"`
		Ticket    string `json:"ticket"`
		ExpiresAt int64  `json:"expires_at"`
	}
	r.Decode(t, &answer)
	s.Known = append(s.Known, answer.Ticket)
	s.Vars = append([]string{"$TICKET", answer.Ticket}, s.Vars...)
	return answer.Ticket
}

// TusSend sends a request of the protocol. Unlike Do it permits changes of the storage with every
// status.
func (s *Site) TusSend(t *testing.T, method, address, header, body string) *Reply {
	t.Helper()
	return s.Exchange(t, s.Request(t, method, address, TusHeader+header, body))
}

// TusPatch adds bytes to an upload.
func (s *Site) TusPatch(t *testing.T, address string, offset int, bytes string) *Reply {
	t.Helper()
	return s.TusSend(t, http.MethodPatch, address, fmt.Sprintf("%sUpload-Offset: %d\n", TusBody, offset), bytes)
}

// Metadata returns the header Upload-Metadata of names and values.
func Metadata(pairs ...string) string {
	var list []string
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, pairs[i]+" "+base64.StdEncoding.EncodeToString([]byte(pairs[i+1])))
	}
	return "Upload-Metadata: " + strings.Join(list, ",") + "\n"
}
