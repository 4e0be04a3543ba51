package features_test

import (
	"cmp"
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

// TestBelowPrefix: the address of an upload reaches the item if the service is mounted below a
// prefix.
func TestBelowPrefix(t *testing.T) {
	s := site.Start(t, site.Basic, "handle_path /media/* {\nmedia\n}\nmedia")
	for _, prefix := range []string{"", "/media"} {
		got := s.Upload(t, prefix+"/api/upload/file", site.File("item.txt", "content")).One(t)
		if !strings.HasPrefix(got.FullPath, s.URL+prefix+"/static/file/content/") {
			t.Errorf("%q: address %s", prefix, got.FullPath)
		}
		if r := s.Get(t, strings.TrimPrefix(got.FullPath, s.URL)); r.Status != http.StatusOK || r.Body != "content" {
			t.Errorf("%s: %d %q", got.FullPath, r.Status, r.Body)
		}
	}
}

// TestRawPaths: what Caddy makes of a path before the service sees it leads to no other file. The
// bytes are sent unchanged, because an HTTP client would normalize them.
func TestRawPaths(t *testing.T) {
	s := site.Start(t, site.Basic, "media\nrespond \"next\" 418")
	got := s.UploadFile(t, site.Field("sub_folder", "a/b"), site.File("item.txt", "content")).One(t)
	address := strings.TrimPrefix(got.FullPath, s.URL)
	site.PutFile(t, s.Root+"/top.txt", "top")
	site.PutFile(t, s.Root+"/file/content/.env", "hidden")
	site.PutFile(t, s.Root+"/file/other/x.txt", "of no alias")
	if r := s.Get(t, address); r.Body != "content" {
		t.Fatalf("%s: %d", address, r.Status)
	}
	const here = "/static/file/content/"
	for path, want := range map[string]int{
		here: 404, here + "a/b/": 404, address + "/": 404, address + "%00": 404, here + "a//b/item.txt": 404, "//" + address: 418,
		here + "./a/b/item.txt": 404, here + "a/../a/b/item.txt": 404, here + "a/%2e%2e/a/b/item.txt": 404, here + "a%2fb/item.txt": 404,
		here + `a\b\item.txt`: 404, here + "a%5cb%5citem.txt": 404, here + ".env": 404, here + "%2eenv": 404,
		here + "../../top.txt": 404, here + "%2e%2e/%2e%2e/top.txt": 404, here + "..%2f..%2ftop.txt": 404, here + "%252e%252e/%252e%252e/top.txt": 404,
		here + "../other/x.txt": 404, "/static/file/../file/other/x.txt": 404, "/static/../static/file/other/x.txt": 418, "/static/file/other/x.txt": 404,
	} {
		t.Run(path, func(t *testing.T) {
			if r := raw(t, s, "GET "+path+" HTTP/1.1\r\nHost: media.test\r\nConnection: close\r\n\r\n"); r.Status != want {
				t.Errorf("status %d, want %d: %s", r.Status, want, r.Body)
			}
		})
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

// TestSymbolicLinks: a link out of the storage is followed neither for reading nor for writing.
func TestSymbolicLinks(t *testing.T) {
	s := site.Start(t, site.Basic+"file_alias linked", "media")
	outside := filepath.Join(filepath.Dir(s.Root), "outside")
	secret, folder := filepath.Join(outside, "secret.txt"), filepath.Join(s.Root, "file", "content")
	site.PutFile(t, secret, "secret")
	site.PutFile(t, filepath.Join(folder, "inside.txt"), "inside")
	for name, target := range map[string]string{
		filepath.Join(folder, "absolute.txt"): secret, filepath.Join(folder, "folder"): outside, filepath.Join(s.Root, "file", "linked"): outside,
	} {
		if err := os.Symlink(target, name); err != nil {
			site.Skip(t, "no symbolic links here: %v", err)
		}
	}
	for _, path := range []string{"content/absolute.txt", "content/folder/secret.txt", "linked/secret.txt"} {
		if r := s.Get(t, "/static/file/"+path); r.Status != http.StatusNotFound {
			t.Errorf("%s: %d %q", path, r.Status, r.Body)
		}
	}
	for _, place := range []site.Part{site.Field("sub_folder", "folder/deep"), site.Field("alias", "linked")} {
		r := s.UploadFile(t, place, site.File("new.txt", "x"))
		if r.Status < 400 {
			t.Errorf("%q: %d %s", place.Content, r.Status, r.Body)
		}
		wantNoPath(t, r.Failures(t, r.Status), outside, "escapes")
	}
	s.UploadFile(t, site.Field("sub_folder", "/"), site.File("absolute.txt", "mine")).One(t)
	if found := site.Files(t, outside); len(found) != 1 || string(found["secret.txt"]) != "secret" {
		t.Errorf("outside there are now %q", found)
	}
}

func wantNoPath(t *testing.T, failures []site.Failure, paths ...string) {
	t.Helper()
	for _, f := range failures {
		for _, internal := range append(paths, "/tmp", "plain-file", "not a directory", "no space left", "ENOSPC") {
			if strings.Contains(f.Message, internal) {
				t.Errorf("message %q has %q", f.Message, internal)
			}
		}
	}
}

// TestAddresses: behind a proxy that Caddy trusts, an address begins with the scheme and host that
// the proxy names. A stranger cannot change it.
func TestAddresses(t *testing.T) {
	for servers, want := range map[string]string{"": "", "trusted_proxies static 127.0.0.1": "https://www.example"} {
		s := site.StartConfig(t, site.Config{Media: site.Basic, Site: "media", Servers: servers})
		header := site.Merged(s.Credentials(t), site.FormType, site.Headers("X-Forwarded-Host", "www.example", "X-Forwarded-Proto", "https"))
		got := s.Do(t, http.MethodPost, "/api/upload/file", header, site.Form(site.File("a.txt", "x"))).One(t)
		if want := cmp.Or(want, s.URL) + "/static/file/content/" + got.Filename; got.FullPath != want {
			t.Errorf("full_path %s, want %s", got.FullPath, want)
		}
	}
}

// TestStaticCompressed: with encode around the service, a compressed item has another ETag. Both
// ETags are recognised.
func TestStaticCompressed(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"sanitize off\n}\nfile_alias content", "encode gzip\nmedia")
	text := strings.Repeat("some words, again and again\n", 1000)
	path := "/static/file/content/" + s.UploadFile(t, site.File("long.txt", text)).One(t).Filename
	plain, packed := s.Get(t, path), s.Get(t, path, "Accept-Encoding", "gzip")
	if plain.Body != text || packed.Header.Get("Content-Encoding") != "gzip" || len(packed.Body) >= len(text) {
		t.Fatalf("plain %d bytes, packed %d bytes: %v", len(plain.Body), len(packed.Body), packed.Header)
	}
	if plain.Header.Get("ETag") == packed.Header.Get("ETag") {
		t.Error("two representations have one ETag")
	}
	for _, header := range []http.Header{
		site.Headers("If-None-Match", packed.Header.Get("ETag"), "Accept-Encoding", "gzip"),
		site.Headers("If-None-Match", plain.Header.Get("ETag")),
	} {
		if r := s.Do(t, http.MethodGet, path, header, ""); r.Status != http.StatusNotModified {
			t.Errorf("asking again with %v: %d", header, r.Status)
		}
	}
	if r := s.Get(t, path, "Accept-Encoding", "gzip", "Range", "bytes=5-9"); r.Status != http.StatusPartialContent || r.Body != text[5:10] {
		t.Errorf("a range, compression accepted: %d %q", r.Status, r.Body)
	}
}

// nginxConf is an nginx in front of a service, which caches what it may.
// It has one process, which leaves no workers when it is killed.
const nginxConf = `daemon off;
master_process off;
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
	nginx, dir, address := servers.Program(t, "nginx"), site.TempFolder(t), servers.FreeAddress(t)
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, address, service), 0o600); err != nil {
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

const sandbox = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

// templateSite runs templates with the media functions on the pages of a folder.
func templateSite(t *testing.T, media string) (s *site.Site, pages string) {
	t.Helper()
	pages = site.TempFolder(t)
	return site.Start(t, media, "encode gzip\nmedia\nroot * "+pages+"\ntemplates {\nextensions {\nmedia\n}\n}\nfile_server"), pages
}

func writePage(t *testing.T, pages, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(pages, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTemplatesOfStrangers: neither uploads nor submitted names are run as templates.
func TestTemplatesOfStrangers(t *testing.T) {
	t.Setenv("MEDIA_TEST_SECRET", "top-secret")
	const code = `{{env "MEDIA_TEST_SECRET"}}{{readFile "page.html"}} {env.MEDIA_TEST_SECRET}`
	s, pages := templateSite(t, site.Account+site.AtRoot+"sanitize off\n}\nfile_alias content {\nextensions html txt md\n}")
	writePage(t, pages, "page.html", "top-secret")
	for _, name := range []string{"a.html", "a.txt", "a.md", "{env.MEDIA_TEST_SECRET}.txt", `{{env "MEDIA_TEST_SECRET"}}.html`} {
		content := code
		if strings.HasSuffix(name, ".html") {
			content = "<!doctype html>" + code
		}
		up := s.UploadFile(t, site.File(name, content))
		got := up.One(t)
		if got.Filename != name {
			t.Errorf("filename %q, want %q", got.Filename, name)
		}
		r := s.Fetch(t, got.FullPath)
		if r.Body != content {
			t.Errorf("%s is served as %q", name, r.Body)
		}
		if strings.Contains(up.Body+r.Body, "top-secret") {
			t.Errorf("%s: the secret is out", name)
		}
		if strings.HasSuffix(name, ".html") && (r.Header.Get("Content-Security-Policy") != sandbox || !strings.HasPrefix(r.Header.Get("Content-Disposition"), "attachment")) {
			t.Errorf("%s: headers %v", name, r.Header)
		}
	}
	if log := s.Logged(t); strings.Contains(log, "top-secret") {
		t.Error("the secret is logged")
	}
}
