package adminapi

import (
	"net/http"
	"net/http/httptest"
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
