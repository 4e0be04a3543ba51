package features_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

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
