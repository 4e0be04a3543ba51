package features_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// tus are the headers of a request of a resumable upload.
func tus(more ...string) []string { return append([]string{"Tus-Resumable", "1.0.0"}, more...) }

// TestPanelResumable: an editor uploads in pieces. The address of the upload is in the panel, and
// belongs to the editor.
func TestPanelResumable(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	metadata := "filename " + base64.StdEncoding.EncodeToString([]byte("a.txt")) + ",sub_folder " + base64.StdEncoding.EncodeToString([]byte("x"))
	created := p.Must(t, http.StatusCreated, http.MethodPost, "upload/file/resumable", nil, tus("Upload-Length", "6", "Upload-Metadata", metadata)...)
	const prefix = "/media-admin/api/"
	address, ok := strings.CutPrefix(created.Header.Get("Location"), prefix)
	if !ok {
		t.Fatalf("Location %q, want one below %s", created.Header.Get("Location"), prefix)
	}
	patch := func(offset, bytes string) {
		t.Helper()
		p.Must(t, http.StatusNoContent, http.MethodPatch, address, bytes, tus("Content-Type", "application/offset+octet-stream", "Upload-Offset", offset)...)
	}
	patch("0", "abc")
	if r := p.Must(t, http.StatusOK, http.MethodGet, "uploads", nil); !strings.Contains(r.Body, `"origin":"panel"`) || !strings.Contains(r.Body, `"filename":"a.txt"`) {
		t.Errorf("the uploads are %s", r.Body)
	}
	r := p.Do(t, http.MethodHead, strings.Replace(created.Header.Get("Location"), "/media-admin", "", 1), p.Credentials(t), "")
	if r.Status == http.StatusOK {
		t.Errorf("with a token of an account: %d", r.Status)
	}
	p.Must(t, http.StatusBadRequest, http.MethodGet, address, nil, tus("X-HTTP-Method-Override", http.MethodDelete)...)
	patch("3", "def")
	stored := p.Must(t, http.StatusOK, http.MethodGet, address, nil).One(t)
	if got := p.Fetch(t, stored.FullPath); got.Body != "abcdef" || stored.Filename != "x/a.txt" {
		t.Errorf("stored %q as %s", got.Body, stored.Filename)
	}
	p.Must(t, http.StatusNotFound, http.MethodPost, "upload/file/other", nil, tus()...)
	p.Must(t, http.StatusNotFound, http.MethodPost, "upload/none/resumable", nil, tus()...)
}

// TestPanelResumableOff: the pages learn that there are no resumable uploads.
func TestPanelResumableOff(t *testing.T) {
	p := site.StartPanel(t, site.Basic+"resumable off\n")
	p.Must(t, http.StatusNotFound, http.MethodPost, "upload/file/resumable", nil, tus("Upload-Length", "6")...)
}
