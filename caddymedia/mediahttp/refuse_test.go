package mediahttp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// TestUploadMalformed: a problem of the whole request is one error without a name.
func TestUploadMalformed(t *testing.T) {
	t.Parallel()
	p := file("a.gif", gifPicture)
	body := form(p)
	alias := func(name string) part { return field("alias", name) }
	post := func(name, query, header, body string, status int) httpCase {
		if header == "" {
			header = multipart
		}
		return httpCase{Name: name, Method: http.MethodPost, Target: imagePath + query, Header: bearer + header, Body: body, Status: status}
	}
	for _, c := range []httpCase{
		post("no parts", "", "", form(), 400),
		post("empty body", "", "", "", 400),
		post("fields alone", "", "", form(alias("content"), field("files[]", "x")), 400),
		post("empty input alone", "", "", form(file("", "")), 400),
		post("file without a name", "", "", form(file("", gifPicture)), 400),
		post("unknown alias", "", "", form(p, alias("none")), 400),
		post("unknown alias before", "", "", form(alias("none"), p), 400),
		post("unknown alias in the query", "?alias=none", "", body, 400),
		post("alias of the other kind", "", "", form(p, alias("one")), 400),
		post("alias in capitals", "", "", form(p, alias("Content")), 400),
		post("placeholder as alias", "", "", form(p, alias("{env.HOME}")), 400),
		post("alias twice", "", "", form(alias("content"), p, alias("content")), 400),
		post("alias twice, one empty", "", "", form(alias(""), p, alias("content")), 400),
		post("sub_folder twice", "", "", form(field("sub_folder", "a"), field("sub_folder", "a"), p), 400),
		post("alias twice in the query", "?alias=content&alias=content", "", body, 400),
		post("sub_folder twice in the query", "?sub_folder=a&sub_folder=a", "", body, 400),
		post("cut in a file", "", "", body[:len(body)-20], 400),
		post("cut in a header", "", "", body[:40], 400),
		post("cut before the end", "", "", strings.TrimSuffix(body, "--\r\n"), 400),
		post("no form", "", "", "just text", 400),
		post("other type", "", "Content-Type: application/json\n", "{}", 415),
		post("urlencoded", "", urlencoded, "alias=content", 415),
		post("no boundary", "", "Content-Type: multipart/form-data\n", body, 400),
		post("long boundary", "", "Content-Type: multipart/form-data; boundary="+strings.Repeat("x", 71)+"\n", body, 400),
		post("part is no form-data", "", "", strings.Replace(body, "form-data;", "attachment;", 1), 400),
		post("part without disposition", "", "", strings.Replace(body, "Content-Disposition", "X", 1), 400),
	} {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Check(t, aSite(t)).Refused(t, c.Status, "", "")
		})
	}
	runUploads(t, aSite, []uploadCase{
		{Name: "part of another name", Parts: []part{named("photo", file("a.txt", "x"))}, Status: 400, Want: []string{"a.txt"}, Has: "files[]"},
	})
}

// TestSeveralFailures: every failing file is named as submitted, in the order sent. The status is
// the highest of theirs. The good files are not stored.
func TestSeveralFailures(t *testing.T) {
	t.Parallel()
	good, large := gifPicture, jpegPicture
	tiny := field("alias", "tiny")
	for _, c := range []struct {
		name   string
		parts  []part
		status int
		want   []string
	}{
		{"one of three", []part{file("a.gif", good), file("Bad Ü.JPG", good), file("c.gif", good)}, 415, []string{"Bad Ü.JPG"}},
		{"the first", []part{file("y.png", good), file("a.gif", good), file("c.gif", good)}, 415, []string{"y.png"}},
		{"the last", []part{file("a.gif", good), file("c.gif", good), file("y.png", good)}, 415, []string{"y.png"}},
		{"extension and content", []part{file("x.php", "x"), file("a.gif", good), file("y.png", good)}, 415, []string{"x.php", "y.png"}},
		{"name and content", []part{file("/", good), file("y.png", good)}, 415, []string{"/", "y.png"}},
		{"size and name", []part{tiny, file("big.jpg", large), file("/", good), file("b.gif", good)}, 413, []string{"big.jpg", "/"}},
		{"size and content", []part{file("big.jpg", large), file(`y "1".png`, good), tiny}, 415, []string{"big.jpg", `y "1".png`}},
		{"all, one name", []part{file("a.jpg", good), file("a.jpg", good)}, 415, []string{"a.jpg", "a.jpg"}},
	} {
		uploadCase{Name: c.name, Parts: c.parts, Status: c.status, Want: c.want}.Image().Run(t, aSite)
	}
}

