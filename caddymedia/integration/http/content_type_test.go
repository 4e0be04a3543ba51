package http_test

import (
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

const sandbox = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

// TestStaticTypes: the headers of an item do not depend on the type that the uploader declared.
func TestStaticTypes(t *testing.T) {
	s := staticSite(t, "media")
	all := sample.All(t)
	for _, c := range []struct {
		image             bool
		name, content     string
		contentType, save string
		policy            string
	}{
		{true, "a.jpg", all["jpg"], "image/jpeg", "", ""},
		{true, "a.JPEG", all["jpg"], "image/jpeg", "", ""},
		{true, "a.png", all["png"], "image/png", "", ""},
		{true, "a.gif", all["gif"], "image/gif", "", ""},
		{true, "a.svg", all["svg"], "image/svg+xml", "", sandbox},
		{false, "a.pdf", all["pdf"], "application/pdf", "", ""},
		{false, "a.txt", "<script>1</script>", "text/plain; charset=utf-8", "", ""},
		{false, "a.mp3", "ID3\x03\x00\x00\x00\x00\x00\x00", "audio/mpeg", "", ""},
		{false, "a.zip", all["zip"], "application/zip", "a.zip", ""},
		{false, "My Archive ěšč \"1\".zip", all["zip"], "application/zip", "My Archive ěšč \"1\".zip", ""},
		{false, "a.html", "<!doctype html><p>x", "text/html; charset=utf-8", "a.html", sandbox},
		{false, "a.xml", "<a/>", "application/xml", "a.xml", sandbox},
		{false, "b.svg", all["svg"], "image/svg+xml", "", sandbox},
		{false, "a.json", "{}", "application/json", "a.json", ""},
		{false, "a.js", "alert(1)", "text/javascript; charset=utf-8", "a.js", ""},
		{false, "a.css", "a{}", "text/css; charset=utf-8", "a.css", ""},
		{false, "a.md", "# x", "text/markdown; charset=utf-8", "a.md", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			upload := s.UploadFile
			if c.image {
				upload = s.UploadImage
			}
			part := site.File(c.name, c.content)
			part.Header = "Content-Type: text/html\r\n" // a second one, also ignored
			r := s.Fetch(t, upload(t, part).One(t).FullPath)
			if r.Status != http.StatusOK || r.Body != c.content {
				t.Fatalf("%d %q", r.Status, r.Body)
			}
			for name, want := range map[string]string{
				"Content-Type": c.contentType, "Content-Security-Policy": c.policy, "X-Content-Type-Options": "nosniff", "Set-Cookie": "",
			} {
				if got := r.Header.Get(name); got != want {
					t.Errorf("%s %q, want %q", name, got, want)
				}
			}
			disposition := r.Header.Get("Content-Disposition")
			if c.save == "" {
				if disposition != "" {
					t.Errorf("Content-Disposition %q, want none", disposition)
				}
				return
			}
			kind, params, err := mime.ParseMediaType(disposition)
			if err != nil || kind != "attachment" || params["filename"] != c.save {
				t.Errorf("Content-Disposition %q, want an attachment called %s", disposition, c.save)
			}
		})
	}
}

// TestActiveSVG: an SVG with active content is refused by default. If kept, it is served in a
// sandbox.
func TestActiveSVG(t *testing.T) {
	s := site.Start(t, site.Basic+"image_alias keep {\nsvg keep\n}\nimage_alias off {\nsvg off\n}", "media")
	for name, inner := range map[string]string{
		"script":  `<script>alert(1)</script>`,
		"handler": `<rect onload="alert(1)"/>`,
		"link":    `<a href="javascript:alert(1)"><rect/></a>`,
		"image":   `<image href="https://evil.example/x.png"/>`,
		"foreign": `<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"/></foreignObject>`,
		"use":     `<use href="https://evil.example/x.svg#a"/>`,
	} {
		picture := `<svg xmlns="http://www.w3.org/2000/svg">` + inner + `</svg>`
		t.Run(name, func(t *testing.T) {
			s.UploadImage(t, site.File("a.svg", picture)).Failures(t, http.StatusUnsupportedMediaType)
			r := s.Fetch(t, s.UploadImage(t, site.Field("alias", "keep"), site.File("a.svg", picture)).One(t).FullPath)
			if r.Body != picture || r.Header.Get("Content-Security-Policy") != sandbox {
				t.Errorf("%q with policy %q", r.Body, r.Header.Get("Content-Security-Policy"))
			}
		})
	}
	entity := `<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg xmlns="http://www.w3.org/2000/svg"><text>&x;</text></svg>`
	s.UploadImage(t, site.File("a.svg", entity)).Failures(t, http.StatusUnsupportedMediaType)
	s.UploadImage(t, site.Field("alias", "off"), site.File("a.svg", sample.SVG)).Failures(t, http.StatusUnsupportedMediaType)
	s.UploadImage(t, site.File("a.svg", sample.SVG)).One(t)
}

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

// TestTemplateFunctions: a page gets the addresses of aliases. An unknown alias breaks the page,
// not the site.
func TestTemplateFunctions(t *testing.T) {
	media := site.Basic + "image_alias own {\ncdn_base https://img.example\n}\n"
	const page = `{{image_path "content"}} {{file_path "content"}} {{image_path "own"}}/{{"a.jpg"}}`
	s, pages := templateSite(t, media)
	writePage(t, pages, "page.html", page)
	writePage(t, pages, "unknown.html", `{{image_path "none"}}`)
	writePage(t, pages, "kind.html", `{{file_path "own"}}`)
	site.CheckAll(t, s, []site.Case{
		{Name: "no cdn_base", Path: "/page.html", WantStatus: 200, WantBody: "/static/img/content /static/file/content https://img.example/static/img/own/a.jpg"},
		{Name: "unknown alias", Path: "/unknown.html", WantStatus: 500},
		{Name: "alias of the other kind", Path: "/kind.html", WantStatus: 500},
	})
	s.WaitForLog(t, `unknown alias \"none\"`)

	s, pages = templateSite(t, media+"cdn_base https://cdn.example/\n")
	writePage(t, pages, "page.html", page)
	site.CheckAll(t, s, []site.Case{{
		Name: "cdn_base", Path: "/page.html", WantStatus: 200,
		WantBody: "https://cdn.example/static/img/content https://cdn.example/static/file/content https://img.example/static/img/own/a.jpg",
	}})
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
