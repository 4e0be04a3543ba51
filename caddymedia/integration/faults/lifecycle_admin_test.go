package faults_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestSecretsStayHidden: the values of secrets that are configured as placeholders are in no
// output.
func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	const secret = "the-password-of-redis"
	c := site.NewChild(t, "MEDIA_TEST_REDIS="+secret, "MEDIA_TEST_HASH="+site.CheapHash)
	c.Env = append(c.Env, "MEDIA_TEST_ROOT="+filepath.Join(c.Root, "from-the-environment"))
	config := strings.ReplaceAll(site.Binaries, "$ROOT/keep", "{env.MEDIA_TEST_ROOT}") +
		"account " + site.APIKey + " {env.MEDIA_TEST_HASH}\n"
	redis := "tokens redis {\naddresses 127.0.0.1:1\nusername somebody\npassword {env.MEDIA_TEST_REDIS}\n}\n"
	c.Start(redis + config)
	client := c.HTTP1()
	if r := client.Login(t, site.Password); r.Status != http.StatusServiceUnavailable {
		t.Errorf("a login without Redis: %v", r)
	}
	hides := func(where, text string) {
		t.Helper()
		for _, hidden := range []string{secret, site.CheapHash} {
			if strings.Contains(text, hidden) {
				t.Errorf("%s shows %q", where, hidden)
			}
		}
	}
	_, shown := c.Ask(http.MethodGet, "/config/", "")
	hides("/config/", shown)
	for _, name := range []string{"{env.MEDIA_TEST_REDIS}", "{env.MEDIA_TEST_HASH}", "{env.MEDIA_TEST_ROOT}"} {
		if !strings.Contains(shown, name) {
			t.Errorf("/config/ has no %s", name)
		}
	}
	if strings.Contains(shown, "from-the-environment") {
		t.Error("/config/ shows the expanded root")
	}
	for _, path := range []string{"/metrics", "/config/apps/media/tokens", "/config/apps/media/accounts"} {
		_, shown := c.Ask(http.MethodGet, path, "")
		hides(path, shown)
	}
	saved, err := os.ReadFile(filepath.Join(c.Home, "config", "caddy", "autosave.json"))
	if err != nil {
		t.Error(err)
	}
	hides("the saved configuration", string(saved))

	// Another change keeps the placeholder, which still works.
	c.MustLoad("tokens memory\n" + config)
	if status, answer := c.Change(http.MethodPut, "token_lifetime", `"2h"`); status != http.StatusOK {
		t.Errorf("a new lifetime: %d %s", status, answer)
	}
	client.MustPut(t, client.MustLogin(t), "content", "small.bin", []byte("x"))
	site.MustHaveOnly(t, filepath.Join(c.Root, "from-the-environment"), "small.bin")
	_, shown = c.Ask(http.MethodGet, "/config/", "")
	hides("/config/ after a change", shown)
	hides("the log", c.Output())
}

// TestStorageOverAdminAPI edits a storage as the panel does. A stale or broken edit is refused, and
// the old configuration continues.
func TestStorageOverAdminAPI(t *testing.T) {
	t.Parallel()
	const path = "storages/keep"
	c := site.NewChild(t)
	c.Start(site.OnBolt)
	client := c.HTTP1()
	token := client.MustLogin(t)
	r := c.Request(http.MethodGet, "/config/apps/media/"+path, "")
	r.Body.Close()
	etag := r.Header.Get("ETag")
	patch := func(folder string, headers ...string) (int, string) {
		t.Helper()
		return c.Change(http.MethodPatch, path, `{"driver": {"name": "local", "root": "`+folder+`"}}`, headers...)
	}
	moved := filepath.Join(c.Root, "moved")
	if status, answer := patch(moved, "If-Match", etag); status != http.StatusOK {
		t.Fatalf("the first edit: %d %s", status, answer)
	}
	stored := client.MustPut(t, token, "content", "moved.bin", []byte("x"))
	site.MustHaveOnly(t, moved, stored)
	if status, answer := patch(filepath.Join(c.Root, "lost"), "If-Match", etag); status != http.StatusPreconditionFailed {
		t.Errorf("a stale edit is answered with %d %s, want 412", status, answer)
	}
	for want, broken := range map[string]string{
		"no-such-driver": `{"driver": {"name": "no-such-driver"}}`,
		"root":           `{"driver": {"name": "local"}}`,
		"MEDIA_NOT_SET":  `{"driver": {"name": "local", "root": "{env.MEDIA_NOT_SET}"}}`,
		"overwrite":      `{"driver": {"name": "local", "root": "x"}, "overwrite_strategy": "sometimes"}`,
		"rooot":          `{"driver": {"name": "local", "rooot": "x"}}`,
		"driver":         `{}`,
		"sub_folder":     `{"driver": {"name": "local", "root": "x"}, "sub_folder_format": "../%Y"}`,
	} {
		status, answer := c.Change(http.MethodPatch, path, broken)
		if status < 400 || !strings.Contains(answer, want) || !strings.Contains(answer, "keep") {
			t.Errorf("%s: %d %s, want an error that names the storage and %q", broken, status, answer, want)
		}
		client.MustFetch(t, "content", stored, []byte("x"))
		client.MustPut(t, token, "content", "again.bin", []byte("x"))
	}
	// A storage in use cannot be removed.
	if status, answer := c.Change(http.MethodDelete, path, ""); status < 400 || !strings.Contains(answer, `keep`) {
		t.Errorf("deleting a storage of an alias: %d %s", status, answer)
	}
	if got := len(site.FilesBelow(t, moved)); got != 8 {
		t.Errorf("%d files are stored, want 8", got)
	}
	if site.Exists(filepath.Join(c.Root, "lost")) || site.Exists(filepath.Join(c.Home, "x")) {
		t.Error("a refused storage has made its folder")
	}
}

// TestRootCannotBeMade: the root of a storage is below a file. Everything else works, and the
// storage works once the file is removed.
func TestRootCannotBeMade(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	if err := os.Mkdir(c.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	obstacle := filepath.Join(c.Root, "keep")
	if err := os.WriteFile(obstacle, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	below := strings.ReplaceAll(site.OnBolt, "$ROOT/keep", "$ROOT/keep/below")
	c.Start(below)
	site.Eventually(t, "the log has it", func() bool {
		return strings.Contains(c.Output(), "storage unreachable")
	})
	client := c.HTTP1()
	token := client.MustLogin(t)
	r, _ := client.Put(t, token, "content", "small.bin", []byte("x"))
	if r.Status != http.StatusBadGateway && r.Status != http.StatusServiceUnavailable {
		t.Errorf("an upload is answered with %v, want 502 or 503", r)
	}
	wantNoDetail(t, r, c.Root, "/", "below", "directory")
	if status, body := client.Fetch(t, "content", "small.bin"); status != http.StatusBadGateway &&
		status != http.StatusServiceUnavailable || strings.Contains(string(body), "below") {
		t.Errorf("a download is answered with %d %q, want 502 or 503", status, body)
	}
	client.MustPut(t, token, "over", "small.bin", []byte("x")) // the other storage
	if status, _ := client.Fetch(t, "none", "small.bin"); status != http.StatusNotFound {
		t.Errorf("an unknown alias answers %d", status)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	stored := client.MustPut(t, token, "content", "small.bin", []byte("x"))
	client.MustFetch(t, "content", stored, []byte("x"))
}