// TestRollBack: a file whose commit fails rolls back those before it, also replaced ones.
func TestRollBack(t *testing.T) {
	t.Parallel()
	for _, alias := range []string{"content", "replacing"} {
		t.Run(alias, func(t *testing.T) {
			t.Parallel()
			s := aSite(t)
			uploadCase{Parts: []part{field("alias", alias), file("old.txt", "old")}, Want: []string{"file/" + alias + "/old.txt"}}.Check(t, s)
			s.Driver.Fail = func(op, key string) error {
				if op == "put" && strings.HasSuffix(key, "/c.txt") {
					return storagedrivers.ErrUnavailable
				}
				return nil
			}
			r := s.Do(t, http.MethodPost, filePath, multipart+bearer,
				form(field("alias", alias), file("b.txt", "new"), file("c.txt", "new")))
			r.Refused(t, http.StatusServiceUnavailable, "", "c.txt")
		})
	}
}

// TestBrokenStorage: a failing storage is not a missing item, and its error is not in the answer.
func TestBrokenStorage(t *testing.T) {
	t.Parallel()
	text := file("a.txt", "x")
	runUploads(t, aSite, []uploadCase{
		{Name: "alias before", Parts: []part{field("alias", "broken"), text}, Status: 503},
		{Name: "alias behind", Parts: []part{text, field("alias", "broken")}, Status: 503},
		{Name: "another works", Parts: []part{text}, Want: []string{"file/content/a.txt"}},
	})
	run(t, aSite, []httpCase{
		{Name: "fetch", Target: "/static/file/broken/a.txt", Status: 503, Text: "Service Unavailable\n"},
		{Name: "HEAD", Method: http.MethodHead, Target: "/static/file/broken/a.txt", Status: 503},
	})
}

// restrictedNames are spellings of restricted extensions.
var restrictedNames = []string{
	"x.php", "x.PHP", "x.pHp", "x.php5", "x.php3", "x.php4", "x.php7", "x.php8", "x.phps", "x.phtml", "x.pht", "x.phar",
	"x.sh", "x.SH", "x.bash", ".htaccess", "a.htaccess", ".htpasswd", ".user.ini",
	"x.php.jpg", "x.PHP.jpg", "x.jpg.php", "x.php5.txt.jpg", "x.sh.pdf", "x.phtml.txt",
	"x.php.", "x.php..", "x.php ", "x.php. .", "x.php\t", " x.php", "x.php .jpg", "x. php", "x.php/", "x.php/.",
	"x.php::$DATA", "x.php:jpg", "x.php%00.jpg", "x.php%20", "x.%70hp", "x.%2570hp", "x%2ephp", "x.php;.jpg", "x.php?.jpg", "x.php#.jpg",
	"x.ph\u200bp", "x.p\u00adhp", "x.ｐｈｐ", "x．php", "x.PHP\u202egpj", "x.ſh", "x.рhp", "x.ш", "x.php\u00a0", "x.php\u3000.jpg",
	"a.php/x.jpg", `a.php\x.jpg`, "..php", "=?utf-8?q?x.php?=.txt",
}

// TestRestrictedExtensions: they are refused in every spelling, at every endpoint, wherever the
// alias is named.
func TestRestrictedExtensions(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	s.Vars = []string{"$ALL", s.Token(t)}
	for _, name := range restrictedNames {
		for _, alias := range []string{"content", "exact", "replacing"} {
			p := file(name, "text\n")
			for target, parts := range map[string][]part{
				filePath: {field("alias", alias), p}, imagePath: {p, field("alias", alias)}, filePath + "?alias=" + alias: {named("files[0]", p)},
			} {
				r := s.Do(t, http.MethodPost, target, multipart+"Authorization: Bearer $ALL", form(parts...))
				if r.Status != http.StatusBadRequest && r.Status != http.StatusUnsupportedMediaType {
					t.Errorf("%s to %s of %s: %d %s", name, target, alias, r.Status, r.Body)
					continue
				}
				r.Refused(t, r.Status, "", name)
			}
		}
	}
	for _, folder := range []string{"a.php", "x/a.php", "a.PHP/x", "a.php5", "a.phtml"} {
		uploadCase{
			Parts: []part{field("alias", "exact"), field("sub_folder", folder), file("a.txt", "x")}, Status: http.StatusBadRequest,
		}.Check(t, s)
	}
}

