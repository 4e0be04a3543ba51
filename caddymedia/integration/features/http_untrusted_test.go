package features_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestForgedAddress: a client that forges X-Forwarded-For gets no additional attempts. Behind a
// proxy that Caddy trusts, each client has its own.
func TestForgedAddress(t *testing.T) {
	media := site.Basic + "limits {\nlogin_failures 3\n}\n"
	forged := func(i int) []string {
		return []string{
			"X-Forwarded-For", fmt.Sprintf("10.0.0.%d", i), "X-Real-Ip", fmt.Sprintf("10.0.1.%d", i),
			"Forwarded", fmt.Sprintf("for=10.0.2.%d", i), "True-Client-Ip", fmt.Sprintf("10.0.3.%d", i), "Cf-Connecting-Ip", fmt.Sprintf("10.0.4.%d", i),
		}
	}
	s := site.Start(t, media, "media")
	for i := range 6 {
		want := http.StatusUnauthorized
		if i >= 3 {
			want = http.StatusTooManyRequests
		}
		if r := s.Login(t, fmt.Sprint("nobody-", i), "x", forged(i)...); r.Status != want {
			t.Errorf("guess %d: %d, want %d", i, r.Status, want)
		}
	}
	proxied := site.StartConfig(t, site.Config{
		Media: strings.Replace(media, "failures 3", "failures 4", 1), Site: "media", Servers: "trusted_proxies static 127.0.0.1\ntrusted_proxies_strict",
	})
	for i := range 12 {
		client := fmt.Sprintf("192.0.2.%d", i%2)
		want := http.StatusUnauthorized
		if i >= 8 {
			want = http.StatusTooManyRequests
		}
		// The proxy appends the address of the client to the forged value.
		if r := proxied.Login(t, fmt.Sprint("nobody-", i), "x", "X-Forwarded-For", fmt.Sprintf("10.0.0.%d, %s", i, client)); r.Status != want {
			t.Errorf("guess %d of %s: %d, want %d", i/2, client, r.Status, want)
		}
	}
	if r := proxied.Login(t, site.APIKey, site.Password, "X-Forwarded-For", "192.0.2.9"); r.Status != http.StatusOK {
		t.Errorf("another client: %d", r.Status)
	}
}

// TestDottedHeaders: no other spelling of a name reaches the service as the documented one
// (GHSA-49wc-4hcv-v58q).
func TestDottedHeaders(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	token := s.Token(t, site.APIKey)
	body := site.Form(site.File("a.gif", sample.GIF(t)))
	for _, names := range [][2]string{
		{"HTTP.SERVICE.API.KEY", "HTTP.SERVICE.ACCESS.TOKEN"},
		{"Service_Api_Key", "Service_Access_Token"},
		{"Service.Api.Key", "Service.Access.Token"},
		{"HTTP_SERVICE-API-KEY", "HTTP_SERVICE-ACCESS-TOKEN"},
		{"HTTP_SERVICE.API_KEY", "HTTP_SERVICE.ACCESS_TOKEN"},
		{"X-Api-Key", "X-Access-Token"},
	} {
		header := site.Merged(site.Headers(names[0], site.APIKey, names[1], token), site.FormType)
		s.Do(t, http.MethodPost, "/api/upload/image", header, body).Failures(t, http.StatusUnauthorized)
	}
	s.WantNothing(t)
}
