package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// hostileNames are the host names in the tests below with their addresses, by look-up.
var hostileNames = map[string][][]string{
	"localhost":          {{"127.0.0.1", "::1"}},
	"sub.localhost":      {{"127.0.0.1"}},
	"loopback.test":      {{"127.0.0.1"}},
	"mapped.test":        {{"::ffff:127.0.0.1"}},
	"mapped-hex.test":    {{"::ffff:a00:1"}},
	"compatible.test":    {{"::127.0.0.1"}},
	"metadata.test":      {{"169.254.169.254"}},
	"unspecified.test":   {{"0.0.0.0", "::"}},
	"translated.test":    {{"64:ff9b::7f00:1"}},
	"tunnel.test":        {{"2606:4700::5efe:127.0.0.1"}},
	"private-twice.test": {{"10.0.0.1", "fd00::1"}},
	"allowed.test":       {{"127.0.0.2"}},
}

// hostile are non-public addresses in every spelling, plain and hidden. PORT is the port of a
// tripwire on 127.0.0.1, and of the allowed host 127.0.0.2.
var hostile = []string{
	// This machine.
	"http://127.0.0.1:PORT/", "HTTP://127.0.0.1:PORT/", "https://127.0.0.1:PORT/", "http://127.0.0.1/", "http://127.8.8.8/",
	"http://0.0.0.0:PORT/", "http://0.1.2.3/", "http://[::]:PORT/", "http://[::1]:PORT/", "http://[0:0:0:0:0:0:0:1]:PORT/",
	"http://localhost:PORT/", "http://LocalHost:PORT/", "http://localhost.:PORT/", "http://sub.localhost:PORT/",

	// Its other spellings.
	"http://127.1:PORT/", "http://127.0.1:PORT/", "http://2130706433:PORT/", "http://0x7f000001:PORT/", "http://0x7f.1:PORT/",
	"http://0X7F.0x0.0x0.0x1:PORT/", "http://017700000001:PORT/", "http://0177.0.0.1:PORT/", "http://127.0.0.01:PORT/",
	"http://127.0.0.1.:PORT/", "http://4294967297:PORT/", "http://0:PORT/", "http://0x:PORT/", "http://127.0.0.0x1:PORT/",
	"http://１２７.０.０.１:PORT/", "http://127。0。0。1:PORT/", "http://127．0．0．1:PORT/", "http://127｡0｡0｡1:PORT/",
	"http://①②⑦.⓪.⓪.①:PORT/", "http://127%E3%80%820%E3%80%820%E3%80%821:PORT/", "http://１２７.1:PORT/",
	"http://ｌｏｃａｌｈｏｓｔ:PORT/", "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/", "http://local\u00adhost:PORT/",
	"http://%31%32%37.0.0.1:PORT/", "http://127%2e0%2e0%2e1:PORT/", "http://[127.0.0.1]:PORT/",

	// IPv4 inside IPv6: mapped, translated, compatible, 6to4, NAT64, Teredo, ISATAP.
	"http://[::ffff:127.0.0.1]:PORT/", "http://[::ffff:7f00:1]:PORT/", "http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/",
	"http://[::ffff:169.254.169.254]/", "http://[::ffff:10.0.0.1]/", "http://[::ffff:0:127.0.0.1]:PORT/",
	"http://[::127.0.0.1]:PORT/", "http://[::8.8.8.8]/", "http://[2002:7f00:1::]:PORT/", "http://[2002:a9fe:a9fe::1]/",
	"http://[64:ff9b::127.0.0.1]:PORT/", "http://[64:ff9b::a9fe:a9fe]/", "http://[64:ff9b:1::7f00:1]:PORT/",
	"http://[2001:0:7f00:1::1]/", "http://[2001::ffff:80ff:fffe]/",
	"http://[2606:4700::5efe:127.0.0.1]:PORT/", "http://[2606:4700::200:5efe:10.0.0.1]/",

	// IPv4 that is not public.
	"http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.0.1/",
	"http://100.64.0.1/", "http://100.127.255.255/", "http://100.100.100.200/", "http://169.254.0.1/",
	"http://169.254.169.254/latest/meta-data/", "http://168.63.129.16/", "http://192.0.0.1/", "http://192.0.0.192/",
	"http://192.0.2.1/", "http://198.51.100.1/", "http://203.0.113.1/", "http://198.18.0.1/", "http://198.19.255.255/",
	"http://192.88.99.1/", "http://192.31.196.1/", "http://192.52.193.1/", "http://192.175.48.1/",
	"http://224.0.0.1/", "http://239.255.255.255/", "http://240.0.0.1/", "http://255.255.255.255/",

	// IPv6 that is not public, and zones.
	"http://[fe80::1]/", "http://[fe80::1%25lo]:PORT/", "http://[::1%25lo]:PORT/", "http://[2606:4700::1111%25lo]/",
	"http://[fec0::1]/", "http://[fc00::1]/", "http://[fd00:ec2::254]/", "http://[fd20:ce::254]/", "http://[ff02::1]/",
	"http://[ff0e::1]/", "http://[100::1]/", "http://[2001:2::1]/", "http://[2001:10::1]/", "http://[2001:20::1]/",
	"http://[2001:1::1]/", "http://[2001:db8::1]/", "http://[3fff::1]/", "http://[5f00::1]/", "http://[4000::1]/",

	// Names that resolve to any of these.
	"http://loopback.test:PORT/", "http://mapped.test:PORT/", "http://mapped-hex.test/", "http://compatible.test:PORT/",
	"http://metadata.test/", "http://unspecified.test:PORT/", "http://translated.test:PORT/", "http://tunnel.test/",
	"http://private-twice.test/",

	// A host that looks like another: the first three would reach the allowed one.
	"http://user:pass@127.0.0.2:PORT/", "http://user@allowed.test:PORT/", "http://@allowed.test:PORT/",
	"http://allowed.test@127.0.0.1:PORT/", "http://127.0.0.2:PORT@127.0.0.1:PORT/", "http://127.0.0.2:PORT%2F@127.0.0.1:PORT/",
	"http://a@127.0.0.2@127.0.0.1:PORT/", "http://127.0.0.1:PORT#@allowed.test:PORT/", "http://127.0.0.1:PORT?@allowed.test/",
	"http://127.0.0.2:PORT\\@127.0.0.1:PORT/", "http://127.0.0.1:PORT\\@127.0.0.2:PORT/", "http:\\\\127.0.0.1:PORT\\",
	"http://allowed.test:PORT/a\\b", "http://allowed.test%00.test:PORT/", "http://allowed.test%0d%0a:PORT/",
	"http://allowed.test%2f:PORT/", "http://exa$mple.test/", "http://a,b.test/", "http://ａ＠ｂ.test/", "http://a／b.test/",

	// Spaces and line breaks, which only some programs drop.
	"http://127.0.0.1 :PORT/", "http:// 127.0.0.1:PORT/", "http://127.0.0.1\u00a0:PORT/", "http://127.0.0.1\u2028:PORT/",
	"http://allowed.test:PORT/a b", "http://allowed.test:PORT/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"http://allowed.test:PORT/\u0085", "http://allowed.test:PORT/\u0080", "ht\ttp://127.0.0.1:PORT/",

	// Ports.
	"http://127.0.0.2:22/", "http://allowed.test:6379/", "http://127.0.0.2:0/", "http://127.0.0.2:65616/", "http://127.0.0.2:-80/",
	"http://127.0.0.2:8O/", "http://127.0.0.2:99999999999/", "http://127.0.0.2:８０/", "http://127.0.0.2:80:80/",

	// Schemes.
	"ftp://127.0.0.1:PORT/", "file:///etc/passwd", "FILE:///etc/passwd", "file://127.0.0.1/etc/passwd", "gopher://127.0.0.1:PORT/_INFO",
	"data:text/plain,x", "javascript:alert(1)", "unix:///run/docker.sock", "http+unix://%2Frun%2Fdocker.sock/", "dict://127.0.0.1:PORT/",
	"ldap://127.0.0.1:PORT/", "ws://127.0.0.2:PORT/", "jar:http://127.0.0.1:PORT!/", "blob:http://127.0.0.2:PORT/", "view-source:http://127.0.0.2/",

	// No host, or a hidden one.
	"http://", "http:///", "http://:PORT/", "http:/127.0.0.1:PORT/", "http:127.0.0.1:PORT/", "http:///127.0.0.1:PORT/",
	"http:PORT", "//127.0.0.1:PORT/", "//localhost:PORT/", "http://[::1:PORT/", "http://::1:PORT/", "http://[]:PORT/", "http://%:PORT/",
	"http://.:PORT/", "http://.allowed.test:PORT/", "http://127.0.0.1..:PORT/", "http://allowed..test:PORT/", "http://。:PORT/",
	"http://\u00ad:PORT/", "http://\u200b:PORT/",
}

