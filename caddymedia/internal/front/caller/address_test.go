package caller

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
)

func TestValidHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"example.com": true, "example.com:8080": true, "EXAMPLE.com": true, "localhost": true,
		"127.0.0.1": true, "127.0.0.1:80": true, "[::1]": true, "[::1]:8080": true, "[2001:db8::1]": true,
		"my_host": true, "xn--bcher-kva.example": true, "bücher.example": true,

		strings.Repeat("a", 253): true, strings.Repeat("a", 253) + ":65535": true,
		strings.Repeat("a", 260): false, "a:" + strings.Repeat("0", 300): false, "[" + strings.Repeat("0", 300) + "::1]": false,

		"": false, ":80": false, "example.com/": false, "example.com/path": false, "example.com?x": false,
		"example.com#x": false, "user@example.com": false, "user:pass@example.com": false, "example.com:port": false,
		"exa mple.com": false, "exa\tmple.com": false, "exa\nmple.com": false, "example.com\x00": false,
		"ex%61mple.com": false, "<script>": false, "a\"b": false, "a'b": false, "a,b": false, "a;b": false,
		"a\\b": false, "[::1": false, "::1": false, "[]": false, "[example.com]": false, "[::1%25eth0]": false,
		"[::1]x": false, "a`b": false, "{env.HOME}": false, "$(x)": false, "a*b": false,
	} {
		if got := validHost(host); got != want {
			t.Errorf("validHost(%q) is %t", host, got)
		}
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		host        string
		tls         bool
		trusted     bool
		proto, from string // what a proxy says
		want        string
	}{
		{"plain", "example.com", false, false, "", "", "http://example.com"},
		{"port", "example.com:8080", false, false, "", "", "http://example.com:8080"},
		{"TLS", "example.com", true, false, "", "", "https://example.com"},
		{"IPv6", "[::1]:8080", true, false, "", "", "https://[::1]:8080"},
		{"stranger", "example.com", false, false, "https", "evil.example", "http://example.com"},
		{"proxy", "10.0.0.1:80", false, true, "https", "example.com", "https://example.com"},
		{"proxy without TLS before TLS", "10.0.0.1:80", true, true, "http", "example.com", "http://example.com"},
		{"proxy that says nothing", "example.com", true, true, "", "", "https://example.com"},
		{"proxy with the scheme alone", "example.com", false, true, "https", "", "https://example.com"},
		{"proxy of another scheme", "example.com", false, true, "javascript", "", "http://example.com"},
		{"proxies with and without TLS", "example.com", false, true, "https,http", "", "https://example.com"},
		{"proxies without and with TLS", "example.com", true, true, "http , https", "", "http://example.com"},
		{"proxies of no scheme", "example.com", true, true, ",http", "", "https://example.com"},
		{"proxy of a long host", "example.com", false, true, "", strings.Repeat("a", 260), ""},
		{"proxy of two hosts", "example.com", false, true, "", "a.example, b.example", "http://example.com"},
		{"proxy of a bad host", "example.com", false, true, "", "a.example/path", ""},
		{"bad host", "exa mple.com", false, false, "", "", ""},
		{"no host", "", false, false, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Host = c.host
			if c.tls {
				r.TLS = new(tls.ConnectionState)
			}
			for name, value := range map[string]string{"X-Forwarded-Proto": c.proto, "X-Forwarded-Host": c.from} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			g := New[*service.Service](nil, Options{TrustedProxy: func(*http.Request) bool { return c.trusted }})
			if got := g.BaseURL(r); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestStrippedPrefix: without a hook, the prefix is the one removed by http.StripPrefix.
func TestStrippedPrefix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ original, path, want string }{
		{"/api/upload/file", "/api/upload/file", ""},
		{"/media/api/upload/file", "/api/upload/file", "/media"},
		{"/a/b/api/upload/file?alias=x", "/api/upload/file", "/a/b"},
		{"/m%20%C3%A9/api/upload/file", "/api/upload/file", "/m%20%C3%A9"},
		{"/put", "/api/upload/file", ""},
		{"//evil.example/api/upload/file", "/api/upload/file", ""},
	} {
		r := httptest.NewRequest(http.MethodPost, c.path, nil)
		r.RequestURI = c.original
		if got := New[*service.Service](nil, Options{}).MountPrefix(r); got != c.want {
			t.Errorf("%s for %s: prefix %q, want %q", c.path, c.original, got, c.want)
		}
	}
}

// TestClient: without a hook, the client is that of the connection, whatever the header says.
func TestClient(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.1:1234": "192.0.2.1", "[2001:db8::1]:1234": "2001:db8::1", "": "invalid IP", "@": "invalid IP",
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("X-Forwarded-For", "198.51.100.1")
		r.RemoteAddr = remote
		if got := New[*service.Service](nil, Options{}).ClientAddr(r); got.String() != want {
			t.Errorf("client %q is %s, want %s", remote, got, want)
		}
	}
}

// TestIsLocal: a client is on this machine if its address says so and no proxy says that it passes
// the request on.
func TestIsLocal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		remote, header string
		want           bool
	}{
		{"127.0.0.1:1234", "", true},
		{"127.8.9.10:1234", "", true},
		{"[::1]:1234", "", true},
		{"[::ffff:127.0.0.1]:1234", "", true},
		{"192.0.2.1:1234", "", false},
		{"[fe80::1%eth0]:1234", "", false},
		{"172.17.0.1:1234", "", false}, // the network of a container engine
		{"@", "", false},
		{"", "", false},
		{"127.0.0.1:1234", "X-Forwarded-For", false},
		{"127.0.0.1:1234", "X-Forwarded-Host", false},
		{"127.0.0.1:1234", "X-Real-IP", false},
		{"127.0.0.1:1234", "Forwarded", false},
		{"127.0.0.1:1234", "Via", false},
		{"127.0.0.1:1234", "Accept", true},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.RemoteAddr = c.remote
		if c.header != "" {
			r.Header.Set(c.header, "127.0.0.1")
		}
		if got := New[*service.Service](nil, Options{}).IsLocal(r); got != c.want {
			t.Errorf("%s with %s: %v", c.remote, c.header, got)
		}
	}
}
