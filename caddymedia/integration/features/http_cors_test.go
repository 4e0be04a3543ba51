package features_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestCORS: a page of another origin may use the service over every version of HTTP, and read errors
// that Caddy writes. A reload ends it.
func TestCORS(t *testing.T) {
	const page = "https://www.example.com"
	config := site.Config{
		Media: site.Basic + "cors " + page + "\n", TLS: true,
		Site: "encode gzip\nmedia\nhandle_errors 404 {\nrespond \"no such item\" 404\n}\nrespond \"another page\" 200",
	}
	s := site.StartConfig(t, config)
	credentials := s.Credentials(t)
	from := site.Headers("Origin", page)
	ask := site.Merged(from, site.Headers("Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "content-type,http_service_access_token,http_service_api_key"))
	allowed := func(r *site.Reply, want string) {
		t.Helper()
		if got := r.Header.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("%s %d: allowed %q, want %q", r.Proto, r.Status, got, want)
		}
	}
	clients := s.Clients(t)
	for proto, client := range clients {
		send := func(method, path string, header http.Header, body string) *site.Reply {
			return s.Send(t, client, s.Request(t, method, path, header, strings.NewReader(body)))
		}
		r := send(http.MethodOptions, "/api/upload/image", ask, "")
		if r.Proto != proto || r.Status != http.StatusNoContent || r.Header.Get("Access-Control-Max-Age") != "86400" || r.Body != "" {
			t.Errorf("preflight: %+v", r)
		}
		allowed(r, page)
		r = send(http.MethodPost, "/api/upload/image", site.Merged(from, credentials, site.FormType), site.Form(site.File("a.gif", sample.GIF(t))))
		allowed(r, page)
		path := strings.TrimPrefix(r.One(t).FullPath, s.URL)
		r = send(http.MethodGet, path, from, "")
		allowed(r, page)
		r = send(http.MethodGet, path+"x", from, "")
		allowed(r, page)
		if r.Status != http.StatusNotFound || r.Body != "no such item" || r.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(strings.Join(r.Header["Vary"], ","), "Origin") {
			t.Errorf("missing item: %+v", r)
		}
		allowed(send(http.MethodOptions, "/elsewhere", ask, ""), "")
	}
	config.Media = site.Basic
	s.Load(t, config)
	r := s.Do(t, http.MethodOptions, "/api/upload/image", ask, "")
	allowed(r, "")
	if r.Status != http.StatusMethodNotAllowed || r.Header["Access-Control-Max-Age"] != nil {
		t.Errorf("without cors: %+v", r)
	}
}
