package features_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestContract: the HTTP contract holds through a Caddyfile. Package mediahttp tests all of it.
func TestContract(t *testing.T) {
	s := site.Start(t, site.Basic+"limits {\nmax_file_size 100B\n}\n", "media\nrespond \"next\" 418")
	img := sample.JPEG(t, 4, 3)
	for content, got := range map[string]site.Stored{
		img:    s.UploadImage(t, site.Field("sub_folder", "/"), site.File("Photo.JPG", img)).One(t),
		"text": s.UploadFile(t, site.Field("sub_folder", "/"), site.File("a.txt", "text")).One(t),
	} {
		if r := s.Fetch(t, got.FullPath); r.Status != http.StatusOK || r.Body != content || r.Header.Get("ETag") == "" {
			t.Errorf("%s: %d, %d bytes, header %v", got.FullPath, r.Status, len(r.Body), r.Header)
		}
	}
	const item, nosniff = "/static/file/content/a.txt", "X-Content-Type-Options"
	header := site.Merged(s.Credentials(t), site.FormType)
	upload := func(name, path string, header http.Header, status int, parts ...site.Part) site.Case {
		return site.Case{Name: name, Method: http.MethodPost, Path: path, Header: header, Body: site.Form(parts...), WantStatus: status}
	}
	large := make([]byte, 101)
	site.CheckAll(t, s, []site.Case{
		upload("no token", "/api/upload/image", site.FormType, 401, site.File("a.jpg", img)),
		upload("no file", "/api/upload/image", header, 400),
		upload("unknown alias", "/api/upload/image?alias=none", header, 400, site.File("a.jpg", img)),
		upload("other content", "/api/upload/image", header, 415, site.File("a.png", img)),
		upload("restricted", "/api/upload/file", header, 415, site.File("a.php.txt", "x")),
		upload("too large", "/api/upload/file", header, 413, site.File("a.txt", string(large))),
		{Name: "method", Path: "/api/upload/image", WantStatus: 405, WantHeader: map[string]string{"Allow": "POST"}},
		{Name: "HEAD", Method: http.MethodHead, Path: item, WantStatus: 200, WantHeader: map[string]string{"Content-Length": "4", nosniff: "nosniff"}},
		{Name: "range", Path: item, Header: site.Headers("Range", "bytes=1-2"), WantStatus: 206, WantBody: "ex"},
		{Name: "missing", Path: item + "x", WantStatus: 404},
		{Name: "next handler", Path: "/static/other", WantStatus: 418, WantBody: "next"},
		{Name: "next handler for other methods", Method: http.MethodDelete, Path: item, WantStatus: 418},
	})
	if r := s.Login(t, site.APIKey, "guess"); r.Status != http.StatusUnauthorized {
		t.Errorf("wrong password: %d %s", r.Status, r.Body)
	}
	if stored := len(site.Files(t, s.Root)); stored != 2 {
		t.Errorf("%d files are stored, want 2", stored)
	}
}

// TestNoAccountIsLogged: a site on which no client can log in says so at its start.
func TestNoAccountIsLogged(t *testing.T) {
	s := site.Start(t, site.LocalDefault, "media")
	s.WaitForLog(t, "no account: no client can upload")
	s.Load(t, site.Config{Media: site.Basic, Site: "media"})
	if n := strings.Count(s.Logged(t), "no account"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}
