package features_test

import (
	"encoding/base64"
	"image"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestPanelItems: an editor uploads an item by a form, previews and deletes it. Its thumbnail is
// stored, and it has the addresses of its renditions.
func TestPanelItems(t *testing.T) {
	p := site.StartPanel(t, site.Account+site.LocalDefault+"image_alias content {\nwebp\nrendition tiny 10x10\n}\nfile_alias content\n")
	form := site.Form(site.File("photo.jpg", sample.JPEG(t, 640, 480)))
	photo := p.Must(t, http.StatusOK, http.MethodPost, "upload/img?sub_folder=a", form, "Content-Type", site.FormType.Get("Content-Type")).One(t)
	for query, width := range map[string]int{"?thumbnail=1": 320, "": 640} {
		r := p.Must(t, http.StatusOK, http.MethodGet, "preview/img/content/"+photo.Filename+query, nil)
		decoded, _, err := image.DecodeConfig(strings.NewReader(r.Body))
		if err != nil || decoded.Width != width || !strings.HasPrefix(r.Header.Get("Cache-Control"), "private") {
			t.Errorf("%q: %+v, error %v, want a width of %d", query, decoded, err, width)
		}
	}
	if thumbnails, err := filepath.Glob(filepath.Join(p.Root, "img", "content@renditions", "*", "a", "photo.jpg", "@thumbnail.*")); len(thumbnails) != 1 || err != nil {
		t.Errorf("stored are %q, %v", thumbnails, err)
	}
	item := p.Must(t, http.StatusOK, http.MethodGet, "items/img/content/"+photo.Filename, nil)
	if want := `"tiny":"` + p.URL + `/static/img/content@tiny/a/photo.jpg"`; !strings.Contains(item.Body, want) {
		t.Errorf("no %s in %s", want, item.Body)
	}
	refused := p.Call(t, http.MethodPost, "upload/img", site.Form(site.File("a.txt", "x")), "Content-Type", site.FormType.Get("Content-Type"))
	if refused.Status != http.StatusUnsupportedMediaType || !strings.Contains(refused.Body, "choose a library for files") {
		t.Errorf("a file for images: %d %s", refused.Status, refused.Body)
	}
	p.Must(t, http.StatusMethodNotAllowed, http.MethodDelete, "preview/img/content/"+photo.Filename, nil)
	p.Must(t, http.StatusOK, http.MethodDelete, "items/img/content/"+photo.Filename, nil)
	if r := p.Fetch(t, photo.FullPath); r.Status != http.StatusNotFound {
		t.Errorf("a removed item: %d", r.Status)
	}
	p.WaitForLog(t, `"section":"items","name":"img/content/`+photo.Filename)
}

// TestPanelPreviews: a file is previewed by the type of its extension, in a sandbox, and never as a
// document that could run scripts. Only a PDF may be in a frame, one of the panel.
func TestPanelPreviews(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	const hostile = "<!doctype html><html><script>alert(1)</script></pre><script>alert(2)</script>"
	for name, want := range map[string]string{
		"a.txt": "text/plain; charset=utf-8", "a.html": "text/plain; charset=utf-8", "a.htm": "text/plain; charset=utf-8",
		"a.xml": "text/plain; charset=utf-8", "a.js": "text/plain; charset=utf-8", "a.css": "text/plain; charset=utf-8",
		"a.json": "text/plain; charset=utf-8", "a.md": "text/plain; charset=utf-8", "a.csv": "text/plain; charset=utf-8",
		"a.srt": "text/plain; charset=utf-8", "a.svg": "image/svg+xml", "a.jpg": "image/jpeg", "a.heic": "image/heic",
		"a.mp4": "video/mp4", "a.jpg.webp": "image/webp", "a.webm": "video/webm", "a.mp3": "audio/mpeg", "a.wav": "audio/wav", "a.PDF": "application/pdf",
		"a.xhtml": "", "a.swf": "", "a.zip": "", "a.docx": "", "a": "", "html": "",
	} {
		site.PutFile(t, filepath.Join(p.Root, "file", "content", name), hostile)
		r := p.Call(t, http.MethodGet, "preview/file/content/"+name, nil)
		if want == "" {
			if r.Status != http.StatusNotFound || strings.Contains(r.Body, "script") {
				t.Errorf("%s: %d %s, want no preview", name, r.Status, r.Body)
			}
			continue
		}
		header, frames := r.Header, "frame-ancestors 'none'"
		if want == "application/pdf" {
			frames = "frame-ancestors 'self'"
		}
		policy := header.Get("Content-Security-Policy")
		if r.Status != http.StatusOK || r.Body != hostile || header.Get("Content-Type") != want {
			t.Errorf("%s: %d as %q, want %q", name, r.Status, header.Get("Content-Type"), want)
		}
		if len(header.Values("Content-Security-Policy")) != 1 || !strings.Contains(policy, "default-src 'none'") ||
			!strings.Contains(policy, "; sandbox; ") || !strings.HasSuffix(policy, frames) ||
			header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: %v", name, header)
		}
	}
}

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
