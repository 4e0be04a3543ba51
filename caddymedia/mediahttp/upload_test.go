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

// TestUploadKinds: every type of picture, and the default types of a file alias, are accepted.
func TestUploadKinds(t *testing.T) {
	t.Parallel()
	for ext, content := range samples {
		for _, name := range []string{"one." + ext, "One." + strings.ToUpper(ext)} {
			c := uploadCase{Name: "file " + name, Parts: []part{file(name, content)}, Want: []string{"file/content/one." + ext}}
			if ext == "svg" { // pictures that may be active are for image aliases
				c.Status, c.Want = http.StatusUnsupportedMediaType, []string{name}
			}
			c.Run(t, aSite)
		}
	}
	for _, ext := range []string{"jpg", "jpeg", "gif", "png", "svg"} {
		content := samples[strings.Replace(ext, "jpeg", "jpg", 1)]
		uploadCase{Name: "image " + ext, Parts: []part{file("one."+ext, content)}, Want: []string{"img/content/one." + ext}}.Image().Run(t, aSite)
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
		uploadCase{Name: name, Parts: parts, Want: want}.Image().Run(t, aSite)
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
		uploadCase{Name: c.name, Target: c.query, Parts: c.parts, Want: []string{"file/" + c.want + "/a.txt"}}.Run(t, aSite)
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
				r := s.Request(t, http.MethodPost, filePath, multipart+bearer, b)
				if !known {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(b)), -1
				}
				s.Send(t, r).Items(t)[0].At(t, s, "file/content/a.txt", "x")
			})
		}
	}
}
