package http_test

import (
	"cmp"
	"net/http"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestAddresses: behind a proxy that Caddy trusts, an address begins with the scheme and host that
// the proxy names. A stranger cannot change it.
func TestAddresses(t *testing.T) {
	for servers, want := range map[string]string{"": "", "trusted_proxies static 127.0.0.1": "https://www.example"} {
		s := site.StartConfig(t, site.Config{Media: site.Basic, Site: "media", Servers: servers})
		header := site.Merged(s.Credentials(t), site.FormType, site.Headers("X-Forwarded-Host", "www.example", "X-Forwarded-Proto", "https"))
		got := s.Do(t, http.MethodPost, "/api/upload/file", header, site.Form(site.File("a.txt", "x"))).One(t)
		if want := cmp.Or(want, s.URL) + "/static/file/content/" + got.Filename; got.FullPath != want {
			t.Errorf("full_path %s, want %s", got.FullPath, want)
		}
	}
}
