package docs_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestDocsMoving serves an existing folder as documented. Only the names of the folder, the host
// and the account differ.
func TestDocsMoving(t *testing.T) {
	const folder, host = "/var/www/uploads", "media.example.com {"
	config := pages.Example(t, "moving.md", "caddyfile", "prefix /\n")
	address := servers.FreeAddress(t)
	_, sites, found := strings.Cut(config, "\n"+host)
	if !found || !strings.Contains(config, folder) {
		t.Fatalf("the example lacks %s or %s:\n%s", folder, host, config)
	}
	c := site.NewChild(t, "SHOP_PASSWORD_HASH="+site.CheapHash)
	c.Sites = "http://" + address + " {" + sites
	image := sample.JPEG(t, 40, 30)
	for _, name := range []string{"2024/05/photo.jpg", ".hidden.jpg"} {
		site.PutFile(t, filepath.Join(c.Root, filepath.FromSlash(name)), image)
	}
	c.Start("tokens memory\n" + strings.ReplaceAll(pages.Media(t, config), folder, c.Root))
	client := c.HTTP1()
	get := func(path string) *site.Reply { return client.FetchURL(t, "http://"+address+path) }
	for _, path := range []string{"/uploads/2024/05/photo.jpg", "/static/img/uploads/2024/05/photo.jpg"} {
		if r := get(path); r.Status != http.StatusOK || r.Body != image || r.Header.Get("Cache-Control") != "public, max-age=3600" {
			t.Errorf("%s: %d, %v", path, r.Status, r.Header)
		}
	}
	if r := get("/uploads/.hidden.jpg"); r.Status != http.StatusNotFound {
		t.Errorf("a hidden file: %d", r.Status)
	}
	if r := c.Media("variants", "uploads", "--config", filepath.Join(c.Home, "Caddyfile"), "--adapter", "caddyfile"); r.Code != 0 {
		t.Fatalf("making variants: %+v", r)
	}
	if r := get("/uploads/2024/05/photo.jpg.webp"); r.Status != http.StatusOK {
		t.Errorf("the variant: %d", r.Status)
	}
}

