package adminapi

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/test/testcaddy"
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

// TestItemsOnly: a user who may use items and nothing else gets what their pages need, of the
// aliases of the user. Any other route is refused.
func TestItemsOnly(t *testing.T) {
	root := load(t, `{"storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}, "dead": {"driver": {"name": "foreign", "fault": "unavailable", "word": "hidden"}}},
		"image_aliases": {"photos": {"private": {}, "storage": "main"}}, "file_aliases": {"docs": {"storage": "main"}, "other": {"storage": "main"}, "far": {"storage": "dead"}},
		"accounts": {"site-one": {"password_hash": "`+hash+`", "aliases": ["photos"]}}}`)
	files(t, root+"/img/photos", "a.jpg")
	files(t, root+"/file/docs", "a.txt")
	panel, err := NewEditor(Off, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	limited := func(rights ...access.Right) http.Handler {
		account := access.Account{APIKey: "carla", Aliases: []string{"photos", "docs", "far"}, Rights: rights}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			panel.ServeHTTP(w, r.WithContext(WithItemsOnly(r.Context(), account)))
		})
	}
	all, list := limited(access.Rights()...), limited(access.List)
	for _, route := range routes {
		if slices.Contains(itemRoutes, route.pattern) {
			continue
		}
		path := "/" + strings.NewReplacer("**", "a", "*", "docs").Replace(route.pattern)
		wantError(t, ask(t, all, cmp.Or(route.method, http.MethodPost), path, "{}"), http.StatusForbidden, "items only")
	}
	for _, path := range []string{"/facts/file/other/a.txt", "/facts/file/none/a.txt", "/preview/file/other/a.txt", "/preview/file/none/a.txt"} {
		wantError(t, ask(t, all, http.MethodGet, path, ""), http.StatusNotFound, "There is no alias")
	}
	wantError(t, ask(t, all, http.MethodPost, "/zip/file/other", "filename=a.txt"), http.StatusNotFound, "There is no alias")
	wantError(t, ask(t, all, http.MethodGet, "/preview/file/far/a.mp4", ""), http.StatusServiceUnavailable, "This cannot be read now. Try again later.")
	if w := ask(t, all, http.MethodGet, "/preview/file/docs/a.txt", ""); w.Code != http.StatusOK || w.Body.String() != "x" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for handler, signed := range map[*http.Handler]bool{&all: true, &list: false} {
		facts := decoded[factsAnswer](t, ask(t, *handler, http.MethodGet, "/facts/img/photos/a.jpg", ""), http.StatusOK)
		if (facts.Query != "") != signed {
			t.Errorf("signed %q, want %t", facts.Query, signed)
		}
	}
	w := ask(t, all, http.MethodGet, "/aliases", "")
	for _, hidden := range []string{"other", "site-one", "main", "dead", root} {
		if strings.Contains(w.Body.String(), hidden) {
			t.Errorf("%s is shown: %s", hidden, w.Body)
		}
	}
	if got := strings.Count(w.Body.String(), `"name"`); got != 3 {
		t.Errorf("%d aliases: %s", got, w.Body)
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

// onEndpoint returns a client of Caddy's admin endpoint.
func onEndpoint(t *testing.T, app string) (client *http.Client, root string) {
	t.Helper()
	root = testcaddy.SocketFolder(t)
	socket := filepath.Join(root, "admin.sock")
	loadAdmin(t, strings.ReplaceAll(app, "$ROOT", root), `{"listen": "unix/`+socket+`", "config": {"persist": false}}`)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, root
}

// send sends a request and returns the answer as a recorder.
func send(t *testing.T, client *http.Client, method, address string) *httptest.ResponseRecorder {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, address, err)
	}
	defer response.Body.Close()
	w := httptest.NewRecorder()
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	if _, err := io.Copy(w, response.Body); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestEndpoint: the admin endpoint has the handler's routes below /media, even after a rejected
// configuration.
func TestEndpoint(t *testing.T) {
	client, root := onEndpoint(t, oneFolder)
	files(t, root+"/file/docs", "a b%.pdf")
	check := func() {
		t.Helper()
		storage := decoded[storageAnswer](t, send(t, client, http.MethodGet, "/media/storages/main"), http.StatusOK)
		if storage.Settings["root"] != root {
			t.Errorf("%+v", storage)
		}
		item := send(t, client, http.MethodGet, "/media/items/file/docs/a%20b%25.pdf")
		if item.Code != http.StatusOK || !strings.Contains(item.Body.String(), `"full_path":"/static/file/docs/a%20b%25.pdf","filename":"a b%.pdf"`) {
			t.Errorf("%d %s", item.Code, item.Body)
		}
		for _, address := range []string{"/media", "/media/", "/media/nothing"} {
			wantError(t, send(t, client, http.MethodGet, address), http.StatusNotFound, "nothing at this address")
		}
		wantError(t, send(t, client, http.MethodPut, "/media/storages"), http.StatusMethodNotAllowed, "GET")
	}
	check()
	refused := `{"apps": {"media": {"storages": {"main": {}}}}, "admin": {"listen": "unix/` + filepath.Join(root, "other.sock") + `", "config": {"persist": false}}}`
	if err := caddy.Load([]byte(refused), true); err == nil {
		t.Fatal("it was not refused")
	}
	// Caddy has replaced the endpoint already, by one whose modules have never run.
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(root, "other.sock"))
	}
	client.CloseIdleConnections()
	check()
}
