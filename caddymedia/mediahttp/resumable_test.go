package mediahttp_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
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

// tusCreate creates an upload and returns its address.
func (s *site) tusCreate(t *testing.T, length int, header string) string {
	t.Helper()
	got := s.tusSend(t, http.MethodPost, resumablePath, fmt.Sprintf("Upload-Length: %d\n%s", length, header), "")
	if got.status != http.StatusCreated {
		t.Fatalf("creating: status %d: %s", got.status, got.body)
	}
	return got.header.Get("Location")
}

// tusPatch adds bytes to an upload.
func (s *site) tusPatch(t *testing.T, address string, offset int, bytes, header string) *reply {
	t.Helper()
	return s.tusSend(t, http.MethodPatch, address, fmt.Sprintf("%sUpload-Offset: %d\n%s", tusBody, offset, header), bytes)
}

// TestResumable: an upload in two pieces becomes an item, and HEAD and GET return it again.
func TestResumable(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	address := s.tusCreate(t, 11, metadata("filename", "Some Näme.txt", "sub_folder", "a/b"))
	if !strings.HasPrefix(address, resumablePath+"/") {
		t.Fatalf("address %q", address)
	}
	if got := s.tusPatch(t, address, 0, "hello ", ""); got.status != http.StatusNoContent || got.header.Get("Upload-Offset") != "6" || got.header.Get("Media-Full-Path") != "" {
		t.Fatalf("first piece: %+v", got)
	}
	if got := s.do(t, http.MethodHead, address, tusHeader, ""); got.status != http.StatusOK || got.header.Get("Upload-Offset") != "6" || got.header.Get("Upload-Length") != "11" {
		t.Errorf("HEAD: %+v", got)
	}
	got := s.tusPatch(t, address, 6, "world", "")
	path := origin + "/static/file/content/a/b/some-name.txt"
	for range 2 {
		if got.header.Get("Upload-Offset") != "11" || got.header.Get("Media-Full-Path") != path || got.header.Get("Media-Filename") != "a/b/some-name.txt" {
			t.Errorf("finished: %+v", got)
		}
		got = s.do(t, http.MethodHead, address, tusHeader, "")
	}
	if got := s.do(t, http.MethodGet, strings.TrimPrefix(path, origin), "", ""); got.body != "hello world" {
		t.Errorf("item: %+v", got)
	}
	if got := s.do(t, http.MethodGet, address, "Authorization: Bearer $TOKEN", ""); got.status != http.StatusOK || !strings.Contains(got.body, `"filename":"a/b/some-name.txt"`) {
		t.Errorf("GET: %+v", got)
	}
	if got := s.do(t, http.MethodDelete, address, tusHeader, ""); got.status != http.StatusNoContent {
		t.Errorf("DELETE: %+v", got)
	}
	if got := s.do(t, http.MethodHead, address, tusHeader, ""); got.status != http.StatusNotFound {
		t.Errorf("HEAD after DELETE: %+v", got)
	}
	if got := s.do(t, http.MethodGet, strings.TrimPrefix(path, origin), "", ""); got.body != "hello world" {
		t.Errorf("item after DELETE: %+v", got)
	}
}
