package http_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// testForgedAddress: a client that forges X-Forwarded-For gets no additional attempts. Behind a
// proxy that Caddy trusts, each client has its own.
func testForgedAddress(t *testing.T) {
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

func testDottedHeaders(t *testing.T) {
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

func testLineBreaks(t *testing.T) {
	s := site.Start(t, site.Account+"storage default {\ndriver local $ROOT\nsanitize off\n}\nfile_alias content", "media")
	for _, value := range []string{"a\r\nDELE x", "a\nb", "a\rb", "a\u0085b", "a\u2028b"} {
		s.UploadFile(t, site.Field("sub_folder", value), site.File("a.txt", "x")).Failures(t, http.StatusBadRequest)
	}
	for _, encoded := range []string{"a%0d%0aDELE%20x", "a%0ab"} {
		s.Upload(t, "/api/upload/file?sub_folder="+encoded, site.File("a.txt", "x")).Failures(t, http.StatusBadRequest)
		if r := s.Get(t, "/static/file/content/"+encoded+".txt"); r.Status != http.StatusNotFound {
			t.Errorf("fetching %s: %d", encoded, r.Status)
		}
	}
	s.UploadFile(t, site.File("a\r\nX-Injected: 1.txt", "x")).Failures(t, http.StatusBadRequest)
}

func testManyParts(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	header := site.Merged(s.Credentials(t), site.FormType)
	for name, parts := range map[string][]site.Part{
		"fields": {site.Field("x", "")}, "files": {site.File("a.txt", "")}, "empty inputs": {site.File("", "")}, "unknown files": {{Name: "x", File: true}},
	} {
		t.Run(name, func(t *testing.T) {
			one := strings.TrimSuffix(site.Form(parts...), "--"+site.FormBoundary+"--\r\n")
			s.Do(t, http.MethodPost, "/api/upload/file", header, strings.Repeat(one, 1500)+"--"+site.FormBoundary+"--\r\n").Failures(t, http.StatusRequestEntityTooLarge)
		})
	}
	r := s.Do(t, http.MethodPost, site.TokenPath, site.FormType, strings.Repeat(strings.TrimSuffix(site.Form(site.Field("", "")), "--"+site.FormBoundary+"--\r\n"), 800))
	if r.Status != http.StatusBadRequest && r.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("token: %d %s", r.Status, r.Body)
	}
	s.WantNothing(t)
}

// testEncodedWords: RFC 2047 does not apply to forms; such text is a plain name.
func testEncodedWords(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"sanitize off\n}\nfile_alias content", "media")
	for _, name := range []string{"=?utf-8?q?a?=.txt", "=?utf-8?b?" + strings.Repeat("QUFB", 30) + "?=.txt"} {
		if got := s.UploadFile(t, site.File(name, "x")).One(t); got.Filename != name {
			t.Errorf("filename %q, want %q", got.Filename, name)
		}
	}
	s.UploadFile(t, site.File("=?utf-8?q?x.php?=.txt", "x")).Failures(t, http.StatusUnsupportedMediaType)
}

func testDecoders(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	for name, content := range map[string]string{
		"a.tiff": "II*\x00\x08\x00\x00\x00", "a.tif": "MM\x00*\x00\x00\x00\x08", "a.bmp": "BM", "a.webp": "RIFF\x00\x00\x00\x00WEBPVP8 ", "a.ico": "\x00\x00\x01\x00", "a.avif": "",
	} {
		s.UploadImage(t, site.File(name, content)).Failures(t, http.StatusUnsupportedMediaType)
		for _, ext := range []string{"jpg", "png", "gif", "svg"} {
			s.UploadImage(t, site.File("a."+ext, content)).Failures(t, http.StatusUnsupportedMediaType)
		}
	}
	s.WantNothing(t)
}
