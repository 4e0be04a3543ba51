package service

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/fetch"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// remote starts a server, and returns the options of downloads that allow it.
func remote(t *testing.T, serve http.HandlerFunc) (url string, allowed fetch.Options) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	address := netip.MustParseAddrPort(server.Listener.Addr().String())
	return server.URL, fetch.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Ports: []uint16{address.Port()}}
}

// TestImporterFailures: the reasons tell refused addresses from failing and slow servers.
func TestImporterFailures(t *testing.T) {
	t.Parallel()
	url, downloads := remote(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow.txt":
			<-r.Context().Done()
		case "/huge.txt":
			w.Header().Set("Content-Length", "99999999999")
		default:
			http.NotFound(w, r)
		}
	})
	parts := partsOf(t)
	downloads.Timeout = 100 * time.Millisecond
	parts.Downloads = downloads
	s := start(t, parts)
	alias, _ := s.Alias(item.File, item.DefaultAlias)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		gone    bool // the caller
		address string
		reason  item.Reason
	}{
		{false, url + "/missing.txt", item.RemoteFailed},
		{false, url + "/slow.txt", item.RemoteSlow},
		{false, url + "/huge.txt", item.TooLarge},
		{false, "file:///etc/passwd", item.BadRequest},
		{false, fmt.Sprintf("http://10.1.2.3:%d/a.txt", downloads.Ports[0]), item.BadRequest},
		{false, "http://127.0.0.1:1/a.txt", item.BadRequest}, // its port
		{true, url + "/a.txt", item.BadRequest},
	} {
		ctx := t.Context()
		if c.gone {
			ctx = gone
		}
		_, _, failure := s.Importer(item.Actor{})(ctx, c.address, alias)
		if failure == nil || failure.Reason != c.reason {
			t.Errorf("%s: %v, want %s", c.address, failure, c.reason)
		}
	}
	if busy := s.process.imports.Busy(); busy != 0 {
		t.Errorf("%d imports are under way", busy)
	}
}

// TestImportsOfAccount: four addresses of an account are fetched at once. Others wait, but not
// those of another account.
func TestImportsOfAccount(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	running, most := 0, 0
	release := make(chan struct{})
	url, downloads := remote(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/first.txt" {
			return
		}
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		<-release
		mu.Lock()
		running--
		mu.Unlock()
		io.WriteString(w, "text")
	})
	parts := partsOf(t)
	parts.Downloads = downloads
	s := start(t, parts)
	alias, _ := s.Alias(item.File, item.DefaultAlias)
	get := func(account, path string) {
		_, content, failure := s.Importer(item.Actor{Account: account})(t.Context(), url+path, alias)
		if failure != nil {
			t.Error(failure)
			return
		}
		if err := content.Close(); err != nil {
			t.Error(err)
		}
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { get("one", "/first.txt") })
	}
	for {
		if s.process.imports.Busy() == 4 && s.process.imports.Waiting() == 6 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	get("two", "/second.txt")
	close(release)
	all.Wait()
	if most > 4 {
		t.Errorf("%d at once", most)
	}
}
