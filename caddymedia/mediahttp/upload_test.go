package mediahttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
)

// TestUploadAnswer: the response has exactly the documented keys.
func TestUploadAnswer(t *testing.T) {
	t.Parallel()
	run(t, aSite, []httpCase{
		{
			name: "image", target: imagePath, header: multipart + bearer, status: 200,
			body: form(file("Photo.JPG", jpegPicture), field("alias", "dated")),
			text: `{"success":true,"result":[{"full_path":"` + origin + `/static/img/dated/` + uploadDay + `/photo.jpg","filename":"` + uploadDay + `/photo.jpg"}]}` + "\n",
		},
		{
			name: "variant", target: imagePath, header: multipart + bearer, status: 200,
			body: form(file("a.jpg", jpegPicture), field("alias", "pictures")),
			text: `{"success":true,"result":[{"full_path":"` + origin + `/static/img/pictures/a.jpg","filename":"a.jpg","webp":"` +
				origin + `/static/img/pictures/a.jpg.webp"}]}` + "\n",
		},
		{
			name: "files", target: filePath, header: multipart + bearer, status: 200, body: form(file("a.pdf", pdfDocument), file("b.txt", "")),
			text: `{"success":true,"result":[{"full_path":"` + origin + `/static/file/content/a.pdf","filename":"a.pdf"},{"full_path":"` +
				origin + `/static/file/content/b.txt","filename":"b.txt"}]}` + "\n",
		},
		{
			name: "own address", target: filePath, header: multipart + bearer, status: 200, body: form(file("a.txt", "x"), field("alias", "cdn")),
			text: `{"success":true,"result":[{"full_path":"https://cdn.example/x/static/file/cdn/a.txt","filename":"a.txt"}]}` + "\n",
		},
		{
			name: "forged host", target: filePath, header: multipart + bearer + "X-Forwarded-Host: evil.example\nX-Forwarded-Proto: https",
			body: form(file("a.txt", "x")), status: 200, has: `"` + origin + `/static/file/content/a.txt"`,
		},
		{
			name: "refused", target: filePath, header: multipart + bearer, status: 415, body: form(file("x.php", "x"), file("a.txt", "x")),
			has: `{"success":false,"errors":[{"message":"`,
		},
	})
	base := func(c *media.Config) { c.CDNBase = "https://all.example" }
	s := newSiteWith(t, media.Limits{}, base)
	for alias, want := range map[string]string{"content": "https://all.example/static", "cdn": "https://cdn.example/x/static"} {
		httpCase{
			target: filePath, header: multipart + bearer, body: form(file("a.txt", "x"), field("alias", alias)),
			status: 200, has: `"` + want + `/file/` + alias + `/a.txt"`,
		}.check(t, s)
	}
}

// TestUploadKinds: every type of picture, and the default types of a file alias, are accepted.
func TestUploadKinds(t *testing.T) {
	t.Parallel()
	for ext, content := range samples {
		for _, name := range []string{"one." + ext, "One." + strings.ToUpper(ext)} {
			c := uploadCase{name: "file " + name, parts: []part{file(name, content)}, want: []string{"file/content/one." + ext}}
			if ext == "svg" { // pictures that may be active are for image aliases
				c.status, c.want = http.StatusUnsupportedMediaType, []string{name}
			}
			c.run(t, aSite)
		}
	}
	for _, ext := range []string{"jpg", "jpeg", "gif", "png", "svg"} {
		content := samples[strings.Replace(ext, "jpeg", "jpg", 1)]
		uploadCase{name: "image " + ext, parts: []part{file("one."+ext, content)}, want: []string{"img/content/one." + ext}}.image().run(t, aSite)
	}
}

// TestUploadWhole: a form that is compressed, or that has a piece of a file, is refused before it
// is read.
func TestUploadWhole(t *testing.T) {
	t.Parallel()
	body := form(file("a.txt", "text"))
	run(t, aSite, []httpCase{
		{name: "gzip", target: filePath, header: multipart + bearer + "Content-Encoding: gzip", body: body, status: 415, has: "Content-Encoding"},
		{name: "identity", target: filePath, header: multipart + bearer + "Content-Encoding: identity", body: body, status: 200},
		{name: "boundary", target: filePath, header: "Content-Type: multipart/form-data; boundary=a/b\n" + bearer, body: body, status: 415, has: "quote the boundary"},
		{name: "no type", target: filePath, header: bearer, body: body, status: 415, has: "files[]"},
		{name: "range", target: filePath, header: multipart + bearer + "Content-Range: bytes 0-99/300", body: body, status: 400, has: "use " + filePath + "/resumable"},
		{name: "offset", target: imagePath, header: multipart + bearer + "Upload-Offset: 0", body: body, status: 400, has: "use " + imagePath + "/resumable"},
		{name: "query", target: filePath + "?chunk=0&chunks=2", header: multipart + bearer, body: body, status: 400, has: "a piece"},
		{name: "no token", target: filePath, header: multipart + "Content-Range: bytes 0-99/300", body: body, status: 401},
		{name: "small form", method: http.MethodPost, target: tokenPath, header: urlencoded + "Content-Encoding: gzip", body: "x", status: 415, has: "Content-Encoding"},
	})
}

