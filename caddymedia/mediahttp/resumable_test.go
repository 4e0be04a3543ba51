package mediahttp_test

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
)

const resumablePath = "/api/upload/file/resumable"

// tusHeader is the header of every request of the protocol.
const tusHeader = "Authorization: Bearer $TOKEN\nTus-Resumable: 1.0.0\n"

// metadata returns the header Upload-Metadata of names and values.
func metadata(pairs ...string) string {
	var list []string
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, pairs[i]+" "+base64.StdEncoding.EncodeToString([]byte(pairs[i+1])))
	}
	return "Upload-Metadata: " + strings.Join(list, ",") + "\n"
}

const (
	tusBody  = "Content-Type: application/offset+octet-stream\n"
	aText    = "Upload-Metadata: filename YS50eHQ=\n" // a.txt
	location = "Location"
)

// TestResumableWithoutAliases: a service that has no alias refuses uploads.
func TestResumableWithoutAliases(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.ImageAliases, c.FileAliases = nil, nil
		c.Accounts[otherKey].Aliases = nil
	})
	for _, header := range []string{aText, "Upload-Concat: partial\n"} {
		s.tusSend(t, http.MethodPost, resumablePath, "Upload-Length: 1\n"+header, "").want(t, 400, "")
	}
	httpCase{target: filePath, header: multipart + bearer, body: form(file("a.txt", "text")), status: 400}.check(t, s)
}

// tusSend sends a request of the protocol. Unlike do it permits changes of the storage with every
// status.
func (s *site) tusSend(t *testing.T, method, address, header, body string) *reply {
	t.Helper()
	return s.tusRequest(t, s.request(t, method, address, tusHeader+header, body))
}

// tusRequest is tusSend of a whole request.
func (s *site) tusRequest(t *testing.T, r *http.Request) *reply {
	t.Helper()
	sent := replay(t, r)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	got := &reply{w.Code, w.Result().Header, w.Body.String()}
	s.observe(t, r, sent, got)
	return got
}

// want checks the status and lines "Name: value" of the header.
func (r *reply) want(t *testing.T, status int, header string) *reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %.300q", r.status, status, r.body)
	}
	for line := range strings.Lines(header) {
		name, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if got := strings.Join(r.header.Values(name), ", "); got != strings.TrimSpace(want) {
			t.Errorf("header %s: %.200q, want %q", name, got, strings.TrimSpace(want))
		}
	}
	return r
}

func sha1Of(bytes string) string {
	sum := sha1.Sum([]byte(bytes))
	return "Upload-Checksum: sha1 " + base64.StdEncoding.EncodeToString(sum[:]) + "\n"
}

// tusPatch adds bytes to an upload.
func (s *site) tusPatch(t *testing.T, address string, offset int, bytes string) *reply {
	t.Helper()
	return s.tusSend(t, http.MethodPatch, address, fmt.Sprintf("%sUpload-Offset: %d\n", tusBody, offset), bytes)
}

// TestResumable: an upload in two pieces becomes an item. HEAD and GET
// return it again. Package tus tests the rules of the protocol.
func TestResumable(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	got := s.tusSend(t, http.MethodPost, resumablePath, "Upload-Length: 11\n"+metadata("filename", "Some Näme.txt", "sub_folder", "a/b"), "")
	address := got.want(t, 201, "").header.Get(location)
	if !strings.HasPrefix(address, resumablePath+"/") {
		t.Fatalf("address %q", address)
	}
	s.tusPatch(t, address, 0, "hello ").want(t, 204, "Upload-Offset: 6\nMedia-Full-Path")
	s.do(t, http.MethodHead, address, tusHeader, "").want(t, 200, "Upload-Offset: 6\nUpload-Length: 11")
	got = s.tusPatch(t, address, 6, "world").want(t, 204, "")
	path := origin + "/static/file/content/a/b/some-name.txt"
	for range 2 {
		got.want(t, got.status, "Upload-Offset: 11\nMedia-Full-Path: "+path+"\nMedia-Filename: a/b/some-name.txt")
		got = s.do(t, http.MethodHead, address, tusHeader, "").want(t, 200, "")
	}
	if got := s.do(t, http.MethodGet, address, bearer, ""); got.status != http.StatusOK || !strings.Contains(got.body, `"filename":"a/b/some-name.txt"`) {
		t.Errorf("GET: %+v", got)
	}
	s.do(t, http.MethodDelete, address, tusHeader, "").want(t, 204, "")
	s.do(t, http.MethodHead, address, tusHeader, "").want(t, 404, "")
	if got := s.do(t, http.MethodGet, strings.TrimPrefix(path, origin), "", ""); got.body != "hello world" {
		t.Errorf("item after DELETE: %+v", got)
	}
}

// TestResumableStopped: a client asks for the offset again when the service has been restarted.
func TestResumableStopped(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	address := s.tusSend(t, http.MethodPost, resumablePath, "Upload-Length: 5\n"+aText, "").want(t, 201, "").header.Get(location)
	for method, status := range map[string]int{http.MethodHead: 423, http.MethodGet: 503, http.MethodPatch: 503} {
		r, w := s.request(t, method, address, tusHeader, ""), httptest.NewRecorder()
		_ = s.first.Close()
		if s.handler.ServeHTTP(w, r); w.Code != status {
			t.Errorf("%s: status %d, want %d", method, w.Code, status)
		}
	}
}
