package docs_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestReadmePanel sets up the panel as in the README. Only the host name and the allowed network
// differ.
func TestReadmePanel(t *testing.T) {
	const host, network = "panel.example.com", "203.0.113.0/24"
	block := site.ReadmeBlock(t, host+" {")
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

// TestReadmeAdmin runs the README's commands for the admin endpoint.
func TestReadmeAdmin(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		site.Skip(t, "curl is not installed")
	}
	admin := servers.FreeAddress(t)
	s, _ := site.RunExample(t, admin)
	s.Login(t, "try-out", "only for trying out")
	for _, tt := range []struct{ line, want string }{
		{"curl -s localhost:2019/media/health", `"state":"up"`},
		{"curl -s localhost:2019/metrics | grep ^caddy_media_", "\ncaddy_media_storage_up{"},
		{"curl -s -X POST localhost:2019/media/storages/default/probe", `{"ok":true`},
		{"curl -s 'localhost:2019/media/items/img/content?folder=26-11/20&limit=10'", `"folder":"26-11/20"`},
		{"curl -s -X DELETE localhost:2019/media/accounts/try-out/tokens", `{"ended":1}`},
	} {
		if readmeHas := strings.Contains(site.ReadmeText(t), "\n"+tt.line+"\n"); !readmeHas {
			t.Errorf("the README has no line %s", tt.line)
		}
		command := strings.NewReplacer("curl ", curl+" ", "localhost:2019", admin).Replace(tt.line)
		var out string
		site.Eventually(t, tt.line+" answers "+tt.want, func() bool {
			b, err := exec.Command("sh", "-c", command).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v %s", command, err, b)
			}
			out = string(b)
			return strings.Contains(out, tt.want)
		})
	}
}
