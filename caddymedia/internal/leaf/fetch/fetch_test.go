package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestDownload(t *testing.T) {
	t.Parallel()
	address, c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="photo.jpg"`)
		w.Header().Set("Content-Type", "image/jpeg")
		w.Header().Set("Content-Encoding", "identity")
		w.Write([]byte("hello"))
	})
	d, err := c.Get(context.Background(), address+"/x")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Body.Close()
	if d.Name != "photo.jpg" || d.ContentType != "image/jpeg" || d.Size != 5 {
		t.Errorf("got %q of type %q, %d bytes", d.Name, d.ContentType, d.Size)
	}
	if b, err := io.ReadAll(d.Body); err != nil || string(b) != "hello" {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestSizeIsUnknownIfNotAnnounced(t *testing.T) {
	t.Parallel()
	address, c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("hel"))
		w.(http.Flusher).Flush()
		w.Write([]byte("lo"))
	})
	d, err := c.Get(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Body.Close()
	if b, err := io.ReadAll(d.Body); err != nil || string(b) != "hello" || d.Size != -1 {
		t.Errorf("got %q of %d bytes, %v", b, d.Size, err)
	}
}

// TestRedirectsCarryNothingOver: the name comes from the last address, not from the first.
func TestRedirectsCarryNothingOver(t *testing.T) {
	t.Parallel()
	var (
		mu   sync.Mutex
		seen []*http.Request
	)
	address, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r)
		mu.Unlock()
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
		switch r.URL.Path {
		case "/first":
			http.Redirect(w, r, "second?a=b#c", http.StatusFound)
		case "/second":
			http.Redirect(w, r, "//"+r.Host+"/dir/third.jpg", http.StatusTemporaryRedirect)
		}
	})
	d, err := c.Get(context.Background(), address+"/first?secret=1")
	if err != nil {
		t.Fatal(err)
	}
	d.Body.Close()
	if d.Name != "third.jpg" {
		t.Errorf("got the name %q", d.Name)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 3 {
		t.Fatalf("got %d requests, want 3", len(seen))
	}
	for _, r := range seen {
		if r.Method != http.MethodGet || r.UserAgent() != "caddymedia" || r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("%s: got %s %v", r.URL, r.Method, r.Header)
		}
		for _, header := range []string{"Cookie", "Referer", "Authorization"} {
			if v := r.Header.Get(header); v != "" {
				t.Errorf("%s: got %s: %s", r.URL, header, v)
			}
		}
	}
}

func TestRedirectsAreLimited(t *testing.T) {
	t.Parallel()
	// Every address redirects to the next, up to the fourth.
	site, _, port := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if n := len(r.URL.Path); n <= 4 {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusMovedPermanently)
		}
	})
	site.Start()
	for _, tt := range []struct {
		limit int
		path  string
		ok    bool
	}{
		{0, "/xxx", true},
		{0, "/x", true},
		{0, "/", false},
		{4, "/", true},
		{-1, "/xxxx", true},
		{-1, "/xxx", false},
	} {
		o := options(port)
		o.MaxRedirects = tt.limit
		_, err := get(newClient(t, o, nil), site.URL+tt.path)
		if tt.ok && err != nil {
			t.Errorf("limit %d, %s: %v", tt.limit, tt.path, err)
		}
		if !tt.ok {
			wantMessage(t, err, "the address redirects too often")
		}
	}
}

func TestRedirectLoopEnds(t *testing.T) {
	t.Parallel()
	address, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusPermanentRedirect)
	})
	_, err := get(c, address+"/again")
	wantMessage(t, err, "the address redirects too often")
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(nil)
	at := netip.MustParseAddrPort(site.Listener.Addr().String())
	site.Close()
	o := options(at.Port())
	o.Allow = append(o.Allow, netip.PrefixFrom(at.Addr(), 32))
	c := newClient(t, o, nil)
	_, err := get(c, fmt.Sprintf("http://%s/?secret", at))
	wantMessage(t, err, "the server could not be reached")
}

// TestInternalNames: the error does not say whether a name is unknown or that of a host in the own
// network.
func TestInternalNames(t *testing.T) {
	t.Parallel()
	c := newClient(t, options(80), map[string][][]string{"db.test": {{"10.1.2.3"}}})
	for _, host := range []string{"db.test", "nowhere.test"} {
		_, err := get(c, "http://"+host+"/")
		wantMessage(t, err, "the address may not be fetched")
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	site, _, port := newSite(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) })
	site.StartTLS()
	names := map[string][][]string{"example.com": {{"127.0.0.2"}}, "other.test": {{"127.0.0.2"}}}
	o := options(port)
	o.roots = x509.NewCertPool()
	o.roots.AddCert(site.Certificate())
	trusting := newClient(t, o, names)
	address := withPort("https://example.com:PORT/", port)
	if body, err := get(trusting, address); err != nil || body != "hello" {
		t.Errorf("got %q, %v", body, err)
	}
	_, err := get(trusting, withPort("https://other.test:PORT/", port))
	wantMessage(t, err, "the certificate of the server is not valid")
	_, err = get(newClient(t, options(port), names), address)
	wantMessage(t, err, "the certificate of the server is not valid")
}

// TestProxyOfTheEnvironmentIsNotUsed: TestMain sets a proxy that does not answer. No rule exempts
// the name in the address from it.
func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	t.Parallel()
	site, _, port := newSite(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) })
	site.Start()
	address := withPort("http://allowed.test:PORT/", port)
	req := httptest.NewRequest(http.MethodGet, address, nil)
	if proxy, err := http.ProxyFromEnvironment(req); err != nil || proxy == nil {
		t.Fatalf("the environment has no proxy: %v, %v", proxy, err)
	}
	c := newClient(t, options(port), map[string][][]string{"allowed.test": {{"127.0.0.2"}}})
	if body, err := get(c, address); err != nil || body != "hello" {
		t.Errorf("got %q, %v", body, err)
	}
}

// TestMessagesNameNoHost: messages contain neither the dialled address nor its answer.
func TestMessagesNameNoHost(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{}, map[string][][]string{"intern.test": {{"10.1.2.3"}}})
	for _, address := range []string{
		"http://intern.test/secret", "http://10.1.2.3/secret", "http://nowhere.test/secret", "http://intern.test:22/secret",
		"http://intern.test\\secret", "http://user:secret@intern.test/", "http://intern.test:secret/", "http://intern.test:x/secret", "file:///secret",
	} {
		_, err := get(c, address)
		failed, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("%s: got %v", address, err)
			continue
		}
		for _, hint := range []string{"intern", "nowhere", "10.1", "secret"} {
			if strings.Contains(failed.Message, hint) {
				t.Errorf("%s: got the message %q", address, failed.Message)
			}
		}
		if log := err.Error(); strings.Contains(log, "/secret") {
			t.Errorf("%s: got %q for the log", address, log)
		}
	}
}

func wantMessage(t *testing.T, err error, want string) {
	t.Helper()
	failed, ok := errors.AsType[*Error](err)
	if !ok || failed.Message != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestIncompleteOrEncodedAnswersAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxHeader)
	for answer, want := range map[string]string{
		"204 No Content\r\n\r\n": "the server answered 204",
		"206 Partial Content\r\nContent-Range: bytes 0-1/5\r\n\r\nhe": "the server answered 206",
		"300 Multiple Choices\r\nLocation: /x\r\n\r\n":                "the server answered 300",
		"301 Moved Permanently\r\n\r\n":                               "the server answered 301",
		"304 Not Modified\r\nLocation: /x\r\n\r\n":                    "the server answered 304",
		"307 Temporary Redirect\r\nLocation:\r\n\r\n":                 "the server answered 307",
		"404 Not Found\r\nContent-Length: 5\r\n\r\nhello":             "the server answered 404",
		"500 Oh\r\n\r\n":   "the server answered 500",
		"999 What\r\n\r\n": "the server answered 999",
		"200 OK\r\nContent-Encoding: gzip\r\n\r\nhello":                         "the server sent the item compressed, which was not asked for",
		"200 OK\r\nContent-Encoding: identity\r\nContent-Encoding: br\r\n\r\nx": "the server sent the item compressed, which was not asked for",
		"200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n":           "the server gave no proper answer",
		"200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhe":            "the server gave no proper answer",
		"200 OK\r\nContent-Length: -1\r\n\r\nhello":                             "the server gave no proper answer",
		"200 OK\r\nX: " + long + "\r\n\r\nhello":                                "the server gave no proper answer",
		"200 OK\r\nContent-":                                                    "the server gave no proper answer",
	} {
		address, o := serveRaw(t, "HTTP/1.1 "+answer, false)
		_, err := get(newClient(t, o, nil), address)
		if err == nil {
			t.Errorf("%.60q was accepted", answer)
			continue
		}
		wantMessage(t, err, want)
	}
	address, o := serveRaw(t, "SSH-2.0-OpenSSH_9.9\r\n", false)
	_, err := get(newClient(t, o, nil), address)
	wantMessage(t, err, "the server gave no proper answer")
}

func TestTruncatedBodyIsAnError(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"shorter than announced": "Content-Length: 6\r\n\r\nhello",
		"nothing of it":          "Content-Length: 6\r\n\r\n",
		"chunk cut off":          "Transfer-Encoding: chunked\r\n\r\n6\r\nhello",
		"last chunk missing":     "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"last line missing":      "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
		"chunk longer":           "Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
		"length is no number":    "Transfer-Encoding: chunked\r\n\r\nx\r\nhello\r\n0\r\n\r\n",
	} {
		address, o := serveRaw(t, "HTTP/1.1 200 OK\r\n"+answer, false)
		_, err := get(newClient(t, o, nil), address)
		if err == nil {
			t.Errorf("%s: the body ended without an error", name)
			continue
		}
		wantMessage(t, err, "the server broke off the download")
	}
}

// TestUnannouncedBodyEndsWithTheConnection: old servers announce no length.
func TestUnannouncedBodyEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.0", "1.1"} {
		address, o := serveRaw(t, "HTTP/"+version+" 200 OK\r\n\r\nhello", false)
		if body, err := get(newClient(t, o, nil), address); err != nil || body != "hello" {
			t.Errorf("HTTP/%s: got %q, %v", version, body, err)
		}
	}
}

// TestBytesAfterTheAnnouncedLengthAreIgnored: in HTTP a body ends at its announced length.
func TestBytesAfterTheAnnouncedLengthAreIgnored(t *testing.T) {
	t.Parallel()
	address, o := serveRaw(t, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\nworld", true)
	if body, err := get(newClient(t, o, nil), address); err != nil || body != "hello" {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestTimeoutEndsADownload(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"before the header": "",
		"in the header":     "HTTP/1.1 200 OK\r\nContent-Le",
		"before the body":   "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n",
		"in the body":       "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
		"in a body without": "HTTP/1.1 200 OK\r\n\r\nhello",
	} {
		address, o := serveRaw(t, answer, true)
		o.Timeout = 100 * time.Millisecond
		_, err := get(newClient(t, o, nil), address)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want the time-out", name, err)
			continue
		}
		wantMessage(t, err, "the server took too long")
	}
}

func TestSlowHeaderEndsBeforeTheTimeout(t *testing.T) {
	t.Parallel()
	address, o := serveRaw(t, "HTTP/1.1 200 OK\r\n", true)
	o.Timeout = never
	c := newClient(t, o, nil)
	c.transport.ResponseHeaderTimeout /= 20_000 // of 20 seconds
	_, err := get(c, address)
	wantMessage(t, err, "the server took too long")
}

func TestCallerCancels(t *testing.T) {
	t.Parallel()
	address, o := serveRaw(t, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", true)
	o.Timeout = never
	c := newClient(t, o, nil)
	ctx, cancel := context.WithCancel(context.Background())
	d, err := c.Get(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Body.Close()
	if _, err := io.ReadFull(d.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err = io.ReadAll(d.Body)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancel", err)
	}
	wantMessage(t, err, "the download was cancelled")
	_, err = c.Get(ctx, address)
	wantMessage(t, err, "the download was cancelled")
}

// TestClosingTheBodyEndsTheConnection: the leak check in TestMain fails if the connection of an
// unread body stays open.
func TestClosingTheBodyEndsTheConnection(t *testing.T) {
	t.Parallel()
	address, o := serveRaw(t, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", true)
	o.Timeout = never
	d, err := newClient(t, o, nil).Get(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Body.Close(); err != nil {
		t.Error(err)
	}
}

func TestBodyOfARedirectIsNotAwaited(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	address, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/last" {
			<-gone
			return
		}
		w.Header().Set("Location", "/last")
		w.WriteHeader(http.StatusFound)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	if _, err := get(c, address); err != nil {
		t.Error(err)
	}
}
