package docs_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestDocsMoving serves an existing folder as documented. Only the names of the folder, the host and
// the account differ.
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