// TestDocsFacts: an image of the documented configuration has the documented facts.
func TestDocsFacts(t *testing.T) {
	const account, folder = "account shop {env.SHOP_PASSWORD_HASH}", "/srv/media"
	config := pages.Media(t, pages.Example(t, "http-uploads.md", "caddyfile", "facts thumbhash"))
	if !strings.Contains(config, account) || !strings.Contains(config, folder) {
		t.Fatalf("the example lacks %s or %s:\n%s", account, folder, config)
	}
	s := site.Start(t, strings.NewReplacer(account, site.Account, folder, "$ROOT").Replace(config), "media")
	r := s.UploadImage(t, site.Field("alias", "photos"), site.Field("sub_folder", "/"), site.File("a.jpg", sample.PhotoJPEG(900, 600)))
	var answer struct{ Result []map[string]any }
	var want map[string]any
	example := pages.Example(t, "http-uploads.md", "json", `{"width"`)
	if err := json.Unmarshal([]byte(strings.ReplaceAll(r.Body, s.URL, "https://media.example.com")), &answer); err != nil || len(answer.Result) != 1 {
		t.Fatal(r, err)
	}
	if err := json.Unmarshal([]byte(example), &want); err != nil {
		t.Fatal(err)
	}
	got := answer.Result[0]
	for _, name := range []string{"full_path", "filename", "webp", "renditions"} {
		delete(got, name)
	}
	if !reflect.DeepEqual(got, want) {
		text, _ := json.Marshal(got) // it was JSON before
		t.Errorf("%s\nThe documentation shows\n%s", text, example)
	}
}

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
	c.Env = append(c.Env, "PANEL_ALICE="+site.CheapHash, "PANEL_BOB="+site.CheapHash, "PANEL_CARLA="+site.CheapHash)
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
	for _, user := range []string{"alice", "bob", "carla"} {
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
		{http.MethodGet, "/api/aliases", "carla", "", http.StatusOK},
		{http.MethodGet, "/api/storages", "carla", "", http.StatusForbidden},
		{http.MethodPut, "/api/config/storages/archive", "carla", string(archive), http.StatusForbidden},
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

// TestDocsUpgradeResumed: a program that would not start with the saved configuration says so when
// it validates that file, and not when it validates the Caddyfile.
func TestDocsUpgradeResumed(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start("tokens memory\n" + site.Account + site.LocalDefault)
	c.Stop()
	saved := filepath.Join(c.Home, "config", "caddy", "autosave.json")
	validate := func(args ...string) (string, error) {
		out, err := c.Program(append([]string{"validate", "--config"}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := validate(saved); err != nil || !strings.HasSuffix(out, "Valid configuration\n") {
		t.Errorf("%v\n%s", err, out)
	}
	site.PutFile(t, saved, strings.Replace(string(site.ReadFile(t, saved)), `"storages":`, `"newer":1,"storages":`, 1))
	if out, err := validate(saved); err == nil || !strings.Contains(out, "newer") {
		t.Errorf("an option of a newer version: %v\n%s", err, out)
	}
	if out, err := validate(filepath.Join(c.Home, "Caddyfile"), "--adapter", "caddyfile"); err != nil {
		t.Errorf("the Caddyfile: %v\n%s", err, out)
	}
}

// TestDocsUnit: the unit of the recipes is that of the Debian package.
func TestDocsUnit(t *testing.T) {
	t.Parallel()
	want := string(site.ReadFile(t, filepath.Join(pages.Root(t), ".release", "media.service")))
	if got := pages.Example(t, "recipes.md", "systemd", "Description="); got != want {
		t.Errorf("the recipe has\n%s\nThe package has\n%s", got, want)
	}
}

// TestPanelOpenAPI: only logged-in users get the OpenAPI document.
func TestPanelOpenAPI(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	var document, want map[string]any
	if err := json.Unmarshal(mediahttp.OpenAPI, &want); err != nil {
		t.Fatal(err)
	}
	p.As("viewer").Call(t, http.MethodGet, "openapi.json", nil).Decode(t, &document)
	if document["openapi"] != "3.1.0" || len(document) != len(want) {
		t.Errorf("the document is %v", document)
	}
	for _, tt := range []struct {
		user, method, route string
		status              int
	}{
		{"viewer", http.MethodHead, "openapi.json", http.StatusOK},
		{"admin", http.MethodDelete, "openapi.json", http.StatusMethodNotAllowed},
		{"admin", http.MethodGet, "openapi.json/more", http.StatusNotFound},
		{"", http.MethodGet, "openapi.json", http.StatusUnauthorized},
	} {
		if r := p.As(tt.user).Call(t, tt.method, tt.route, nil); r.Status != tt.status {
			t.Errorf("%s %s of %q: %d %.300s, want %d", tt.method, tt.route, tt.user, r.Status, r.Body, tt.status)
		}
	}
}

// TestDocsStorages runs the configuration on the page of each driver with a real server. Only the
// names of the server and of the account differ.
func TestDocsStorages(t *testing.T) {
	for _, kind := range site.RemoteDrivers {
		t.Run(kind.Name, func(t *testing.T) {
			block := pages.Media(t, pages.Example(t, "storage-"+kind.Name+".md", "caddyfile", "{\n"))
			p := kind.Start(t)
			for i := 0; i < len(p.Example); i += 2 {
				if !strings.Contains(block, p.Example[i]) {
					t.Fatalf("the example lacks %q:\n%s", p.Example[i], block)
				}
				block = strings.ReplaceAll(block, p.Example[i], p.Example[i+1])
			}
			block = strings.NewReplacer("account shop", "account "+site.APIKey, "file_alias content\n", "file_alias content {\nextensions bin\n}\n").Replace(block)
			c := site.NewChild(t, append(p.Env, "SHOP_PASSWORD_HASH="+site.CheapHash)...)
			c.Start("tokens memory\n" + block)
			client := c.HTTP1()
			content := sample.Described(1, 3_000_000)
			client.MustFetch(t, "content", client.MustPut(t, client.MustLogin(t), "content", "file.bin", content), content)
		})
	}
}
