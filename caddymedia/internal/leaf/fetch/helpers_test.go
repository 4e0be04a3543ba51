package fetch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

// public is the only allowed loopback address; it stands for a public host. 127.0.0.1 stands for a
// forbidden one.
var public = netip.MustParseAddr("127.0.0.2")

// TestMain sets a proxy that must never be used: with it every test fails.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		os.Setenv(name, "http://127.0.0.1:1")
		os.Setenv(strings.ToLower(name), "http://127.0.0.1:1")
	}
	os.Unsetenv("NO_PROXY")
	os.Unsetenv("no_proxy")
	goleak.VerifyTestMain(m)
}

// options allows the public host on the ports.
func options(ports ...uint16) Options {
	return Options{
		Allow: []netip.Prefix{netip.PrefixFrom(public, 32)},
		Ports: append([]uint16{80, 443}, ports...),
	}
}

// newClient returns a client whose names are resolved by resolver.
func newClient(t *testing.T, o Options, names map[string][][]string) *Client {
	t.Helper()
	o.resolver = resolver(t, names)
	c := New(o)
	t.Cleanup(c.Close)
	return c
}

// tripwire is a listener that must never be connected to.
type tripwire struct{ net.Listener }

// touched returns the number of connections so far. Its own connection marks the end of the queue.
func (w tripwire) touched(t *testing.T) int {
	t.Helper()
	last, err := net.Dial("tcp", w.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	for n := 0; ; n++ {
		conn, err := w.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if conn.RemoteAddr().String() == last.LocalAddr().String() {
			return n
		}
	}
}

// newSite serves the handler at the public host, and sets a tripwire at the same port of the
// forbidden host.
func newSite(t *testing.T, handler http.HandlerFunc) (*httptest.Server, tripwire, uint16) {
	t.Helper()
	for range 20 {
		wire, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := netip.MustParseAddrPort(wire.Addr().String()).Port()
		l, err := net.Listen("tcp", netip.AddrPortFrom(public, port).String())
		if err != nil {
			wire.Close() // another test has the port there
			continue
		}
		site := httptest.NewUnstartedServer(handler)
		site.Listener.Close()
		site.Listener = l
		t.Cleanup(func() {
			site.Close()
			wire.Close()
		})
		return site, tripwire{wire}, port
	}
	t.Fatal("no port is free on both hosts; outside of Linux, 127.0.0.2 must be set up first")
	return nil, tripwire{}, 0
}

// serve is newSite without the tripwire, and with a client for the site.
func serve(t *testing.T, handler http.HandlerFunc) (string, *Client) {
	t.Helper()
	site, _, port := newSite(t, handler)
	site.Start()
	return site.URL, newClient(t, options(port), nil)
}

// serveRaw answers every request at the public host with exactly these bytes, and closes the
// connection. With hold it keeps the connection open until the client or the test ends.
func serveRaw(t *testing.T, answer string, hold bool) (string, Options) {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(public, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				if _, err := http.ReadRequest(r); err != nil {
					return
				}
				io.WriteString(conn, answer)
				if hold {
					io.Copy(io.Discard, r)
				}
			})
		}
	})
	at := netip.MustParseAddrPort(l.Addr().String())
	return fmt.Sprintf("http://%s/", at), options(at.Port())
}

// resolver uses a DNS server of the test. For each name it has the answers to the first look-up,
// the second and so on; the last answer stays. Other names do not exist.
func resolver(t *testing.T, names map[string][][]string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		server.Close()
		wg.Wait()
	})
	wg.Go(func() {
		asked := map[dnsmessage.Question]int{}
		buf := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			lookups := names[strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")]
			var addrs []string
			if len(lookups) > 0 {
				addrs = lookups[min(asked[q], len(lookups)-1)]
				asked[q]++
			}
			if packed, err := answer(m.ID, q, addrs); err == nil {
				server.WriteTo(packed, from)
			}
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func answer(id uint16, q dnsmessage.Question, addrs []string) ([]byte, error) {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, Response: true, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	if len(addrs) == 0 {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, s := range addrs {
		var body dnsmessage.ResourceBody
		switch addr := netip.MustParseAddr(s); {
		case q.Type == dnsmessage.TypeA && addr.Is4():
			body = &dnsmessage.AResource{A: addr.As4()}
		case q.Type == dnsmessage.TypeAAAA && addr.Is6():
			body = &dnsmessage.AAAAResource{AAAA: addr.As16()}
		default:
			continue
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}, Body: body,
		})
	}
	return m.Pack()
}

// get downloads all of an address.
func get(c *Client, address string) (string, error) {
	d, err := c.Get(context.Background(), address)
	if err != nil {
		return "", err
	}
	defer d.Body.Close()
	b, err := io.ReadAll(d.Body)
	return string(b), err
}

func withPort(address string, port uint16) string {
	return strings.ReplaceAll(address, "PORT", strconv.Itoa(int(port)))
}

// never is a time-out that no test reaches.
const never = 24 * time.Hour
