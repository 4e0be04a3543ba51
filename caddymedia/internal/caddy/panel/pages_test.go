package panel

import (
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/caddymedia/media/admin/web"
)

func testPages(t *testing.T, script string) *pages {
	t.Helper()
	p, err := newPages(fstest.MapFS{
		"index.html": {Data: []byte(`<script src="assets/{{version}}/app.js">{{version}}`)},
		"app.js":     {Data: []byte(script)}, "icon.svg": {Data: []byte("<svg/>")}, "secret.txt": {Data: []byte("x")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPages(t *testing.T) {
	t.Parallel()
	p := testPages(t, "one")
	assets := "/assets/" + p.version + "/"
	for rest, want := range map[string]struct {
		status             int
		contentType, start string
	}{
		"":                          {http.StatusPermanentRedirect, "", ""},
		"/":                         {http.StatusOK, "text/html; charset=utf-8", `<script src="` + assets[1:] + `app.js">`},
		assets + "app.js":           {http.StatusOK, "text/javascript; charset=utf-8", "one"},
		assets + "icon.svg":         {http.StatusOK, "image/svg+xml", "<svg/>"},
		"/llms.txt":                 {http.StatusOK, "text/plain; charset=utf-8", "# caddymedia\n"},
		"/llms-full.txt":            {http.StatusOK, "text/plain; charset=utf-8", "<!-- README.md -->\n"},
		"/install.md":               {http.StatusOK, "text/plain; charset=utf-8", "# Install\n"},
		"/docs.go":                  {http.StatusNotFound, "", ""},
		"/../docs/install.md":       {http.StatusNotFound, "", ""},
		assets + "secret.txt":       {http.StatusNotFound, "", ""},
		assets + "index.html":       {http.StatusNotFound, "", ""},
		assets + "none.js":          {http.StatusNotFound, "", ""},
		assets + "../" + "app.js":   {http.StatusNotFound, "", ""},
		"/assets/other/app.js":      {http.StatusNotFound, "", ""},
		"/app.js":                   {http.StatusNotFound, "", ""},
		"/assets/" + p.version + "": {http.StatusNotFound, "", ""},
	} {
		w := httptest.NewRecorder()
		served := p.serve(w, httptest.NewRequest(http.MethodGet, "/x"+rest, nil), "/x", rest)
		if served == (want.status == http.StatusNotFound) {
			t.Errorf("%s: served %t", rest, served)
		}
		if served && (w.Code != want.status || want.contentType != "" && w.Header().Get("Content-Type") != want.contentType ||
			!strings.HasPrefix(w.Body.String(), want.start)) {
			t.Errorf("%s: %d %v %s", rest, w.Code, w.Header(), w.Body)
		}
	}
	if testPages(t, "one").version != p.version || testPages(t, "two").version == p.version {
		t.Error("the version does not go with the contents")
	}
	if _, err := newPages(fstest.MapFS{"app.js": {}}); err == nil {
		t.Error("pages without a page are no error")
	}
}

// TestEmbeddedPages: the panel can serve all embedded files.
func TestEmbeddedPages(t *testing.T) {
	t.Parallel()
	p, err := newPages(web.Files)
	if err != nil {
		t.Fatal(err)
	}
	for name := range p.files {
		if name != indexFile && name != loginFile && name != strangerFile && contentTypes[path.Ext(name)] == "" {
			t.Errorf("%s is never served", name)
		}
	}
	for _, name := range openFiles {
		if p.files[name] == nil {
			t.Errorf("there is no %s for the login page", name)
		}
	}
}
