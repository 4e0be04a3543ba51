package testservice

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// Part is a part of a form. With a file name it is a file.
type Part struct {
	Name     string
	IsFile   bool
	Filename string
	Content  string
	Header   string // further lines of its header, each with CR LF
}

// Field returns a field.
func Field(name, value string) Part { return Part{Name: name, Content: value} }

// File returns a file.
func File(filename, content string) Part {
	return Part{Name: "files[]", IsFile: true, Filename: filename, Content: content}
}

// Named returns the part under another name.
func Named(name string, p Part) Part {
	p.Name = name
	return p
}

// Form returns the body of a form of MultipartType, with names as curl writes them.
func Form(parts ...Part) string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "--x\r\nContent-Disposition: form-data; name=\"%s\"", quote.Replace(p.Name))
		if p.IsFile {
			fmt.Fprintf(&b, "; filename=\"%s\"\r\nContent-Type: application/octet-stream", quote.Replace(p.Filename))
		}
		fmt.Fprintf(&b, "\r\n%s\r\n%s\r\n", p.Header, p.Content)
	}
	b.WriteString("--x--\r\n")
	return b.String()
}

// Upload is an upload to a new site by the account that may use all aliases.
type Upload struct {
	Name   string
	Target string // default: the endpoint for files
	Header string // default: a token
	Parts  []Part

	Status int      // default: 200
	Want   []string // the keys of the items; of a refused request the names of the failing files
	Has    string   // a part of the first message
}

// RunUploads runs each case on its own site, in parallel.
func RunUploads(t *testing.T, newSite func(*testing.T) *Site, cases []Upload) {
	t.Helper()
	for _, c := range cases {
		c.Run(t, newSite)
	}
}

// Run runs the case on its own site, in parallel.
func (c Upload) Run(t *testing.T, newSite func(*testing.T) *Site) {
	t.Helper()
	t.Run(c.Name, func(t *testing.T) {
		t.Parallel()
		c.Check(t, newSite(t))
	})
}

// Check sends the upload. It checks the exact shape of the response, and that the items can be
// fetched under their addresses.
func (c Upload) Check(t *testing.T, s *Site) {
	t.Helper()
	if c.Target == "" || c.Target[0] == '?' {
		c.Target = FilePath + c.Target
	}
	if c.Header == "" {
		c.Header = Bearer
	}
	r := s.Do(t, http.MethodPost, c.Target, Multipart+c.Header, Form(c.Parts...))
	if c.Status >= 400 {
		r.Refused(t, c.Status, c.Has, c.Want...)
		return
	}
	items := r.Items(t)
	var contents []string
	for _, p := range c.Parts {
		if p.IsFile && p.Filename != "" {
			contents = append(contents, p.Content)
		}
	}
	if len(items) != len(c.Want) || len(items) != len(contents) {
		t.Fatalf("%d items, want %d: %s", len(items), len(c.Want), r.Body)
	}
	for i, item := range items {
		item.At(t, s, c.Want[i], contents[i])
	}
}

// Image returns the case for the endpoint for images.
func (c Upload) Image() Upload {
	c.Target = ImagePath + c.Target
	return c
}

// Item is an element of the result of an upload.
type Item struct {
	FullPath string `json:"full_path"`
	Filename string `json:"filename"`
	WebP     string `json:"webp"`
}

