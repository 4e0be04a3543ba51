package uploads_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/caddymedia/media"
)

// TestUploadAnswer: the response has exactly the documented keys.
func TestUploadAnswer(t *testing.T) {
	t.Parallel()
	run(t, aSite, []httpCase{
		{
			Name: "image", Target: imagePath, Header: multipart + bearer, Status: 200,
			Body: form(file("Photo.JPG", jpegPicture), field("alias", "dated")),
			Text: `{"success":true,"result":[{"full_path":"` + origin + `/static/img/dated/` + uploadDay + `/photo.jpg","filename":"` + uploadDay + `/photo.jpg"}]}` + "\n",
		},
		{
			Name: "variant", Target: imagePath, Header: multipart + bearer, Status: 200,
			Body: form(file("a.jpg", jpegPicture), field("alias", "pictures")),
			Text: `{"success":true,"result":[{"full_path":"` + origin + `/static/img/pictures/a.jpg","filename":"a.jpg","webp":"` +
				origin + `/static/img/pictures/a.jpg.webp"}]}` + "\n",
		},
		{
			Name: "files", Target: filePath, Header: multipart + bearer, Status: 200, Body: form(file("a.pdf", pdfDocument), file("b.txt", "")),
			Text: `{"success":true,"result":[{"full_path":"` + origin + `/static/file/content/a.pdf","filename":"a.pdf"},{"full_path":"` +
				origin + `/static/file/content/b.txt","filename":"b.txt"}]}` + "\n",
		},
		{
			Name: "own address", Target: filePath, Header: multipart + bearer, Status: 200, Body: form(file("a.txt", "x"), field("alias", "cdn")),
			Text: `{"success":true,"result":[{"full_path":"https://cdn.example/x/static/file/cdn/a.txt","filename":"a.txt"}]}` + "\n",
		},
		{
			Name: "forged host", Target: filePath, Header: multipart + bearer + "X-Forwarded-Host: evil.example\nX-Forwarded-Proto: https",
			Body: form(file("a.txt", "x")), Status: 200, Has: `"` + origin + `/static/file/content/a.txt"`,
		},
		{
			Name: "refused", Target: filePath, Header: multipart + bearer, Status: 415, Body: form(file("x.php", "x"), file("a.txt", "x")),
			Has: `{"success":false,"errors":[{"message":"`,
		},
	})
	base := func(c *media.Config) { c.CDNBase = "https://all.example" }
	s := newSiteWith(t, media.Limits{}, base)
	for alias, want := range map[string]string{"content": "https://all.example/static", "cdn": "https://cdn.example/x/static"} {
		httpCase{
			Target: filePath, Header: multipart + bearer, Body: form(file("a.txt", "x"), field("alias", alias)),
			Status: 200, Has: `"` + want + `/file/` + alias + `/a.txt"`,
		}.Check(t, s)
	}
}

// TestUploadWhole: a form that is compressed, or that has a piece of a file, is refused before it
// is read.
func TestUploadWhole(t *testing.T) {
	t.Parallel()
	body := form(file("a.txt", "text"))
	run(t, aSite, []httpCase{
		{Name: "gzip", Target: filePath, Header: multipart + bearer + "Content-Encoding: gzip", Body: body, Status: 415, Has: "Content-Encoding"},
		{Name: "identity", Target: filePath, Header: multipart + bearer + "Content-Encoding: identity", Body: body, Status: 200},
		{Name: "boundary", Target: filePath, Header: "Content-Type: multipart/form-data; boundary=a/b\n" + bearer, Body: body, Status: 415, Has: "quote the boundary"},
		{Name: "no type", Target: filePath, Header: bearer, Body: body, Status: 415, Has: "files[]"},
		{Name: "range", Target: filePath, Header: multipart + bearer + "Content-Range: bytes 0-99/300", Body: body, Status: 400, Has: "use " + filePath + "/resumable"},
		{Name: "offset", Target: imagePath, Header: multipart + bearer + "Upload-Offset: 0", Body: body, Status: 400, Has: "use " + imagePath + "/resumable"},
		{Name: "query", Target: filePath + "?chunk=0&chunks=2", Header: multipart + bearer, Body: body, Status: 400, Has: "a piece"},
		{Name: "no token", Target: filePath, Header: multipart + "Content-Range: bytes 0-99/300", Body: body, Status: 401},
		{Name: "small form", Method: http.MethodPost, Target: tokenPath, Header: urlencoded + "Content-Encoding: gzip", Body: "x", Status: 415, Has: "Content-Encoding"},
	})
}

