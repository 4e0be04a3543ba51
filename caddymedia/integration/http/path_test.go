package http_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
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

// TestStaticPaths: an item has one address. All other spellings and paths are answered with 404.
func TestStaticPaths(t *testing.T) {
	s := site.Start(t, site.Basic, "media\nrespond \"next\" 418")
	got := s.UploadFile(t, site.Field("sub_folder", "a/b"), site.File("item.txt", "content")).One(t)
	address := strings.TrimPrefix(got.FullPath, s.URL)
	s.UploadImage(t, site.File("a.gif", sample.GIF(t))).One(t)
	outside := filepath.Join(filepath.Dir(s.Root), "outside.txt")
	for name, content := range map[string]string{
		outside:                         "outside",
		s.Root + "/top.txt":             "top",
		s.Root + "/file/content/.env":   "hidden",
		s.Root + "/file/content/.d/x":   "hidden",
		s.Root + "/file/content/a/.txt": "hidden",
		s.Root + "/file/other/x.txt":    "of no alias",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.Get(t, address); r.Body != "content" {
		t.Fatalf("%s: %d", address, r.Status)
	}
	for _, path := range []string{
		"/static/img/", "/static/file/", "/static/file/content", "/static/file/content/", "/static/file/content/a", "/static/file/content/a/", "/static/file/content/a/b/",
		address + "/", address + ".", address + "%20", address + "%00", address + "x", "/static/file/content//a/b/item.txt", "/static/file/content/a//b/item.txt",
		"/static/file/content/A/b/item.txt", "/static/file/Content/a/b/item.txt", "/static/file/none/a/b/item.txt", "/static/img/content/a/b/item.txt",
		"/static/file/content/./a/b/item.txt", "/static/file/content/a/../a/b/item.txt", "/static/file/content/a/b/../b/item.txt",
		"/static/file/content/%2e/a/b/item.txt", "/static/file/content/a/%2e%2e/a/b/item.txt", "/static/file/content/a/b/%2E%2E/b/item.txt",
		"/static/file/content/a%2fb/item.txt", "/static/file/content/a%2Fb/item.txt", "/static/file/content%2Fa/b/item.txt", "/static/file%2fcontent/a/b/item.txt",
		"/static/file/content/a%5cb%5citem.txt", `/static/file/content/a\b\item.txt`, "/static/file/content/a/b%5citem.txt", "/static/file/content/a/b/..%5cb/item.txt",
		"/static/file/content/.env", "/static/file/content/%2eenv", "/static/file/content/.d/x", "/static/file/content/a/.txt",
		"/static/file/content/../../top.txt", "/static/file/content/%2e%2e/%2e%2e/top.txt", "/static/file/content/..%2f..%2ftop.txt", "/static/file/content/..%2f..%2f..%2foutside.txt",
		"/static/file/content/../other/x.txt", "/static/file/../file/other/x.txt", "/static/file/other/x.txt", "/static/file/content/..%5c..%5ctop.txt",
		"/static/file/content/%252e%252e/%252e%252e/top.txt", "/static/file/content/a/b/item.txt%2f..%2fitem.txt", "/static/file/content/a/b/item.txt::$DATA",
		"/static/file//etc/passwd", "/static/file/content//etc/passwd", "/static/file/content/%2fetc%2fpasswd", "/static/file/content/a/b/item.txt%ff", "/static/file/content/" + strings.Repeat("x", 300),
		"/static/file/content/" + strings.Repeat("x/", 800) + "x", "/static/file/content/a/b/*", "/static/file/content/a/b/item.???", "/static/file/content/{env.HOME}",
	} {
		t.Run(path, func(t *testing.T) {
			// Send the bytes unchanged: an HTTP client would normalize the path.
			r := raw(t, s, "GET "+path+" HTTP/1.1\r\nHost: media.test\r\nConnection: close\r\n\r\n")
			if r.Status != http.StatusNotFound && r.Status != 418 {
				t.Errorf("status %d: %s", r.Status, r.Body)
			}
			if strings.HasPrefix(path, "/static/file/") && !strings.Contains(path, "/../file") && r.Status != http.StatusNotFound {
				t.Errorf("status %d, want 404", r.Status)
			}
		})
	}
	// A query is not part of the name.
	if r := s.Get(t, address+"?v=1&download=../x"); r.Body != "content" {
		t.Errorf("with a query: %d", r.Status)
	}
}

// TestStaticEncodings: the characters of a name, except for slashes, may be percent-encoded in any
// way.
func TestStaticEncodings(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"sanitize off\n}\nfile_alias content", "media")
	const name = "Ä b+c.txt"
	s.UploadFile(t, site.File(name, "content")).One(t)
	all := ""
	for _, c := range []byte(name) {
		all += fmt.Sprintf("%%%02x", c)
	}
	for _, path := range []string{url.PathEscape(name), strings.ReplaceAll(url.PathEscape(name), "+", "%2B"), all, "%c3%84%20b+c.txt"} {
		if r := s.Get(t, "/static/file/content/"+path); r.Body != "content" {
			t.Errorf("%s: %d", path, r.Status)
		}
	}
	if r := s.Get(t, "/static/file/content/%C3%84+b+c.txt"); r.Status != http.StatusNotFound {
		t.Errorf("a plus for a space: %d", r.Status)
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
