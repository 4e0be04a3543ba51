package integration

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// TestDocumentedHeaders: HTTP_SERVICE_API_KEY and HTTP_SERVICE_ACCESS_TOKEN work in upper and lower
// case, over every version of HTTP.
func TestDocumentedHeaders(t *testing.T) {
	s := startSiteConfig(t, siteConfig{Media: basic, Site: "media", TLS: true})
	token := s.token(t, apiKey)
	spellings := map[string]http.Header{
		"upper": documented(apiKey, token),
		"lower": headers("http_service_api_key", apiKey, "http_service_access_token", token),
		"mixed": headers("Http_Service_Api_Key", apiKey, "Http_service_access_token", token),
	}
	for proto, client := range s.clients(t) {
		for spelling, header := range spellings {
			t.Run(proto+" "+spelling, func(t *testing.T) {
				picture := jpegOf(t, 5, 5)
				r := s.send(t, client, s.request(t, http.MethodPost, "/api/upload/image",
					merged(header, formType), strings.NewReader(form(file("photo.jpg", picture)))))
				if r.proto != proto {
					t.Fatalf("the request went over %s", r.proto)
				}
				path := strings.TrimPrefix(r.one(t).FullPath, s.url)
				if got := s.send(t, client, s.request(t, http.MethodGet, path, nil, nil)); got.body != picture {
					t.Errorf("got back %d %.40q, want the upload", got.status, got.body)
				}
				wrong := merged(header, formType)
				for name := range header {
					wrong[name] = []string{"x"}
				}
				r = s.send(t, client, s.request(t, http.MethodPost, "/api/upload/image",
					wrong, strings.NewReader(form(file("photo.jpg", picture)))))
				r.failures(t, http.StatusUnauthorized)
			})
		}
	}
}

// clients returns one client per version of HTTP, for a site with TLS.
func (s *site) clients(t *testing.T) map[string]*http.Client {
	t.Helper()
	plain := s.client.Transport.(*http.Transport).Clone()
	plain.ForceAttemptHTTP2 = false
	plain.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	plain.TLSClientConfig.NextProtos = []string{"http/1.1"}
	t.Cleanup(plain.CloseIdleConnections)
	quick := &http3.Transport{
		TLSClientConfig: &tls.Config{RootCAs: plain.TLSClientConfig.RootCAs},
		Dial: func(ctx context.Context, _ string, tlsConfig *tls.Config, config *quic.Config) (*quic.Conn, error) {
			return quic.DialAddrEarly(ctx, s.address, tlsConfig, config)
		},
	}
	t.Cleanup(func() { quick.Close() })
	return map[string]*http.Client{
		"HTTP/1.1": {Transport: plain, Timeout: s.client.Timeout},
		"HTTP/2.0": s.client,
		"HTTP/3.0": {Transport: quick, Timeout: s.client.Timeout},
	}
}

// TestDocumentedHeadersRaw sends the bytes of the documentation without an HTTP client, which could
// change their case.
func TestDocumentedHeadersRaw(t *testing.T) {
	s := startSite(t, basic, "media")
	token := s.token(t, apiKey)
	picture := pngOf(t, 3, 3)
	body := form(file("photo.png", picture))
	answer := s.raw(t, "POST /api/upload/image HTTP/1.1\r\nHost: media.test\r\n"+
		"HTTP_SERVICE_API_KEY: "+apiKey+"\r\nHTTP_SERVICE_ACCESS_TOKEN: "+token+"\r\n"+
		fmt.Sprintf("Content-Type: multipart/form-data; boundary=%s\r\nContent-Length: %d\r\n\r\n%s", formBoundary, len(body), body))
	got := answer.one(t)
	path, ok := strings.CutPrefix(got.FullPath, "http://media.test")
	if !ok {
		t.Fatalf("full_path %q, want the host of the request", got.FullPath)
	}
	if r := s.get(t, path); r.body != picture {
		t.Errorf("got back %d %.40q, want the upload", r.status, r.body)
	}
}

// dial opens a connection for requests that no HTTP client sends.
func (s *site) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// raw sends bytes and reads one answer.
func (s *site) raw(t *testing.T, request string) *reply {
	t.Helper()
	conn := s.dial(t)
	defer conn.Close()
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	return readAnswer(t, conn)
}

func readAnswer(t *testing.T, conn net.Conn) *reply {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return &reply{resp.StatusCode, resp.Proto, resp.Header, string(body)}
}

// TestHeadersWithoutServerOption: Caddy removes the documented names, and the log names the missing
// option. The names without underscores work without the option.
func TestHeadersWithoutServerOption(t *testing.T) {
	s := startSiteConfig(t, siteConfig{Media: basic, Site: "media", DropUnderscores: true})
	s.waitForLog(t, "servers { expected_underscore_headers HTTP_SERVICE_API_KEY HTTP_SERVICE_ACCESS_TOKEN }")
	token := s.token(t, apiKey)
	for name, header := range map[string]http.Header{
		"plain names":            headers("Service-Api-Key", apiKey, "Service-Access-Token", token),
		"bearer":                 headers("Authorization", "Bearer "+token),
		"bearer small, with key": headers("Authorization", "bearer "+token, "Service-Api-Key", apiKey),
	} {
		t.Run(name, func(t *testing.T) {
			s.do(t, http.MethodPost, "/api/upload/image", merged(header, formType), form(file("a.gif", gifOf(t)))).one(t)
		})
	}
	r := s.do(t, http.MethodPost, "/api/upload/image", merged(documented(apiKey, token), formType), form(file("a.gif", gifOf(t))))
	r.failures(t, http.StatusUnauthorized)
}

