package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// testForgedAddress: a client that forges X-Forwarded-For gets no additional attempts. Behind a
// proxy that Caddy trusts, each client has its own.
func testForgedAddress(t *testing.T) {
	media := basic + "limits {\nlogin_failures 3\n}\n"
	forged := func(i int) []string {
		return []string{
			"X-Forwarded-For", fmt.Sprintf("10.0.0.%d", i), "X-Real-Ip", fmt.Sprintf("10.0.1.%d", i),
			"Forwarded", fmt.Sprintf("for=10.0.2.%d", i), "True-Client-Ip", fmt.Sprintf("10.0.3.%d", i), "Cf-Connecting-Ip", fmt.Sprintf("10.0.4.%d", i),
		}
	}
	s := startSite(t, media, "media")
	for i := range 6 {
		want := http.StatusUnauthorized
		if i >= 3 {
			want = http.StatusTooManyRequests
		}
		if r := s.login(t, fmt.Sprint("nobody-", i), "x", forged(i)...); r.status != want {
			t.Errorf("guess %d: %d, want %d", i, r.status, want)
		}
	}
	proxied := startSiteConfig(t, siteConfig{
		Media: strings.Replace(media, "failures 3", "failures 4", 1), Site: "media", Servers: "trusted_proxies static 127.0.0.1\ntrusted_proxies_strict",
	})
	for i := range 12 {
		client := fmt.Sprintf("192.0.2.%d", i%2)
		want := http.StatusUnauthorized
		if i >= 8 {
			want = http.StatusTooManyRequests
		}
		// The proxy appends the address of the client to the forged value.
		if r := proxied.login(t, fmt.Sprint("nobody-", i), "x", "X-Forwarded-For", fmt.Sprintf("10.0.0.%d, %s", i, client)); r.status != want {
			t.Errorf("guess %d of %s: %d, want %d", i/2, client, r.status, want)
		}
	}
	if r := proxied.login(t, apiKey, password, "X-Forwarded-For", "192.0.2.9"); r.status != http.StatusOK {
		t.Errorf("another client: %d", r.status)
	}
}

func testDottedHeaders(t *testing.T) {
	s := startSite(t, basic, "media")
	token := s.token(t, apiKey)
	body := form(file("a.gif", gifOf(t)))
	for _, names := range [][2]string{
		{"HTTP.SERVICE.API.KEY", "HTTP.SERVICE.ACCESS.TOKEN"},
		{"Service_Api_Key", "Service_Access_Token"},
		{"Service.Api.Key", "Service.Access.Token"},
		{"HTTP_SERVICE-API-KEY", "HTTP_SERVICE-ACCESS-TOKEN"},
		{"HTTP_SERVICE.API_KEY", "HTTP_SERVICE.ACCESS_TOKEN"},
		{"X-Api-Key", "X-Access-Token"},
	} {
		header := merged(headers(names[0], apiKey, names[1], token), formType)
		s.do(t, http.MethodPost, "/api/upload/image", header, body).failures(t, http.StatusUnauthorized)
	}
	s.wantNothing(t)
}

func testLineBreaks(t *testing.T) {
	s := startSite(t, account+"storage default {\ndriver local $ROOT\nsanitize off\n}\nfile_alias content", "media")
	for _, value := range []string{"a\r\nDELE x", "a\nb", "a\rb", "a\u0085b", "a\u2028b"} {
		s.uploadFile(t, field("sub_folder", value), file("a.txt", "x")).failures(t, http.StatusBadRequest)
	}
	for _, encoded := range []string{"a%0d%0aDELE%20x", "a%0ab"} {
		s.upload(t, "/api/upload/file?sub_folder="+encoded, file("a.txt", "x")).failures(t, http.StatusBadRequest)
		if r := s.get(t, "/static/file/content/"+encoded+".txt"); r.status != http.StatusNotFound {
			t.Errorf("fetching %s: %d", encoded, r.status)
		}
	}
	s.uploadFile(t, file("a\r\nX-Injected: 1.txt", "x")).failures(t, http.StatusBadRequest)
}

func testManyParts(t *testing.T) {
	s := startSite(t, basic, "media")
	header := merged(s.credentials(t), formType)
	for name, parts := range map[string][]formPart{
		"fields": {field("x", "")}, "files": {file("a.txt", "")}, "empty inputs": {file("", "")}, "unknown files": {{name: "x", file: true}},
	} {
		t.Run(name, func(t *testing.T) {
			one := strings.TrimSuffix(form(parts...), "--"+formBoundary+"--\r\n")
			s.do(t, http.MethodPost, "/api/upload/file", header, strings.Repeat(one, 1500)+"--"+formBoundary+"--\r\n").failures(t, http.StatusRequestEntityTooLarge)
		})
	}
	r := s.do(t, http.MethodPost, tokenPath, formType, strings.Repeat(strings.TrimSuffix(form(field("", "")), "--"+formBoundary+"--\r\n"), 800))
	if r.status != http.StatusBadRequest && r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("token: %d %s", r.status, r.body)
	}
	s.wantNothing(t)
}

// testEncodedWords: RFC 2047 does not apply to forms; such text is a plain name.
func testEncodedWords(t *testing.T) {
	s := startSite(t, account+atRoot+"sanitize off\n}\nfile_alias content", "media")
	for _, name := range []string{"=?utf-8?q?a?=.txt", "=?utf-8?b?" + strings.Repeat("QUFB", 30) + "?=.txt"} {
		if got := s.uploadFile(t, file(name, "x")).one(t); got.Filename != name {
			t.Errorf("filename %q, want %q", got.Filename, name)
		}
	}
	s.uploadFile(t, file("=?utf-8?q?x.php?=.txt", "x")).failures(t, http.StatusUnsupportedMediaType)
}

func testDecoders(t *testing.T) {
	s := startSite(t, basic, "media")
	for name, content := range map[string]string{
		"a.tiff": "II*\x00\x08\x00\x00\x00", "a.tif": "MM\x00*\x00\x00\x00\x08", "a.bmp": "BM", "a.webp": "RIFF\x00\x00\x00\x00WEBPVP8 ", "a.ico": "\x00\x00\x01\x00", "a.avif": "",
	} {
		s.uploadImage(t, file(name, content)).failures(t, http.StatusUnsupportedMediaType)
		for _, ext := range []string{"jpg", "png", "gif", "svg"} {
			s.uploadImage(t, file("a."+ext, content)).failures(t, http.StatusUnsupportedMediaType)
		}
	}
	s.wantNothing(t)
}
