package media

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers/options"
)

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
	config := configOf(t)
	downloads.Timeout = options.Duration(100 * time.Millisecond)
	config.Downloads = downloads
	s := start(t, config)
	alias, _ := s.Alias(File, DefaultAlias)
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
		{false, "http://10.1.2.3:" + downloads.Ports[0] + "/a.txt", item.BadRequest},
		{false, "http://127.0.0.1:1/a.txt", item.BadRequest}, // its port
		{true, url + "/a.txt", item.BadRequest},
	} {
		ctx := t.Context()
		if c.gone {
			ctx = gone
		}
		_, _, failure := s.Importer(Actor{})(ctx, c.address, alias)
		if failure == nil || failure.Reason != c.reason {
			t.Errorf("%s: %v, want %s", c.address, failure, c.reason)
		}
	}
	if busy := s.bounds.imports.Busy(); busy != 0 {
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
	config := configOf(t)
	config.Downloads = downloads
	s := start(t, config)
	alias, _ := s.Alias(File, DefaultAlias)
	get := func(account, path string) {
		_, content, failure := s.Importer(Actor{Account: account})(t.Context(), url+path, alias)
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
		if s.bounds.imports.Busy() == 4 && s.bounds.imports.Waiting() == 6 {
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
