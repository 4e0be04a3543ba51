package features_test

import (
	"cmp"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
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

// TestSymbolicLinks: a link out of the storage is followed neither for reading nor for writing.
func TestSymbolicLinks(t *testing.T) {
	s := site.Start(t, site.Basic+"file_alias linked", "media")
	s.UploadFile(t, site.Field("sub_folder", "/"), site.File("inside.txt", "inside")).One(t)
	outside := filepath.Join(filepath.Dir(s.Root), "outside")
	if err := os.MkdirAll(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(outside, "secret.txt")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(s.Root, "file", "content")
	for name, target := range map[string]string{
		folder + "/absolute.txt":                secret,
		folder + "/relative.txt":                "../../../outside/secret.txt",
		folder + "/folder":                      outside,
		folder + "/up":                          "../../..",
		folder + "/loop.txt":                    "loop.txt",
		folder + "/dangling.txt":                "nothing",
		filepath.Join(s.Root, "file", "linked"): outside,
	} {
		if err := os.Symlink(target, name); err != nil {
			site.Skip(t, "no symbolic links here: %v", err)
		}
	}
	for _, path := range []string{
		"content/absolute.txt", "content/relative.txt", "content/folder/secret.txt", "content/up/outside/secret.txt", "content/loop.txt",
		"content/dangling.txt", "linked/secret.txt", "content/folder", "content/up",
	} {
		if r := s.Get(t, "/static/file/"+path); r.Status != http.StatusNotFound {
			t.Errorf("%s: %d %q", path, r.Status, r.Body)
		}
	}
	for _, parts := range [][]site.Part{
		{site.Field("sub_folder", "folder"), site.File("new.txt", "x")},
		{site.Field("sub_folder", "up"), site.File("new.txt", "x")},
		{site.Field("sub_folder", "folder/deep"), site.File("new.txt", "x")},
		{site.Field("alias", "linked"), site.Field("sub_folder", "/"), site.File("new.txt", "x")},
	} {
		r := s.UploadFile(t, parts...)
		if r.Status < 400 {
			t.Errorf("%q: %d %s", parts[0].Content, r.Status, r.Body)
		}
		wantNoPath(t, r.Failures(t, r.Status), outside, "escapes")
	}
	s.UploadFile(t, site.Field("sub_folder", "/"), site.File("absolute.txt", "mine")).One(t)
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" || len(site.Files(t, outside)) != 1 {
		t.Errorf("a file outside has changed: %q %v %v", b, err, site.Files(t, outside))
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
