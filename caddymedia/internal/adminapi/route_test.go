package adminapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// oneFolder stores all items in the folder $ROOT, without changing their names.
const oneFolder = `{"storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}, "sanitize": false}},
	"image_aliases": {"photos": {"webp": {}}}, "file_aliases": {"docs": {}},
	"accounts": {"site-one": {"password_hash": "` + hash + `", "aliases": ["photos"]}}}`

func TestRefusals(t *testing.T) { // not parallel: Caddy has globals
	load(t, oneFolder)
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/", 404, ""},
		{"GET", "/nothing", 404, ""},
		{"GET", "/storages/", 404, ""},
		{"GET", "/storages/none", 404, ""},
		{"GET", "/storages/main/other", 404, ""},
		{"GET", "/items", 404, ""},
		{"GET", "/items/img", 404, ""},
		{"GET", "/facts/img", 404, ""},
		{"GET", "/facts/img/none/a.jpg", 404, ""},
		{"GET", "/facts/sound/photos/a.jpg", 404, ""},
		{"GET", "/preview/img/photos/a.jpg", 404, ""},
		{"POST", "/zip/img/photos", 404, ""},
		{"GET", "/uploads?limit=0", 400, ""},
		{"GET", "/uploads?limit=201", 400, ""},
		{"GET", "/uploads?limit=many", 400, ""},
		{"GET", "/uploads?cursor=!", 400, ""},
		{"DELETE", "/accounts/nobody/tokens", 404, ""},
		{"POST", "/storages/none/probe", 404, ""},

		{"POST", "/storages", 405, "GET, HEAD"},
		{"PUT", "/storages/main", 405, "GET, HEAD"},
		{"GET", "/storages/main/probe", 405, "POST"},
		{"GET", "/probe", 405, "POST"},
		{"OPTIONS", "/health", 405, "GET, HEAD"},
		{"GET", "/accounts/site-one/tokens", 405, "DELETE"},
		{"POST", "/facts/file/docs/a.pdf", 405, "GET, HEAD"},
		{"TRACE", "/kinds", 405, "GET, HEAD"},
	} {
		w := ask(t, New(), c.method, "http://localhost"+c.path, "")
		wantError(t, w, c.status, "")
		if got := w.Header().Get("Allow"); got != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, got, c.allow)
		}
	}
}

// TestWithoutApp: requests are answered with 503 while no app runs.
func TestWithoutApp(t *testing.T) {
	wantError(t, ask(t, New(), http.MethodGet, "/storages", ""), http.StatusServiceUnavailable, "not running")
	if err := caddy.Load([]byte(`{"admin": {"disabled": true, "config": {"persist": false}}}`), true); err != nil {
		t.Fatal(err)
	}
	defer caddy.Stop()
	wantError(t, ask(t, New(), http.MethodGet, "/storages", ""), http.StatusServiceUnavailable, "not running")
}

// TestNames: an item of any name is found under its address, below any prefix.
func TestNames(t *testing.T) {
	root := load(t, oneFolder)
	handler := New()
	mux := http.NewServeMux()
	for _, prefix := range []string{"/media", "/media-admin/api"} {
		mux.Handle(prefix+"/", http.StripPrefix(prefix, handler))
	}
	files(t, root+"/file/docs", "folder/x.pdf")
	wantError(t, ask(t, handler, http.MethodGet, "/items/file/docs/folder%2Fx.pdf", ""), http.StatusNotFound, "nothing at this address")
	for _, name := range []string{
		"plain.pdf", "with space.pdf", "100%.pdf", "100%25.pdf", "a+b.pdf", "what?.pdf", "a#b.pdf", "a&b=c.pdf",
		"příliš žluťoučký.pdf", "日本/語.pdf", "<img src=x onerror=alert(1)>.pdf", `"quoted".pdf`, "a;b.pdf",
		"26-11/20/deep down/x.pdf", "a:b.pdf", "~user.pdf", "a%2fb.pdf", "{env.HOME}.pdf",
	} {
		files(t, root+"/file/docs", name)
		segments := strings.Split(name, "/")
		for i := range segments {
			segments[i] = url.PathEscape(segments[i])
		}
		escaped := strings.Join(segments, "/")
		for _, prefix := range []string{"/media", "/media-admin/api"} {
			w := ask(t, mux, http.MethodGet, prefix+"/items/file/docs/"+escaped, "")
			if w.Code != http.StatusOK {
				t.Errorf("%s%q: %d %s", prefix, name, w.Code, w.Body)
				continue
			}
			var answer struct {
				Result []struct {
					FullPath string `json:"full_path"`
					Filename string
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Result[0].Filename != name ||
				answer.Result[0].FullPath != "/static/file/docs/"+escaped {
				t.Errorf("%q: %v %s", name, err, w.Body)
			}
			if h := w.Header(); h.Get("Content-Type") != "application/json" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%q: a browser may take the answer for HTML: %v", name, h)
			}
		}
	}
}

func TestHead(t *testing.T) {
	load(t, oneFolder)
	server := httptest.NewServer(New())
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, server.URL+"/storages", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK || response.ContentLength <= 0 {
		t.Errorf("%d, length %d", response.StatusCode, response.ContentLength)
	}
}
