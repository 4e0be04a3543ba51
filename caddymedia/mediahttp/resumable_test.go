package mediahttp_test

import (
	"crypto/sha1"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
)

const (
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
		s.TusSend(t, http.MethodPost, resumablePath, "Upload-Length: 1\n"+header, "").Want(t, 400, "")
	}
	httpCase{Target: filePath, Header: multipart + bearer, Body: form(file("a.txt", "text")), Status: 400}.Check(t, s)
}

func sha1Of(bytes string) string {
	sum := sha1.Sum([]byte(bytes))
	return "Upload-Checksum: sha1 " + base64.StdEncoding.EncodeToString(sum[:]) + "\n"
}

// TestResumable: an upload in two pieces becomes an item. HEAD and GET
// return it again. Package tus tests the rules of the protocol.
func TestResumable(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	got := s.TusSend(t, http.MethodPost, resumablePath, "Upload-Length: 11\n"+metadata("filename", "Some Näme.txt", "sub_folder", "a/b"), "")
	address := got.Want(t, 201, "").Header.Get(location)
	if !strings.HasPrefix(address, resumablePath+"/") {
		t.Fatalf("address %q", address)
	}
	s.TusPatch(t, address, 0, "hello ").Want(t, 204, "Upload-Offset: 6\nMedia-Full-Path")
	s.Do(t, http.MethodHead, address, tusHeader, "").Want(t, 200, "Upload-Offset: 6\nUpload-Length: 11")
	got = s.TusPatch(t, address, 6, "world").Want(t, 204, "")
	path := origin + "/static/file/content/a/b/some-name.txt"
	for range 2 {
		got.Want(t, got.Status, "Upload-Offset: 11\nMedia-Full-Path: "+path+"\nMedia-Filename: a/b/some-name.txt")
		got = s.Do(t, http.MethodHead, address, tusHeader, "").Want(t, 200, "")
	}
	if got := s.Do(t, http.MethodGet, address, bearer, ""); got.Status != http.StatusOK || !strings.Contains(got.Body, `"filename":"a/b/some-name.txt"`) {
		t.Errorf("GET: %+v", got)
	}
	s.Do(t, http.MethodDelete, address, tusHeader, "").Want(t, 204, "")
	s.Do(t, http.MethodHead, address, tusHeader, "").Want(t, 404, "")
	if got := s.Do(t, http.MethodGet, strings.TrimPrefix(path, origin), "", ""); got.Body != "hello world" {
		t.Errorf("item after DELETE: %+v", got)
	}
}

// TestResumableStopped: a client asks for the offset again when the service has been restarted.
func TestResumableStopped(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	address := s.TusSend(t, http.MethodPost, resumablePath, "Upload-Length: 5\n"+aText, "").Want(t, 201, "").Header.Get(location)
	for method, status := range map[string]int{http.MethodHead: 423, http.MethodGet: 503, http.MethodPatch: 503} {
		r, w := s.Request(t, method, address, tusHeader, ""), httptest.NewRecorder()
		_ = s.First.Close()
		if s.Handler.ServeHTTP(w, r); w.Code != status {
			t.Errorf("%s: status %d, want %d", method, w.Code, status)
		}
	}
}
