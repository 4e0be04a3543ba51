package integration

import (
	"net/http"
	"strings"
	"testing"
)

// TestPanelItems: the panel uploads, previews and removes items.
func TestPanelItems(t *testing.T) {
	p := startPanel(t, account+localDefault+"image_alias content {\nwebp\n}\nimage_alias plain {\nsvg keep\n}\nfile_alias content\n")
	upload := func(route string, parts ...formPart) stored {
		t.Helper()
		return p.must(t, http.StatusOK, http.MethodPost, "upload/"+route, form(parts...), "Content-Type", formType.Get("Content-Type")).one(t)
	}
	picture := upload("img?sub_folder=a", file("picture.gif", gifOf(t)))
	plain := upload("img?alias=plain", file("plain.gif", gifOf(t)))
	drawing := upload("img?alias=plain", file("d.svg", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`))
	text := upload("file", file("a.txt", "text"))
	large := upload("file", file("large.gif", gifOf(t)+strings.Repeat("\x00", 9<<20)))
	small := upload("file", file("small.gif", gifOf(t)))
	if r := p.call(t, http.MethodPost, "upload/img", form(file("a.gif", "x")), "Content-Type", formType.Get("Content-Type")); r.status != http.StatusUnsupportedMediaType {
		t.Errorf("no picture: %d %s", r.status, r.body)
	}
	for _, c := range []struct {
		route string
		want  int
		kind  string
	}{
		{"img/content/" + picture.Filename, http.StatusOK, "image/webp"},
		{"img/plain/" + plain.Filename, http.StatusOK, "image/gif"},
		{"img/plain/" + drawing.Filename, http.StatusOK, "image/svg+xml"},
		{"file/content/" + small.Filename, http.StatusOK, "image/gif"},
		{"file/content/" + large.Filename, http.StatusNotFound, ""},
		{"file/content/" + text.Filename, http.StatusNotFound, ""},
		{"img/content/none.gif", http.StatusNotFound, ""},
		{"img/none/" + picture.Filename, http.StatusNotFound, ""},
		{"other/content/" + picture.Filename, http.StatusNotFound, ""},
		{"img/content/../plain/" + plain.Filename, http.StatusNotFound, ""},
		{"img/content/", http.StatusNotFound, ""},
	} {
		r := p.call(t, http.MethodGet, "preview/"+c.route, nil)
		if r.status != c.want {
			t.Errorf("%s: %d %q, want %d", c.route, r.status, r.body[:min(100, len(r.body))], c.want)
		}
		if c.want != http.StatusOK {
			continue
		}
		policy := r.header.Get("Content-Security-Policy")
		if r.header.Get("Content-Type") != c.kind || r.header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(policy, "sandbox") || !strings.HasPrefix(r.header.Get("Cache-Control"), "private") {
			t.Errorf("%s: %v", c.route, r.header)
		}
		again := p.call(t, http.MethodGet, "preview/"+c.route, nil, "If-None-Match", r.header.Get("Etag"))
		if again.status != http.StatusNotModified {
			t.Errorf("%s again: %d, want 304", c.route, again.status)
		}
	}
	p.must(t, http.StatusMethodNotAllowed, http.MethodDelete, "preview/img/content/"+picture.Filename, nil)
	p.must(t, http.StatusNoContent, http.MethodDelete, "items/img/content/"+picture.Filename, nil)
	if r := p.fetch(t, picture.FullPath); r.status != http.StatusNotFound {
		t.Errorf("a removed item: %d", r.status)
	}
	p.waitForLog(t, `"section":"items","name":"img/content/`+picture.Filename)
}