// TestUploadKinds: every type of image, and the default types of a file alias, are accepted.
func TestUploadKinds(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	for ext, content := range samples {
		c := uploadCase{Parts: []part{file("One."+strings.ToUpper(ext), content)}, Want: []string{"file/content/one." + ext}}
		if ext == "svg" { // images that may be active are for image aliases
			c.Status, c.Want = http.StatusUnsupportedMediaType, []string{"One.SVG"}
		}
		c.Check(t, s)
	}
	for _, ext := range []string{"jpg", "jpeg", "gif", "png", "svg"} {
		content := samples[strings.Replace(ext, "jpeg", "jpg", 1)]
		uploadCase{Parts: []part{file("one."+ext, content)}, Want: []string{"img/content/one." + ext}}.Image().Check(t, s)
	}
}

// TestUploadFields: alias and sub_folder are in the query or in the form, which takes precedence.
// Results are in the order of the files. Package upload tests the rules of forms.
func TestUploadFields(t *testing.T) {
	t.Parallel()
	text, c, a := file("a.txt", "x"), file("c.gif", gifPicture), file("a.gif", gifPicture)
	alias, folder := field("alias", "dated"), field("sub_folder", "Můj Výlet/Den 1")
	runUploads(t, aSite, []uploadCase{
		{Name: "query", Target: "?alias=dated&sub_folder=a%2Fb", Parts: []part{text}, Want: []string{"file/dated/a/b/a.txt"}},
		{Name: "form over query", Target: "?alias=none&sub_folder=a", Parts: []part{text, alias, folder}, Want: []string{"file/dated/muj-vylet/den-1/a.txt"}},
		{Name: "empty everywhere", Target: "?alias=&sub_folder=", Parts: []part{field("alias", ""), text}, Want: []string{"file/content/a.txt"}},
		{Name: "root", Parts: []part{text, alias, field("sub_folder", "/")}, Want: []string{"file/dated/a.txt"}},
		uploadCase{
			Name: "order", Parts: []part{named("files[2]", c), alias, named("files", a), file("", "")},
			Want: []string{"img/dated/" + uploadDay + "/c.gif", "img/dated/" + uploadDay + "/a.gif"},
		}.Image(),
	})
}

// TestRestrictedExtensions: they are refused at every endpoint, wherever the alias is named.
func TestRestrictedExtensions(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	for _, name := range []string{"x.php", "x.PHP.jpg", ".htaccess", "x.php%00.jpg", "=?utf-8?q?x.php?=.txt"} {
		for _, alias := range []string{"content", "exact", "replacing"} {
			p := file(name, "text\n")
			for target, parts := range map[string][]part{
				filePath: {field("alias", alias), p}, imagePath: {p, field("alias", alias)}, filePath + "?alias=" + alias: {named("files[0]", p)},
			} {
				r := s.Do(t, http.MethodPost, target, multipart+bearer, form(parts...))
				if r.Status != http.StatusBadRequest && r.Status != http.StatusUnsupportedMediaType {
					t.Errorf("%s to %s of %s: %d %s", name, target, alias, r.Status, r.Body)
					continue
				}
				r.Refused(t, r.Status, "", name)
			}
		}
	}
	uploadCase{
		Parts: []part{field("alias", "exact"), field("sub_folder", "x/a.PHP"), file("a.txt", "x")}, Status: http.StatusBadRequest,
	}.Check(t, s)
}

