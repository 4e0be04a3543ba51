package adminapi

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/testcaddy"
)

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