// malformed lists strings that are no absolute addresses. In a redirect they would be relative
// ones, or no valid header.
var malformed = []string{
	"", "127.0.0.1", "127.0.0.1:PORT", "127.0.0.1:PORT/", "localhost", "localhost:PORT", "/etc/passwd", "///127.0.0.1:PORT/",
	"?", "#", "allowed.test/a.jpg", "://127.0.0.2/", " http://127.0.0.2:PORT/", "http://127.0.0.2:PORT/ ", "\thttp://127.0.0.2:PORT/",
	"http://127.0.0.2:PORT/\n", "http://127.0.0.2:PORT/\x00", "\ufeffhttp://127.0.0.2:PORT/", "http://127.0.0.2:PORT/\x7f",
	"http://127.0.0.2:PORT/" + strings.Repeat("a", maxAddress),
}

func TestHostileAddressesAreRefused(t *testing.T) {
	t.Parallel()
	site, wire, port := newSite(t, func(http.ResponseWriter, *http.Request) { t.Error("the allowed host got a request") })
	site.Start()
	c := newClient(t, options(port), hostileNames)
	for _, address := range append(hostile, malformed...) {
		if _, err := get(c, withPort(address, port)); !errors.Is(err, ErrRefused) {
			t.Errorf("%.100q: got %v, want it refused", address, err)
		}
	}
	if n := wire.touched(t); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestHostileAddressesAreRefusedAfterARedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			var port uint16
			site, wire, port := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				i, err := strconv.Atoi(r.FormValue("to"))
				if err != nil {
					t.Errorf("the allowed host got a request for %s", r.URL)
					return
				}
				w.Header()["Location"] = []string{withPort(hostile[i], port)}
				w.WriteHeader(status)
			})
			site.Start()
			c := newClient(t, options(port), hostileNames)
			for i, address := range hostile {
				if _, err := get(c, fmt.Sprintf("%s/?to=%d", site.URL, i)); !errors.Is(err, ErrRefused) {
					t.Errorf("%q: got %v, want it refused", address, err)
				}
			}
			if n := wire.touched(t); n != 0 {
				t.Errorf("%d connections were made", n)
			}
		})
	}
}