// TestContent: an alias accepts the extensions on its list, and content of that type.
func TestContent(t *testing.T) {
	t.Parallel()
	web, script := field("alias", "web"), file("a.svg", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`)
	refused := func(name, has string, parts ...part) uploadCase {
		return uploadCase{Name: name, Parts: parts, Status: 415, Has: has, Want: []string{parts[len(parts)-1].Filename}}
	}
	runUploads(t, aSite, []uploadCase{
		refused("other image", "content is PNG, the name says .jpg", file("a.jpg", pngPicture)).Image(),
		refused("no image", "", part{Name: "files", IsFile: true, Filename: "a.jpg", Content: "<html>", Header: "Content-Type: image/jpeg\r\n"}).Image(),
		refused("file as image", "", file("a.pdf", pdfDocument)).Image(),
		refused("script in SVG", "", script).Image(),
		refused("no SVG", "", field("alias", "nosvg"), file("a.svg", svgPicture)).Image(),
		refused("not on the list", "", web, file("a.jpg", jpegPicture)),
		refused("last not on the list", "", web, file("a.pdf.gz", gzipFile)),
		refused("program as text", "", file("a.txt", "\x7fELF\x02\x01\x01\x00")),
		refused("page as pdf", "", file("a.pdf", "<!doctype html><script>1</script>")),
		uploadCase{Name: "SVG kept", Parts: []part{script, field("alias", "keep")}, Want: []string{"img/keep/a.svg"}}.Image(),
		{Name: "script as text", Parts: []part{file("a.txt", "<?php phpinfo();")}, Want: []string{"file/content/a.txt"}}, // shown, never run
		{Name: "on the list", Parts: []part{web, file("a.PDF", pdfDocument)}, Want: []string{"file/web/a.PDF"}},
	})
}

// TestNames: the names of items, by the rules of package naming. No name and no sub folder leaves
// the folder of the alias.
func TestNames(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	for submitted, want := range map[string]string{
		"Test Filename ěščř.TXT":           "content/test-filename-escr.txt",
		"{env.HOME}{{.}}.txt":              "content/env-home.txt",
		"=?utf-8?B?xJtzLnR4dA==?=":         "content/es.txt",
		"\xe9t\xe9.txt":                    "content/ete.txt",
		"../../a.txt":                      "content/a.txt",
		`..\a1.txt`:                        "content/a1.txt",
		"=?utf-8?B?Li4vLi4vYjEudHh0?=":     "content/b1.txt",
		"100% & more?.txt":                 "exact/My Folder/ž/100% & more?.txt",
		"a#b;c=d+e.txt":                    "exact/My Folder/ž/a#b;c=d+e.txt",
		"{file.passwd} a'b\"c 日本語 %41.txt": "exact/My Folder/ž/{file.passwd} a'b\"c 日本語 %41.txt",
		"x/../../\u202dc.txt.txt":          "",
		"a\tb.txt":                         "",
		"x.txt.":                           "",
		strings.Repeat("x", 197) + ".txt":  "",
	} {
		alias, folder := field("alias", "exact"), field("sub_folder", "My Folder/ž")
		switch {
		case want == "":
			uploadCase{Parts: []part{alias, file(submitted, "x")}, Status: 400, Want: []string{submitted}}.Check(t, s)
		case strings.HasPrefix(want, "exact"):
			uploadCase{Parts: []part{alias, folder, file(submitted, "x")}, Want: []string{"file/" + want}}.Check(t, s)
		default:
			uploadCase{Parts: []part{file(submitted, "x")}, Want: []string{"file/" + want}}.Check(t, s)
		}
	}
	for _, folder := range []string{"../x", "x/../y", "/x", `..\x`, "x\x00y", "a\r\nDELE x", strings.Repeat("x", 513)} {
		uploadCase{Parts: []part{field("sub_folder", folder), file("a.txt", "x")}, Status: 400, Want: []string{"a.txt"}}.Check(t, s)
	}
	for _, query := range []string{"..%2Fx", "%2e%2e/x", "%5Cx", "a%0d%0aDELE%20x"} {
		uploadCase{Target: "?sub_folder=" + query, Parts: []part{file("a.txt", "x")}, Status: 400}.Check(t, s)
	}
	for _, p := range []part{file("a\x00.txt", "x"), file("a\r\nX-Injected: 1.txt", "x")} {
		uploadCase{Parts: []part{p}, Status: 400, Want: []string{""}}.Check(t, s)
	}
}

// TestEqualNames: without overwriting, a second item of a name gets the time in its name, and the
// first one stays, whatever the fields of the form ask for.
func TestEqualNames(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	uploadCase{Parts: []part{file("a.txt", "mine")}, Want: []string{"file/content/a.txt"}}.Check(t, s)
	uploadCase{
		Target: "?filename=a.txt&overwrite=1", Want: []string{"file/content/a-" + noonSecond + ".txt", "file/content/a-1795176001.txt"},
		Parts: []part{file("A.TXT", "theirs"), file("a.txt", "third"), field("filename", "a.txt"), field("overwrite", "1"), field("id", "a.txt")},
	}.Check(t, s)
	if content, _ := s.Stored(t, "file/content/a.txt"); content != "mine" {
		t.Errorf("the first is now %q", content)
	}
}

// TestPrefix: the folder in the storage may differ from the address.
func TestPrefix(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.FileAliases["prefixed"] = &media.FileAlias{AliasOptions: media.AliasOptions{Storage: "main", Prefix: "a/b"}}
	})
	httpCase{
		Target: filePath, Header: multipart + bearer, Body: form(field("alias", "prefixed"), file("a.txt", "x")),
		Status: 200, Has: `"` + origin + `/static/file/prefixed/a.txt"`,
	}.Check(t, s)
	if content, _ := s.Stored(t, "a/b/a.txt"); content != "x" {
		t.Errorf("stored %v", s.Objects(t))
	}
	httpCase{Target: "/static/file/prefixed/a.txt", Status: 200, Text: "x"}.Check(t, s)
}

// TestGlob: characters of patterns in a name match nothing else.
func TestGlob(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		for i := range c.Storages {
			c.Storages[i].Sanitize = new(bool)
		}
	})
	names := []string{"a.txt", "*.txt", "?.txt", "[a].txt", "a*.txt"}
	for round := range 2 {
		for _, name := range names {
			uploadCase{
				Parts: []part{field("alias", "replacing"), file(name, fmt.Sprint(round, name))}, Want: []string{"file/replacing/" + name},
			}.Check(t, s)
		}
	}
	for _, name := range names {
		if content, _ := s.Stored(t, "file/replacing/"+name); content != "1"+name {
			t.Errorf("%s holds %q", name, content)
		}
	}
}

// TestRenamed: every way in stores an image with the extension of its content.
func TestRenamed(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.ImageAliases["renaming"] = &media.ImageAlias{AliasOptions: on("exact"), Formats: []string{"webp"}, RenameMismatched: true}
	})
	const address = "/api/upload/image/renaming/"
	httpCase{
		Name: "PUT", Method: http.MethodPut, Target: address + "blob", Header: bearer, Body: samples["png"], Status: 201,
		Want: "Location: http://example.com/static/img/renaming/blob.png", Has: `"filename":"blob.png"`,
	}.Check(t, s)
	httpCase{
		Name: "PUT of JFIF", Method: http.MethodPut, Target: "/api/upload/image/content/photo.jfif", Header: bearer, Body: jpegPicture, Status: 201,
		Want: "Location: http://example.com/static/img/content/photo.jpg",
	}.Check(t, s)
	s.Ticket(t, "kind=image&alias=renaming&filename=avatar")
	httpCase{
		Name: "ticket", Method: http.MethodPost, Target: imagePath, Header: multipart + ticketBearer,
		Body: form(file("x", samples["png"])), Status: 200, Has: `"filename":"avatar.png"`,
	}.Check(t, s)
}

// TestLimits: the configured limits are those of uploads. Package upload tests each of them at its
// value.
func TestLimits(t *testing.T) {
	t.Parallel()
	limited := func(t *testing.T) *site {
		t.Helper()
		return newSite(t, media.Limits{
			MaxBody: 30 << 10, MaxImageSize: 20 << 10, MaxFileSize: 10 << 10, MaxPixels: 1000,
			MaxFiles: 3, MaxFields: 4, MaxFieldSize: 100, MaxPartHeader: 1 << 10,
		})
	}
	times := func(n int, p part) []part {
		parts := make([]part, n)
		for i := range parts {
			parts[i] = p
		}
		return parts
	}
	x := file("a.txt", "x")
	text := func(size int) part { return file("a.txt", strings.Repeat("x", size)) }
	refused := func(name, has string, parts ...part) uploadCase {
		return uploadCase{Name: name, Parts: parts, Status: 413, Has: has}
	}
	runUploads(t, limited, []uploadCase{
		refused("files", "3 files", times(4, x)...),
		refused("fields", "4 fields", append(times(5, field("x", "")), x)...),
		refused("field", "100 bytes", field("x", strings.Repeat("x", 101)), x),
		refused("part header", "header of a part", part{Name: "files", IsFile: true, Filename: "a.txt", Header: "X: " + strings.Repeat("x", 1000) + "\r\n"}),
		refused("file", "10 KiB", text(10<<10+1)),
		refused("body", "30 KiB", times(3, text(10<<10))...),
		refused("pixels", "pixels", file("a.png", pngOf(41, 25))).Image(),
		refused("pixels of the alias", "pixels", field("alias", "few"), file("a.png", pngOf(4, 3))).Image(),
		refused("bomb", "pixels", file("a.png", pngBomb(50_000, 50_000))).Image(),
		refused("size of the alias", bytesize.Format(10), file("a.txt", "more than ten"), field("alias", "small")),
		{Name: "larger alias", Parts: []part{text(1 << 10), field("alias", "large")}, Want: []string{"file/large/a.txt"}},
		uploadCase{Name: "as many pixels", Parts: []part{file("a.png", pngOf(40, 25))}, Want: []string{"img/content/a.png"}}.Image(),
	})
	s := limited(t)
	r := s.Request(t, http.MethodPost, filePath, multipart+bearer, strings.Repeat("\r\n", 40<<10)+form(x))
	r.ContentLength = -1
	s.Send(t, r).Refused(t, http.StatusRequestEntityTooLarge, "", "") // bytes outside of parts, of unknown number
}

// TestBadUploads: damaged uploads, many at once, neither panic nor leave anything.
func TestBadUploads(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	token := s.Token(t)
	server := httptest.NewServer(s.Handler)
	defer server.Close()
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			broken := []byte(jpegPicture)
			broken[(i*37)%len(broken)] ^= 0xff
			kinds := []string{"a.jpg", "a.png", "a.gif", "a.svg"}
			body := form(file(kinds[i%4], string(broken)), file("\x00\xff", ""), field("alias", "\xff{"), field("\x00", "x"))
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
				server.URL+imagePath+"?alias=%ff&sub_folder=%00", strings.NewReader(body[:len(body)-i]))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", multipartType)
			resp, err := server.Client().Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode < 400 || resp.StatusCode >= 500 {
				t.Errorf("upload %d: %d", i, resp.StatusCode)
			}
		})
	}
	all.Wait()
	if stored := s.Objects(t); len(stored) > 0 {
		t.Errorf("stored %v", stored)
	}
}
