package features_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestDocumentedHeaders: HTTP_SERVICE_API_KEY and HTTP_SERVICE_ACCESS_TOKEN work in upper and lower
// case, over every version of HTTP.
func TestDocumentedHeaders(t *testing.T) {
	s := site.StartConfig(t, site.Config{Media: site.Basic, Site: "media", TLS: true})
	token := s.Token(t, site.APIKey)
	spellings := map[string]http.Header{
		"upper": site.AuthHeader(site.APIKey, token),
		"lower": site.Headers("http_service_api_key", site.APIKey, "http_service_access_token", token),
		"mixed": site.Headers("Http_Service_Api_Key", site.APIKey, "Http_service_access_token", token),
	}
	for proto, client := range s.Clients(t) {
		for spelling, header := range spellings {
			t.Run(proto+" "+spelling, func(t *testing.T) {
				img := sample.JPEG(t, 5, 5)
				r := s.Send(t, client, s.Request(t, http.MethodPost, "/api/upload/image",
					site.Merged(header, site.FormType), strings.NewReader(site.Form(site.File("photo.jpg", img)))))
				if r.Proto != proto {
					t.Fatalf("the request went over %s", r.Proto)
				}
				path := strings.TrimPrefix(r.One(t).FullPath, s.URL)
				if got := s.Send(t, client, s.Request(t, http.MethodGet, path, nil, nil)); got.Body != img {
					t.Errorf("got back %d %.40q, want the upload", got.Status, got.Body)
				}
				wrong := site.Merged(header, site.FormType)
				for name := range header {
					wrong[name] = []string{"x"}
				}
				r = s.Send(t, client, s.Request(t, http.MethodPost, "/api/upload/image",
					wrong, strings.NewReader(site.Form(site.File("photo.jpg", img)))))
				r.Failures(t, http.StatusUnauthorized)
			})
		}
	}
}

// TestDocumentedHeadersRaw sends the bytes of the documentation without an HTTP client, which could
// change their case.
func TestDocumentedHeadersRaw(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	token := s.Token(t, site.APIKey)
	img := sample.PNG(t, 3, 3)
	body := site.Form(site.File("photo.png", img))
	answer := raw(t, s, "POST /api/upload/image HTTP/1.1\r\nHost: media.test\r\n"+
		"HTTP_SERVICE_API_KEY: "+site.APIKey+"\r\nHTTP_SERVICE_ACCESS_TOKEN: "+token+"\r\n"+
		fmt.Sprintf("Content-Type: multipart/form-data; boundary=%s\r\nContent-Length: %d\r\n\r\n%s", site.FormBoundary, len(body), body))
	got := answer.One(t)
	path, ok := strings.CutPrefix(got.FullPath, "http://media.test")
	if !ok {
		t.Fatalf("full_path %q, want the host of the request", got.FullPath)
	}
	if r := s.Get(t, path); r.Body != img {
		t.Errorf("got back %d %.40q, want the upload", r.Status, r.Body)
	}
}

// raw sends bytes and reads one answer.
func raw(t *testing.T, s *site.Site, request string) *site.Reply {
	t.Helper()
	conn := s.Dial(t)
	defer conn.Close()
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	return site.ReadAnswer(t, conn)
}

// TestHeadersWithoutServerOption: Caddy removes the documented names, and the log names the missing
// option. The names without underscores work without the option.
func TestHeadersWithoutServerOption(t *testing.T) {
	s := site.StartConfig(t, site.Config{Media: site.Basic, Site: "media", DropUnderscores: true})
	const warning = "servers { expected_underscore_headers HTTP_SERVICE_API_KEY HTTP_SERVICE_ACCESS_TOKEN }"
	s.WaitForLog(t, warning)
	if n := strings.Count(s.Logged(t), warning); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	token := s.Token(t, site.APIKey)
	for name, header := range map[string]http.Header{
		"plain names":            site.Headers("Service-Api-Key", site.APIKey, "Service-Access-Token", token),
		"bearer":                 site.Headers("Authorization", "Bearer "+token),
		"bearer small, with key": site.Headers("Authorization", "bearer "+token, "Service-Api-Key", site.APIKey),
	} {
		t.Run(name, func(t *testing.T) {
			s.Do(t, http.MethodPost, "/api/upload/image", site.Merged(header, site.FormType), site.Form(site.File("a.gif", sample.GIF(t)))).One(t)
		})
	}
	r := s.Do(t, http.MethodPost, "/api/upload/image", site.Merged(site.AuthHeader(site.APIKey, token), site.FormType), site.Form(site.File("a.gif", sample.GIF(t))))
	r.Failures(t, http.StatusUnauthorized)
}

// TestHeadersServerOptionPattern: the option may also have a pattern. No warning is logged.
func TestHeadersServerOptionPattern(t *testing.T) {
	s := site.StartConfig(t, site.Config{
		Media: site.Basic, Site: "media", DropUnderscores: true, Servers: "expected_underscore_headers HTTP_SERVICE_*",
	})
	s.UploadImage(t, site.File("a.gif", sample.GIF(t))).One(t)
	if log := s.Logged(t); strings.Contains(log, "drops headers") {
		t.Errorf("a warning is logged: %s", log)
	}
}
