package features_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// nginxConf is an nginx in front of a service, which caches what it may.
const nginxConf = `%[3]s
daemon off;
pid nginx.pid;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path body;
	fastcgi_temp_path fastcgi;
	proxy_temp_path proxy;
	scgi_temp_path scgi;
	uwsgi_temp_path uwsgi;
	proxy_cache_path cache keys_zone=items:1m;
	server {
		listen %[1]s;
		location / {
			proxy_pass %[2]s;
			proxy_cache items;
			add_header X-Cache $upstream_cache_status always;
		}
	}
}
`

// startNginx starts nginx in front of a service, and returns its address.
func startNginx(t *testing.T, service string) string {
	t.Helper()
	nginx, dir, address, user := servers.Program(t, "nginx"), site.TempFolder(t), servers.FreeAddress(t), ""
	if os.Geteuid() == 0 { // its workers need access to the folder
		user = "user root root;"
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, address, service, user), 0o600); err != nil {
		t.Fatal(err)
	}
	servers.Start(t, address, func() *exec.Cmd {
		return exec.CommandContext(context.WithoutCancel(t.Context()), nginx, "-p", dir, "-e", "nginx.log", "-c", conf)
	})
	return "http://" + address
}

const privateSite = site.AtRoot + `}
account ` + site.APIKey + ` ` + site.CheapHash + ` {
	may upload sign
}
file_alias papers {
	private
}
file_alias shared {
	private {
		shared_cache on
	}
}
`

// sign returns the path and query of a signed address, by a request of the account.
func sign(t *testing.T, s *site.Site, alias string, seconds int) string {
	t.Helper()
	form := url.Values{"kind": {"file"}, "alias": {alias}, "filename": {"a.txt"}, "expires_in": {fmt.Sprint(seconds)}}
	header := site.Headers("Authorization", "Bearer "+s.Token(t, site.APIKey), "Content-Type", "application/x-www-form-urlencoded")
	got := s.Do(t, http.MethodPost, "/api/sign", header, form.Encode())
	var answer struct{ Result []struct{ URL string } }
	if err := json.Unmarshal([]byte(got.Body), &answer); err != nil || len(answer.Result) != 1 {
		t.Fatal(got)
	}
	return strings.TrimPrefix(answer.Result[0].URL, s.URL)
}

// fetched is a response through the cache.
type fetched struct {
	status      int
	cache, body string
}

func fetch(t *testing.T, address string) fetched {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body := make([]byte, 100)
	n, _ := answer.Body.Read(body)
	return fetched{answer.StatusCode, answer.Header.Get("X-Cache"), string(body[:n])}
}

// TestSharedCache: a cache that visitors share keeps no private item, unless shared_cache is on.
// Then it keeps an item under its signed address until that ends, and no other address reaches it.
func TestSharedCache(t *testing.T) {
	s := site.Start(t, privateSite, "media\nrespond 404")
	const content = "for members only"
	for _, alias := range []string{"papers", "shared"} {
		if up := s.UploadFile(t, site.Field("alias", alias), site.File("a.txt", content)); up.Status != http.StatusOK {
			t.Fatal(up)
		}
	}
	cache := startNginx(t, s.URL)
	for alias, kept := range map[string]string{"papers": "MISS", "shared": "HIT"} {
		address := cache + sign(t, s, alias, 600)
		for _, want := range []string{"MISS", kept, kept} {
			if got := fetch(t, address); got != (fetched{http.StatusOK, want, content}) {
				t.Errorf("%s: got %+v, want %s", alias, got, want)
			}
		}
		plain, _, _ := strings.Cut(address, "?")
		for _, altered := range []string{plain, plain + "?", address + "0", strings.Replace(address, "expires=", "expires=1", 1), address + "&scope=/"} {
			for range 2 {
				if got := fetch(t, altered); got.status != http.StatusForbidden || got.cache == "HIT" || strings.Contains(got.body, content) {
					t.Errorf("%s: got %+v", altered, got)
				}
			}
		}
		short := cache + sign(t, s, alias, 1)
		got := fetch(t, short)
		for end := time.Now().Add(time.Minute); got.status == http.StatusOK && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			got = fetch(t, short)
		}
		if got.status != http.StatusForbidden {
			t.Errorf("%s: after its end: %+v", alias, got)
		}
	}
}