// TestOtherExtensions: an alias accepts only the extensions on its list, and content of that type.
func TestOtherExtensions(t *testing.T) {
	t.Parallel()
	few := field("alias", "web")
	refused := func(name string, parts ...part) uploadCase {
		return uploadCase{Name: name, Parts: parts, Status: 415, Want: []string{parts[len(parts)-1].Filename}}
	}
	runUploads(t, aSite, []uploadCase{
		refused("image pdf", file("a.pdf", pdfDocument)).Image(),
		refused("image webp", file("a.webp", jpegPicture)).Image(),
		refused("image without extension", file("jpg", jpegPicture)).Image(),
		refused("image dot last", file("jpg.", jpegPicture)).Image(),
		refused("image jpg.txt", file("a.jpg.txt", jpegPicture)).Image(),
		refused("image exe", file("a.exe", jpegPicture)).Image(),
		refused("image that is a page", part{Name: "files", IsFile: true, Filename: "a.jpg", Content: "<html>", Header: "Content-Type: image/jpeg\r\n"}).Image(),
		refused("not on the list", few, file("a.jpg", jpegPicture)),
		refused("last not on the list", few, file("a.pdf.gz", gzipFile)),
		refused("file html", file("a.html", "<html>")),
		refused("file exe", file("a.exe", "MZ")),
		refused("file without extension", file("README", "x")),
		refused("program as text", file("a.txt", "\x7fELF\x02\x01\x01\x00")),
		refused("shell script as pdf", file("a.pdf", "#!/bin/sh\n")),
		refused("page as pdf", file("a.pdf", "<!doctype html><script>1</script>")),
		{Name: "script as text", Parts: []part{file("a.txt", "<?php phpinfo();")}, Want: []string{"file/content/a.txt"}}, // shown, never run
		{Name: "on the list", Parts: []part{few, file("a.PDF", pdfDocument)}, Want: []string{"file/web/a.PDF"}},
	})
}

// TestContentIsNotTheExtension: every type of content is refused under the extension of another.
func TestContentIsNotTheExtension(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	s.Vars = []string{"$ALL", s.Token(t)}
	refused := func(path, name, content, has string) {
		t.Helper()
		r := s.Do(t, http.MethodPost, path, multipart+"Authorization: Bearer $ALL", form(file(name, content)))
		r.Refused(t, http.StatusUnsupportedMediaType, has, name)
	}
	pictures := map[string]bool{"jpg": true, "png": true, "gif": true, "svg": true}
	others := map[string]string{
		"empty": "", "cut": jpegPicture[:len(jpegPicture)/2], "garbage": "\xff\xd8\xff garbage", "page in front": "<html>" + gifPicture,
		"tiff": "II*\x00\x08\x00\x00\x00", "tif": "MM\x00*\x00\x00\x00\x08", "bmp": "BM", "webp": "RIFF\x00\x00\x00\x00WEBPVP8 ", "ico": "\x00\x00\x01\x00",
	}
	for ext := range samples {
		for is, content := range samples {
			if ext == is || ext == "txt" {
				continue
			}
			if pictures[ext] {
				refused(imagePath, "a."+ext, content, "")
			}
			refused(filePath, "a."+ext, content, "")
		}
		for is, content := range others {
			if pictures[ext] {
				refused(imagePath, "a."+ext, content, "")
			}
			refused(imagePath, "a."+is, content, "")
		}
	}
	refused(imagePath, "a.jpg", pngPicture, "content is PNG, the name says .jpg")
}

// TestSVG: active content and external references are refused, unless the alias keeps them. It may
// also refuse all SVG.
func TestSVG(t *testing.T) {
	t.Parallel()
	uploadCase{Name: "none", Parts: []part{field("alias", "nosvg"), file("a.svg", svgPicture)}, Status: 415, Want: []string{"a.svg"}}.Image().Run(t, aSite)
	for name, inner := range map[string]string{
		"script":  `<script>alert(1)</script>`,
		"handler": `<rect onload="alert(1)"/>`,
		"link":    `<a href="javascript:alert(1)"><rect/></a>`,
		"image":   `<image href="https://evil.example/x.png"/>`,
		"foreign": `<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"/></foreignObject>`,
		"use":     `<use href="https://evil.example/x.svg#a"/>`,
	} {
		p := file("a.svg", `<svg xmlns="http://www.w3.org/2000/svg">`+inner+`</svg>`)
		uploadCase{Name: name, Parts: []part{p}, Status: 415, Want: []string{"a.svg"}}.Image().Run(t, aSite)
		uploadCase{Name: name + " kept", Parts: []part{p, field("alias", "keep")}, Want: []string{"img/keep/a.svg"}}.Image().Run(t, aSite)
	}
	entity := `<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg xmlns="http://www.w3.org/2000/svg"><text>&x;</text></svg>`
	uploadCase{Name: "entity", Parts: []part{file("a.svg", entity)}, Status: 415, Want: []string{"a.svg"}}.Image().Run(t, aSite)
}
