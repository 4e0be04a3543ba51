package integration

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBelowPrefix: the address of an upload reaches the item if the service is mounted below a
// prefix.
func TestBelowPrefix(t *testing.T) {
	s := startSite(t, basic, "handle_path /media/* {\nmedia\n}\nmedia")
	for _, prefix := range []string{"", "/media"} {
		got := s.upload(t, prefix+"/api/upload/file", file("item.txt", "content")).one(t)
		if !strings.HasPrefix(got.FullPath, s.url+prefix+"/static/file/content/") {
			t.Errorf("%q: address %s", prefix, got.FullPath)
		}
		if r := s.get(t, strings.TrimPrefix(got.FullPath, s.url)); r.status != http.StatusOK || r.body != "content" {
			t.Errorf("%s: %d %q", got.FullPath, r.status, r.body)
		}
	}
}

// TestStaticPaths: an item has one address. All other spellings and paths are answered with 404.
func TestStaticPaths(t *testing.T) {
	s := startSite(t, basic, "media\nrespond \"next\" 418")
	got := s.uploadFile(t, field("sub_folder", "a/b"), file("item.txt", "content")).one(t)
	address := strings.TrimPrefix(got.FullPath, s.url)
	s.uploadImage(t, file("a.gif", gifOf(t))).one(t)
	outside := filepath.Join(filepath.Dir(s.root), "outside.txt")
	for name, content := range map[string]string{
		outside:                         "outside",
		s.root + "/top.txt":             "top",
		s.root + "/file/content/.env":   "hidden",
		s.root + "/file/content/.d/x":   "hidden",
		s.root + "/file/content/a/.txt": "hidden",
		s.root + "/file/other/x.txt":    "of no alias",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.get(t, address); r.body != "content" {
		t.Fatalf("%s: %d", address, r.status)
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
			r := s.raw(t, "GET "+path+" HTTP/1.1\r\nHost: media.test\r\nConnection: close\r\n\r\n")
			if r.status != http.StatusNotFound && r.status != 418 {
				t.Errorf("status %d: %s", r.status, r.body)
			}
			if strings.HasPrefix(path, "/static/file/") && !strings.Contains(path, "/../file") && r.status != http.StatusNotFound {
				t.Errorf("status %d, want 404", r.status)
			}
		})
	}
	// A query is not part of the name.
	if r := s.get(t, address+"?v=1&download=../x"); r.body != "content" {
		t.Errorf("with a query: %d", r.status)
	}
}

// TestStaticEncodings: the characters of a name, except for slashes, may be percent-encoded in any
// way.
func TestStaticEncodings(t *testing.T) {
	s := startSite(t, account+atRoot+"sanitize off\n}\nfile_alias content", "media")
	const name = "Ä b+c.txt"
	s.uploadFile(t, file(name, "content")).one(t)
	all := ""
	for _, c := range []byte(name) {
		all += fmt.Sprintf("%%%02x", c)
	}
	for _, path := range []string{url.PathEscape(name), strings.ReplaceAll(url.PathEscape(name), "+", "%2B"), all, "%c3%84%20b+c.txt"} {
		if r := s.get(t, "/static/file/content/"+path); r.body != "content" {
			t.Errorf("%s: %d", path, r.status)
		}
	}
	if r := s.get(t, "/static/file/content/%C3%84+b+c.txt"); r.status != http.StatusNotFound {
		t.Errorf("a plus for a space: %d", r.status)
	}
}

// TestSymbolicLinks: a link out of the storage is followed neither for reading nor for writing.
func TestSymbolicLinks(t *testing.T) {
	s := startSite(t, basic+"file_alias linked", "media")
	s.uploadFile(t, field("sub_folder", "/"), file("inside.txt", "inside")).one(t)
	outside := filepath.Join(filepath.Dir(s.root), "outside")
	if err := os.MkdirAll(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(outside, "secret.txt")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(s.root, "file", "content")
	for name, target := range map[string]string{
		folder + "/absolute.txt":                secret,
		folder + "/relative.txt":                "../../../outside/secret.txt",
		folder + "/folder":                      outside,
		folder + "/up":                          "../../..",
		folder + "/loop.txt":                    "loop.txt",
		folder + "/dangling.txt":                "nothing",
		filepath.Join(s.root, "file", "linked"): outside,
	} {
		if err := os.Symlink(target, name); err != nil {
			skip(t, "no symbolic links here: %v", err)
		}
	}
	for _, path := range []string{
		"content/absolute.txt", "content/relative.txt", "content/folder/secret.txt", "content/up/outside/secret.txt", "content/loop.txt",
		"content/dangling.txt", "linked/secret.txt", "content/folder", "content/up",
	} {
		if r := s.get(t, "/static/file/"+path); r.status != http.StatusNotFound {
			t.Errorf("%s: %d %q", path, r.status, r.body)
		}
	}
	for _, parts := range [][]formPart{
		{field("sub_folder", "folder"), file("new.txt", "x")},
		{field("sub_folder", "up"), file("new.txt", "x")},
		{field("sub_folder", "folder/deep"), file("new.txt", "x")},
		{field("alias", "linked"), field("sub_folder", "/"), file("new.txt", "x")},
	} {
		r := s.uploadFile(t, parts...)
		if r.status < 400 {
			t.Errorf("%q: %d %s", parts[0].content, r.status, r.body)
		}
		wantNoPath(t, r.failures(t, r.status), outside, "escapes")
	}
	s.uploadFile(t, field("sub_folder", "/"), file("absolute.txt", "mine")).one(t)
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" || len(files(t, outside)) != 1 {
		t.Errorf("a file outside has changed: %q %v %v", b, err, files(t, outside))
	}
}