// TestHeadersServerOptionPattern: the option may also have a pattern. No warning is logged.
func TestHeadersServerOptionPattern(t *testing.T) {
	s := startSiteConfig(t, siteConfig{
		Media: basic, Site: "media", DropUnderscores: true, Servers: "expected_underscore_headers HTTP_SERVICE_*",
	})
	s.uploadImage(t, file("a.gif", gifOf(t))).one(t)
	if log := s.logged(t); strings.Contains(log, "drops a header") {
		t.Errorf("a warning is logged: %s", log)
	}
}

// TestContradictoryCredentials: missing, wrong or contradictory credentials, in any spelling, are
// answered with 401.
func TestContradictoryCredentials(t *testing.T) {
	s := startSite(t, twoAccount+localDefault+"image_alias content", "media")
	token, others := s.token(t, apiKey), s.token(t, otherKey)
	again := s.token(t, apiKey)
	plain := headers("Service-Api-Key", apiKey, "Service-Access-Token", token)
	refused := map[string]http.Header{
		"nothing":                    nil,
		"key alone":                  headers("HTTP_SERVICE_API_KEY", apiKey),
		"token alone":                headers("HTTP_SERVICE_ACCESS_TOKEN", token),
		"empty token":                documented(apiKey, ""),
		"empty key":                  documented("", token),
		"unknown token":              documented(apiKey, strings.Repeat("A", 43)),
		"token cut":                  documented(apiKey, token[:42]),
		"token with a space":         documented(apiKey, token[:20]+" "+token[20:]),
		"token with padding":         documented(apiKey, token+"="),
		"password instead":           documented(apiKey, password),
		"another's token":            documented(apiKey, others),
		"another's key":              documented(otherKey, token),
		"unknown key":                documented("nobody", token),
		"key in capitals":            documented(strings.ToUpper(apiKey), token),
		"documented token twice":     merged(documented(apiKey, token), documented(apiKey, token)),
		"documented, two values":     headers("HTTP_SERVICE_API_KEY", apiKey, "HTTP_SERVICE_ACCESS_TOKEN", token, "HTTP_SERVICE_ACCESS_TOKEN", again),
		"plain key twice":            merged(plain, headers("Service-Api-Key", apiKey)),
		"plain token twice":          merged(plain, headers("Service-Access-Token", token)),
		"bearer twice":               headers("Authorization", "Bearer "+token, "Authorization", "Bearer "+token),
		"bearer of another":          headers("Authorization", "Bearer "+others, "Service-Api-Key", apiKey),
		"bearer unknown":             headers("Authorization", "Bearer x"),
		"bearer empty":               headers("Authorization", "Bearer "),
		"basic":                      headers("Authorization", "Basic "+token),
		"spellings disagree, tokens": merged(documented(apiKey, token), headers("Service-Access-Token", again)),
		"spellings disagree, keys":   merged(documented(apiKey, token), headers("Service-Api-Key", otherKey)),
		"spelling empty beside":      merged(documented(apiKey, token), headers("Service-Access-Token", "")),
		"documented empty beside":    merged(documented(apiKey, ""), headers("Service-Access-Token", token)),
		"bearer disagrees":           merged(documented(apiKey, token), headers("Authorization", "Bearer "+again)),
		"hyphens for underscores":    headers("HTTP-SERVICE-API-KEY", apiKey, "HTTP-SERVICE-ACCESS-TOKEN", token),
	}
	for name, header := range refused {
		t.Run(name, func(t *testing.T) {
			r := s.do(t, http.MethodPost, "/api/upload/image", merged(header, formType), form(file("a.gif", gifOf(t))))
			r.failures(t, http.StatusUnauthorized)
			if got := r.header.Get("WWW-Authenticate"); got != "Bearer" {
				t.Errorf("WWW-Authenticate %q", got)
			}
		})
	}
	s.wantNothing(t)
	accepted := map[string]http.Header{
		"all agree":             merged(documented(apiKey, token), plain, headers("Authorization", "Bearer "+token)),
		"basic of the site":     merged(plain, headers("Authorization", "Basic dTpw")),
		"two tokens, one each":  documented(apiKey, again),
		"bearer with a key too": headers("Authorization", "Bearer "+token, "HTTP_SERVICE_API_KEY", apiKey),
	}
	for name, header := range accepted {
		t.Run(name, func(t *testing.T) {
			s.do(t, http.MethodPost, "/api/upload/image", merged(header, formType), form(file("a.gif", gifOf(t)))).one(t)
		})
	}
}

// TestCredentialsElsewhere: credentials in query, form or cookie are ignored.
func TestCredentialsElsewhere(t *testing.T) {
	s := startSite(t, basic, "media")
	token := s.token(t, apiKey)
	path := "/api/upload/image?access_token=" + token + "&api_key=" + apiKey + "&HTTP_SERVICE_ACCESS_TOKEN=" + token
	r := s.do(t, http.MethodPost, path, merged(formType, headers("Cookie", "access_token="+token)),
		form(field("access_token", token), field("HTTP_SERVICE_ACCESS_TOKEN", token), file("a.gif", gifOf(t))))
	r.failures(t, http.StatusUnauthorized)
	s.wantNothing(t)
}