// TestUploadOrder: results are in the order of the files, whatever the names of the parts are.
func TestUploadOrder(t *testing.T) {
	t.Parallel()
	c, a, b := file("c.gif", gifPicture), file("a.gif", gifPicture), file("b.gif", gifPicture)
	empty := file("", "")
	for name, parts := range map[string][]part{
		"files[]":        {c, a, b},
		"files[index]":   {named("files[2]", c), named("files[0]", a), named("files[x]", b)},
		"files":          {named("files", c), named("files", a), named("files", b)},
		"mixed":          {named("files", c), named("files[3]", a), b},
		"fields between": {c, field("alias", "content"), a, field("more", "x"), b},
		"empty inputs":   {empty, c, named("photo", empty), a, b, named("files", empty)},
	} {
		want := []string{"img/content/c.gif", "img/content/a.gif", "img/content/b.gif"}
		uploadCase{name: name, parts: parts, want: want}.image().run(t, aSite)
	}
}

// TestUploadFields: alias and sub_folder are in the query or in the form, before or after the file.
// The form takes precedence; an empty value means unset.
func TestUploadFields(t *testing.T) {
	t.Parallel()
	text := file("a.txt", "x")
	alias := func(name string) part { return field("alias", name) }
	folder := func(name string) part { return field("sub_folder", name) }
	for _, c := range []struct {
		name, query string
		parts       []part
		want        string
	}{
		{"none", "", []part{text}, "content"},
		{"alias before", "", []part{alias("dated"), text}, "dated/" + uploadDay},
		{"alias behind", "", []part{text, alias("dated")}, "dated/" + uploadDay},
		{"both behind", "", []part{text, folder("x"), alias("dated")}, "dated/x"},
		{"both before", "", []part{folder("x"), alias("dated"), text}, "dated/x"},
		{"alias in the query", "?alias=dated", []part{text}, "dated/" + uploadDay},
		{"both in the query", "?alias=dated&sub_folder=a%2Fb", []part{text}, "dated/a/b"},
		{"form over query", "?alias=none&sub_folder=a", []part{text, alias("dated"), folder("b")}, "dated/b"},
		{"form over query, before", "?alias=none&sub_folder=a", []part{alias("dated"), folder("b"), text}, "dated/b"},
		{"empty in the form", "?alias=dated&sub_folder=a", []part{alias(""), folder(""), text}, "dated/a"},
		{"empty in the query", "?alias=&sub_folder=", []part{text}, "content"},
		{"empty everywhere", "?alias=&sub_folder=", []part{alias(""), text, folder("")}, "content"},
		{"root", "", []part{text, alias("dated"), folder("/")}, "dated"},
		{"slash at the end", "", []part{text, folder("x/")}, "content/x"},
		{"sanitized", "", []part{text, folder("Můj Výlet/Den 1")}, "content/muj-vylet/den-1"},
	} {
		uploadCase{name: c.name, target: c.query, parts: c.parts, want: []string{"file/" + c.want + "/a.txt"}}.run(t, aSite)
	}
}

// TestUploadAround: text before the first boundary and after the last one is not part of the form,
// RFC 2046 section 5.1.1. The last line break may be missing. The length may be unknown.
func TestUploadAround(t *testing.T) {
	t.Parallel()
	body := form(file("a.txt", "x"))
	for name, b := range map[string]string{
		"preamble":      "This is a form.\r\n" + body,
		"epilogue":      body + "That was a form.\r\n",
		"long epilogue": body + strings.Repeat("That was a form.\r\n", 20_000),
		"no line break": strings.TrimSuffix(body, "\r\n"),
	} {
		for _, known := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := aSite(t)
				r := s.request(t, http.MethodPost, filePath, multipart+bearer, b)
				if !known {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(b)), -1
				}
				s.send(t, r).items(t)[0].at(t, s, "file/content/a.txt", "x")
			})
		}
	}
}
