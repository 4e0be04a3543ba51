package docs_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestDocsPanel sets up the panel as documented. Only the host name and the allowed network
// differ.
func TestDocsPanel(t *testing.T) {
	const host, network = "panel.example.com", "203.0.113.0/24"
	_, block, _ := strings.Cut(pages.Example(t, "panel.md", "caddyfile", host+" {"), "\n"+host)
	block = host + block
	if !strings.Contains(block, network) {
		t.Fatalf("the example lacks %s:\n%s", network, block)
	}
	address := servers.FreeAddress(t)
	c := site.NewTLSChild(t)
	c.Env = append(c.Env, "PANEL_ALICE="+site.CheapHash, "PANEL_BOB="+site.CheapHash)
	start := func(letIn string) *http.Client {
		c.Sites = strings.NewReplacer(host, "https://"+address, network, letIn).Replace(block)
		c.Start("tokens memory\n" + site.Account + site.LocalDefault)
		client := &http.Client{Timeout: site.Patience, Transport: c.HTTP2().Transport}
		t.Cleanup(client.CloseIdleConnections)
		return client
	}
	sessions := map[string]*http.Cookie{"carol": {Name: "__Host-media-admin", Value: "made-up"}}
	ask := func(client *http.Client, method, path, user, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, "https://"+address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", site.JSON)
		if method == http.MethodPut {
			r.Header.Set("If-None-Match", "*")
		}
		if user != "" {
			r.AddCookie(sessions[user])
		}
		answer, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		b, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(b)
	}

	inside := start("127.0.0.0/8")
	for _, user := range []string{"alice", "bob"} {
		sessions[user] = site.PanelSession(t, inside, "https://"+address+"/login", user)
		if c := sessions[user]; c.Name != "__Host-media-admin" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
			t.Errorf("the cookie of %s: %v", user, c)
		}
	}
	archive, err := json.Marshal(site.LocalStorage(c.Root + "-archive"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		method, path, user, body string
		status                   int
	}{
		{http.MethodGet, "/", "", "", http.StatusOK}, // the login page
		{http.MethodGet, "/api/storages", "", "", http.StatusUnauthorized},
		{http.MethodGet, "/api/storages", "carol", "", http.StatusUnauthorized},
		{http.MethodGet, "/", "bob", "", http.StatusOK},
		{http.MethodGet, "/api/storages", "bob", "", http.StatusOK},
		{http.MethodPut, "/api/config/storages/archive", "bob", string(archive), http.StatusForbidden},
		{http.MethodPut, "/api/config/storages/archive", "alice", string(archive), http.StatusCreated},
	} {
		if status, answer := ask(inside, tt.method, tt.path, tt.user, tt.body); status != tt.status {
			t.Errorf("%s %s of %q: %d %.300s, want %d", tt.method, tt.path, tt.user, status, answer, tt.status)
		}
	}
	c.Stop()

	if status, answer := ask(start(network), http.MethodGet, "/login", "", ""); status != 0 {
		t.Errorf("from elsewhere: %d %.300s, want nothing", status, answer)
	}
}
