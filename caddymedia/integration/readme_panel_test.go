package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestReadmePanel sets up the panel as in the README. Only the host name and the allowed network
// differ.
func TestReadmePanel(t *testing.T) {
	const host, network = "panel.example.com", "203.0.113.0/24"
	block := readmeBlock(t, host+" {")
	if !strings.Contains(block, network) {
		t.Fatalf("the example lacks %s:\n%s", network, block)
	}
	address := servers.FreeAddress(t)
	c := newTLSChild(t)
	c.env = append(c.env, "PANEL_ALICE="+cheapHash, "PANEL_BOB="+cheapHash)
	start := func(letIn string) *http.Client {
		c.sites = strings.NewReplacer(host, "https://"+address, network, letIn).Replace(block)
		c.start("tokens memory\n" + account + localDefault)
		client := &http.Client{Timeout: patience, Transport: c.http2().Transport}
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
		r.Header.Set("Content-Type", asJSON)
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
		sessions[user] = panelSession(t, inside, "https://"+address+"/login", user)
		if c := sessions[user]; c.Name != "__Host-media-admin" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
			t.Errorf("the cookie of %s: %v", user, c)
		}
	}
	archive, err := json.Marshal(local(c.root + "-archive"))
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
	c.stop()

	if status, answer := ask(start(network), http.MethodGet, "/login", "", ""); status != 0 {
		t.Errorf("from elsewhere: %d %.300s, want nothing", status, answer)
	}
}

// TestReadmeAdmin runs the README's commands for the admin endpoint.
func TestReadmeAdmin(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		skip(t, "curl is not installed")
	}
	admin := servers.FreeAddress(t)
	s, _ := runExample(t, admin)
	s.login(t, "try-out", "only for trying out")
	for _, tt := range []struct{ line, want string }{
		{"curl -s localhost:2019/media/health", `"state":"up"`},
		{"curl -s localhost:2019/metrics | grep ^caddy_media_", "\ncaddy_media_storage_up{"},
		{"curl -s -X POST localhost:2019/media/storages/default/probe", `{"ok":true`},
		{"curl -s 'localhost:2019/media/items/img/content?folder=26-11/20&limit=10'", `"folder":"26-11/20"`},
		{"curl -s -X DELETE localhost:2019/media/accounts/try-out/tokens", `{"ended":1}`},
	} {
		if readmeHas := strings.Contains(readmeText(t), "\n"+tt.line+"\n"); !readmeHas {
			t.Errorf("the README has no line %s", tt.line)
		}
		command := strings.NewReplacer("curl ", curl+" ", "localhost:2019", admin).Replace(tt.line)
		var out string
		eventually(t, tt.line+" answers "+tt.want, func() bool {
			b, err := exec.Command("sh", "-c", command).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v %s", command, err, b)
			}
			out = string(b)
			return strings.Contains(out, tt.want)
		})
	}
}