func TestAllowedAddressesAreFetched(t *testing.T) {
	t.Parallel()
	site, _, port := newSite(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) })
	site.Start()
	c := newClient(t, options(port), map[string][][]string{
		"allowed.test": {{"127.0.0.2"}}, "my_bucket.r3---x.test": {{"127.0.0.2"}}, "xn--bcher-kva.test": {{"127.0.0.2"}},
		"mapped.test": {{"::ffff:127.0.0.2"}},
	})
	for _, address := range []string{
		"http://127.0.0.2:PORT/", "HTTP://127.0.0.2:PORT", "http://[::ffff:127.0.0.2]:PORT/", "http://mapped.test:PORT/",
		"http://allowed.test:PORT/a.jpg?b=c#d", "http://ALLOWED.test.:PORT/%20", "http://my_bucket.r3---x.test:PORT/",
		"http://bücher.test:PORT/ü", "http://xn--bcher-kva.test:PORT/",
	} {
		if body, err := get(c, withPort(address, port)); err != nil || body != "hello" {
			t.Errorf("%q: got %q, %v", address, body, err)
		}
	}
}

func TestNothingIsAllowedByDefault(t *testing.T) {
	t.Parallel()
	site, _, port := newSite(t, func(http.ResponseWriter, *http.Request) { t.Error("the host got a request") })
	site.Start()
	for name, c := range map[string]*Client{
		"address": New(Options{Ports: []uint16{port}}),
		"port":    New(Options{Allow: options().Allow}),
	} {
		if _, err := get(c, site.URL); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: got %v, want it refused", name, err)
		}
	}
}

// TestChangingNameIsRefused: the site redirects to itself. Its name resolves to 127.0.0.2 for the
// first request and to 127.0.0.1 for the second.
func TestChangingNameIsRefused(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	site, wire, port := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, "/", http.StatusFound)
	})
	site.Start()
	for _, second := range []string{"127.0.0.1", "::ffff:127.0.0.1", "::1", "169.254.169.254"} {
		asked.Store(0)
		c := newClient(t, options(port), map[string][][]string{"rebind.test": {{"127.0.0.2"}, {second}}})
		_, err := get(c, withPort("http://rebind.test:PORT/", port))
		if !errors.Is(err, ErrRefused) || asked.Load() != 1 {
			t.Errorf("then %s: got %v after %d requests, want it refused after 1", second, err, asked.Load())
		}
	}
	if n := wire.touched(t); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// TestNameIsResolvedOnceForAConnection: each download resolves its name once, so the answer cannot
// change between check and connection.
func TestNameIsResolvedOnceForAConnection(t *testing.T) {
	t.Parallel()
	site, wire, port := newSite(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) })
	site.Start()
	c := newClient(t, options(port), map[string][][]string{"rebind.test": {{"127.0.0.2"}, {"127.0.0.1"}}})
	address := withPort("http://rebind.test:PORT/", port)
	if body, err := get(c, address); err != nil || body != "hello" {
		t.Errorf("first: got %q, %v", body, err)
	}
	if _, err := get(c, address); !errors.Is(err, ErrRefused) {
		t.Errorf("second: got %v, want it refused", err)
	}
	if n := wire.touched(t); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestOnlyPublicAddressesOfANameAreDialled(t *testing.T) {
	t.Parallel()
	site, wire, port := newSite(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) })
	site.Start()
	for _, addrs := range [][]string{
		{"127.0.0.1", "127.0.0.2"}, {"127.0.0.2", "127.0.0.1"}, {"::ffff:127.0.0.1", "127.0.0.2"}, {"::1", "10.0.0.1", "127.0.0.2"},
	} {
		c := newClient(t, options(port), map[string][][]string{"both.test": {addrs}})
		if body, err := get(c, withPort("http://both.test:PORT/", port)); err != nil || body != "hello" {
			t.Errorf("%v: got %q, %v", addrs, body, err)
		}
	}
	if n := wire.touched(t); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}
