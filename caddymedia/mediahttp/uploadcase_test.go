package mediahttp_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// uploadCase is an upload to a new site by the account that may use all aliases.
type uploadCase struct {
	name   string
	target string // default: the endpoint for files
	header string // default: a token
	parts  []part

	status int      // default: 200
	want   []string // the keys of the items; of a refused request the names of the failing files
	has    string   // a part of the first message
}

// runUploads runs each case on its own site, in parallel.
func runUploads(t *testing.T, newSite func(*testing.T) *site, cases []uploadCase) {
	t.Helper()
	for _, c := range cases {
		c.run(t, newSite)
	}
}

// run runs the case on its own site, in parallel.
func (c uploadCase) run(t *testing.T, newSite func(*testing.T) *site) {
	t.Helper()
	t.Run(c.name, func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		c.check(t, s)
	})
}

// check sends the upload. It checks the exact shape of the response, and that the items can be
// fetched under their addresses.
func (c uploadCase) check(t *testing.T, s *site) {
	t.Helper()
	if c.target == "" || c.target[0] == '?' {
		c.target = filePath + c.target
	}
	if c.header == "" {
		c.header = bearer
	}
	r := s.do(t, http.MethodPost, c.target, multipart+c.header, form(c.parts...))
	if c.status >= 400 {
		r.refused(t, c.status, c.has, c.want...)
		return
	}
	items := r.items(t)
	var contents []string
	for _, p := range c.parts {
		if p.file && p.filename != "" {
			contents = append(contents, p.content)
		}
	}
	if len(items) != len(c.want) || len(items) != len(contents) {
		t.Fatalf("%d items, want %d: %s", len(items), len(c.want), r.body)
	}
	for i, item := range items {
		item.at(t, s, c.want[i], contents[i])
	}
}

// image returns the case for the endpoint for images.
func (c uploadCase) image() uploadCase {
	c.target = imagePath + c.target
	return c
}

// stored is an element of the result of an upload.
type stored struct {
	FullPath string `json:"full_path"`
	Filename string `json:"filename"`
	WebP     string `json:"webp"`
}

// at checks that the item is stored under a key, and that its address returns the content.
func (i stored) at(t *testing.T, s *site, key, content string) {
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
	if base != origin {
		t.Errorf("full_path %s, want it below %s", i.FullPath, origin)
	}
	if want := strings.SplitN(key, "/", 3)[2]; i.Filename != want {
		t.Errorf("filename %q, want %q", i.Filename, want)
	}
	if got, ok := s.stored(t, key); !ok || got != content {
		t.Errorf("%s is stored: %t, with other bytes", key, ok)
	}
	for _, address := range []string{"/static/" + path, "/static/" + escaped} {
		if r := s.do(t, http.MethodGet, address, "", ""); r.status != http.StatusOK || r.body != content {
			t.Errorf("fetching %s: %d, %d bytes", address, r.status, len(r.body))
		}
	}
}

// decode decodes JSON of exactly the documented fields.
func (r *reply) decode(t *testing.T, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(r.body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("response %d %q: %v", r.status, r.body, err)
	}
}

// items returns the items of a successful upload.
func (r *reply) items(t *testing.T) []stored {
	t.Helper()
	var answer struct {
		Success bool     `json:"success"`
		Result  []stored `json:"result"`
	}
	if r.status != http.StatusOK {
		t.Fatalf("upload failed: %d %s", r.status, r.body)
	}
	r.decode(t, &answer)
	if !answer.Success || len(answer.Result) == 0 {
		t.Fatalf("no result: %s", r.body)
	}
	return answer.Result
}

// refused checks the response to a refused upload: its status, a part of the first message, and
// the names of the failing files.
func (r *reply) refused(t *testing.T, status int, has string, names ...string) {
	t.Helper()
	var answer struct {
		Success bool `json:"success"`
		Errors  []struct {
			Message  string `json:"message"`
			Filename string `json:"filename"`
		} `json:"errors"`
	}
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	r.decode(t, &answer)
	failing := make([]string, len(answer.Errors))
	for i, e := range answer.Errors {
		failing[i] = e.Filename
		if e.Message == "" {
			t.Errorf("an error has no message: %s", r.body)
		}
	}
	if answer.Success || len(failing) == 0 || names != nil && !slices.Equal(failing, names) {
		t.Errorf("errors of %q, want %q: %s", failing, names, r.body)
	}
	if len(answer.Errors) > 0 && !strings.Contains(answer.Errors[0].Message, has) {
		t.Errorf("message %q, want %q in it", answer.Errors[0].Message, has)
	}
}