// At checks that the item is stored under a key, and that its address returns the content.
func (i Item) At(t *testing.T, s *Site, key, content string) {
	t.Helper()
	segments := strings.Split(key, "/")
	for j, segment := range segments {
		segments[j] = strings.ReplaceAll(url.QueryEscape(segment), "+", "%20")
	}
	escaped := strings.Join(segments, "/")
	base, path, ok := strings.Cut(i.FullPath, "/static/")
	if decoded, err := url.PathUnescape(path); !ok || err != nil || decoded != key {
		t.Errorf("full_path %s, want the one of %s", i.FullPath, key)
	}
	if strings.ContainsAny(path, " \"?#<>\\") || strings.ContainsFunc(path, func(r rune) bool { return r > 0x7e }) {
		t.Errorf("full_path %s is not encoded, want %s", i.FullPath, escaped)
	}
	if base != Origin {
		t.Errorf("full_path %s, want it below %s", i.FullPath, Origin)
	}
	if want := strings.SplitN(key, "/", 3)[2]; i.Filename != want {
		t.Errorf("filename %q, want %q", i.Filename, want)
	}
	if got, ok := s.Stored(t, key); !ok || got != content {
		t.Errorf("%s is stored: %t, with other bytes", key, ok)
	}
	for _, address := range []string{"/static/" + path, "/static/" + escaped} {
		if r := s.Do(t, http.MethodGet, address, "", ""); r.Status != http.StatusOK || r.Body != content {
			t.Errorf("fetching %s: %d, %d bytes", address, r.Status, len(r.Body))
		}
	}
}

// Items returns the items of a successful upload.
func (r *Reply) Items(t *testing.T) []Item {
	t.Helper()
	var answer struct {
		Success bool   `json:"success"`
		Result  []Item `json:"result"`
	}
	if r.Status != http.StatusOK {
		t.Fatalf("upload failed: %d %s", r.Status, r.Body)
	}
	r.Decode(t, &answer)
	if !answer.Success || len(answer.Result) == 0 {
		t.Fatalf("no result: %s", r.Body)
	}
	return answer.Result
}

// Refused checks the response to a refused upload: its status, a part of the first message, and
// the names of the failing files.
func (r *Reply) Refused(t *testing.T, status int, has string, names ...string) {
	t.Helper()
	var answer struct {
		Success bool `json:"success"`
		Errors  []struct {
			Message  string `json:"message"`
			Filename string `json:"filename"`
		} `json:"errors"`
	}
	if r.Status != status {
		t.Fatalf("status %d, want %d: %s", r.Status, status, r.Body)
	}
	r.Decode(t, &answer)
	failing := make([]string, len(answer.Errors))
	for i, e := range answer.Errors {
		failing[i] = e.Filename
		if e.Message == "" {
			t.Errorf("an error has no message: %s", r.Body)
		}
	}
	if answer.Success || len(failing) == 0 || names != nil && !slices.Equal(failing, names) {
		t.Errorf("errors of %q, want %q: %s", failing, names, r.Body)
	}
	if len(answer.Errors) > 0 && !strings.Contains(answer.Errors[0].Message, has) {
		t.Errorf("message %q, want %q in it", answer.Errors[0].Message, has)
	}
}

// Upload sends a form to the file alias one with a token or ticket.
func (s *Site) Upload(t *testing.T, token string, body io.Reader) *Reply {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, FilePath+"?alias=one", body)
	r.Header.Set("Content-Type", MultipartType)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	return &Reply{w.Code, w.Result().Header, w.Body.String()}
}

// ListedItem is an element of a list of items.
type ListedItem struct {
	FullPath    string            `json:"full_path"`
	Filename    string            `json:"filename"`
	Size        int64             `json:"size"`
	Modified    time.Time         `json:"modified"`
	ContentType string            `json:"content_type"`
	ETag        string            `json:"etag"`
	WebP        string            `json:"webp"`
	Renditions  map[string]string `json:"renditions"`
}

// ItemList is the response to a request for a list, or for one item.
type ItemList struct {
	Success  bool         `json:"success"`
	Result   []ListedItem `json:"result"`
	Folders  []string     `json:"folders"`
	Next     string       `json:"next"`
	Total    *int         `json:"total"`
	Complete *bool        `json:"complete"`
}

// Listed returns the list and its names in the response to a request for items.
func (r *Reply) Listed(t *testing.T) (list ItemList, names []string) {
	t.Helper()
	if r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	r.Decode(t, &list)
	for _, item := range list.Result {
		names = append(names, item.Filename)
	}
	return list, names
}
