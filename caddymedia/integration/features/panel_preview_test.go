package features_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

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
		"a.mp4": "video/mp4", "a.webm": "video/webm", "a.mp3": "audio/mpeg", "a.wav": "audio/wav", "a.PDF": "application/pdf",
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
	site.PutFile(t, filepath.Join(p.Root, "file", "content", "a.jpg.webp"), hostile) // an item of a file alias
	if r := p.Call(t, http.MethodGet, "preview/file/content/a.jpg.webp", nil); r.Header.Get("Content-Type") != "image/webp" {
		t.Errorf("%d %v", r.Status, r.Header)
	}
}

// TestPanelPreviewRange: the middle of a film of 2 GiB is served without the rest, and all of it
// with flat memory. Several ranges are answered by the whole film.
func TestPanelPreviewRange(t *testing.T) {
	const size, middle = 2 << 30, 1 << 30
	p := site.StartPanel(t, site.Basic)
	film := filepath.Join(p.Root, "file", "content", "film.mp4")
	site.PutFile(t, film, "")
	file, err := os.OpenFile(film, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte("in the middle"), middle); err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	const route = "preview/file/content/film.mp4"
	r := p.Call(t, http.MethodGet, route, nil, "Range", "bytes=1073741824-1073741836")
	if r.Status != http.StatusPartialContent || r.Body != "in the middle" ||
		r.Header.Get("Content-Range") != "bytes 1073741824-1073741836/2147483648" || r.Header.Get("Accept-Ranges") != "bytes" {
		t.Errorf("%d %q %v", r.Status, r.Body[:min(len(r.Body), 100)], r.Header)
	}
	tag := r.Header.Get("Etag")
	if r := p.Call(t, http.MethodGet, route, nil, "Range", "bytes=1073741824-1073741825", "If-Range", tag); r.Status != http.StatusPartialContent {
		t.Errorf("the same film: %d, ETag %s", r.Status, tag)
	}
	if r := p.Call(t, http.MethodHead, route, nil); r.Header.Get("Content-Length") != "2147483648" {
		t.Errorf("HEAD: %d %v", r.Status, r.Header)
	}
	if r := p.Call(t, http.MethodGet, route, nil, "Range", "bytes=2147483648-"); r.Status != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("after the end: %d", r.Status)
	}
	request := p.Request(t, http.MethodGet, "/media-admin/api/"+route, site.Headers("Range", "bytes=0-1,5-6"), nil)
	request.SetBasicAuth(p.User, site.Password)
	answer, err := p.Client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("several ranges: %d %v", answer.StatusCode, answer.Header)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sent, err := io.Copy(io.Discard, answer.Body)
	runtime.ReadMemStats(&after)
	if sent != size || err != nil {
		t.Errorf("sent %d bytes, error %v", sent, err)
	}
	allocated := after.TotalAlloc - before.TotalAlloc // Caddy runs in this process
	t.Logf("%d KiB were allocated for a film of 2 GiB", allocated>>10)
	if allocated > size/4 { // the race detector empties pools of buffers
		t.Errorf("%d bytes were allocated", allocated)
	}
}
