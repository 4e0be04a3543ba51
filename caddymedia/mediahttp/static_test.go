package mediahttp_test

import (
	"mime"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
)

const (
	itemKey  = "file/content/item.txt"
	itemPath = "/static/" + itemKey
	sandbox  = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
	forever  = "public, max-age=31536000, immutable"
)

// withItem is a site with an item of ten bytes, the variables $TAG and $TIME of it, and $BEFORE.
func withItem(t *testing.T) *site {
	t.Helper()
	s := aSite(t)
	info := s.Put(t, itemKey, "0123456789")
	modified := info.ModTime.UTC()
	s.Vars = []string{
		"$TAG", info.ETag, "$TIME", modified.Format(http.TimeFormat), "$BEFORE", modified.Add(-time.Hour).Format(http.TimeFormat),
	}
	return s
}

func TestStatic(t *testing.T) {
	t.Parallel()
	const all = "Content-Type: text/plain; charset=utf-8\nContent-Length: 10\nETag: $TAG\nLast-Modified: $TIME\nAccept-Ranges: bytes\n" +
		"Cache-Control: " + forever + "\nX-Content-Type-Options: nosniff\nContent-Disposition\nContent-Security-Policy\nVary\nContent-Encoding"
	run(t, withItem, []httpCase{
		{Name: "GET", Target: itemPath, Status: 200, Want: all, Text: "0123456789"},
		{Name: "HEAD", Method: http.MethodHead, Target: itemPath, Status: 200, Want: all},
		{Name: "query", Target: itemPath + "?v=1&download=../x", Status: 200, Text: "0123456789"},
		{Name: "cookie", Target: itemPath, Header: "Cookie: a=b", Status: 200, Text: "0123456789"},
		{Name: "missing", Target: itemPath + "x", Status: 404, Want: "Cache-Control\nETag", Text: "Not Found\n"},
		{Name: "missing by HEAD", Method: http.MethodHead, Target: itemPath + "x", Status: 404, Want: "Cache-Control"},
		{Name: "unknown alias", Target: "/static/file/none/item.txt", Status: 404},
		{Name: "another kind", Target: "/static/img/content/item.txt", Status: 404},
		{Name: "elsewhere", Target: "/static/other/content/item.txt", Status: 404},
		{Name: "no path", Target: "/", Status: 404},
		{Name: "endpoint with a slash", Method: http.MethodPost, Target: tokenPath + "/", Status: 404},
	})
}

func TestRanges(t *testing.T) {
	t.Parallel()
	partial := func(name, ask, contentRange, text string) httpCase {
		return httpCase{Name: name, Target: itemPath, Header: "Range: " + ask, Status: 206, Text: text, Want: "Content-Range: " + contentRange}
	}
	whole := func(name, header string) httpCase {
		return httpCase{Name: name, Target: itemPath, Header: header, Status: 200, Text: "0123456789", Want: "Content-Range\nContent-Length: 10"}
	}
	run(t, withItem, []httpCase{
		partial("first", "bytes=0-0", "bytes 0-0/10", "0"),
		partial("middle", "bytes=2-4", "bytes 2-4/10", "234"),
		partial("open end", "bytes=7-", "bytes 7-9/10", "789"),
		partial("all", "bytes=0-", "bytes 0-9/10", "0123456789"),
		partial("over the end", "bytes=8-100", "bytes 8-9/10", "89"),
		partial("suffix", "bytes=-3", "bytes 7-9/10", "789"),
		partial("suffix over the start", "bytes=-30", "bytes 0-9/10", "0123456789"),
		whole("two ranges", "Range: bytes=0-0,2-2"),
		whole("two headers", "Range: bytes=0-0\nRange: bytes=2-2"),
		whole("overlapping", "Range: bytes=0-,0-,0-"),
		whole("many", "Range: bytes="+strings.Repeat("0-0,", 1000)+"0-0"),
		{Name: "reversed", Target: itemPath, Header: "Range: bytes=5-2", Status: 416, Want: "Cache-Control: no-store"},
		{Name: "beyond the end", Target: itemPath, Header: "Range: bytes=10-", Status: 416, Want: "Content-Range: bytes */10\nCache-Control: no-store\nX-Content-Type-Options: nosniff"},
		whole("malformed", "Range: bytes=x-"),
		whole("another unit", "Range: items=0-1"),
		whole("empty suffix", "Range: bytes=-0"),
		partial("upper case", "BYTES=0-1", "bytes 0-1/10", "01"),
		partial("upper case suffix", "Bytes=-1", "bytes 9-9/10", "9"),
		{Name: "HEAD", Method: http.MethodHead, Target: itemPath, Header: "Range: bytes=2-4", Status: 206, Want: "Content-Length: 3\nContent-Range: bytes 2-4/10"},
	})
}

// TestEmptyRanges: an empty item has no ranges.
func TestEmptyRanges(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	s.Put(t, itemKey, "")
	for _, ask := range []string{"bytes=-5", "bytes=0-0", "bytes=0-", "bytes=5-", "BYTES=-1"} {
		httpCase{Name: ask, Target: itemPath, Header: "Range: " + ask, Status: 200, Want: "Content-Range\nContent-Length: 0"}.Check(t, s)
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	const unchanged = "ETag: $TAG\nCache-Control: " + forever + "\nX-Content-Type-Options: nosniff\nContent-Length\nContent-Type"
	run(t, withItem, []httpCase{
		{Name: "same tag", Target: itemPath, Header: "If-None-Match: $TAG", Status: 304, Want: unchanged},
		{Name: "one of several", Target: itemPath, Header: `If-None-Match: "x", $TAG`, Status: 304, Want: unchanged},
		{Name: "weak", Target: itemPath, Header: "If-None-Match: W/$TAG", Status: 304},
		{Name: "any", Target: itemPath, Header: "If-None-Match: *", Status: 304},
		{Name: "HEAD", Method: http.MethodHead, Target: itemPath, Header: "If-None-Match: $TAG", Status: 304},
		{Name: "other tag", Target: itemPath, Header: `If-None-Match: "x"`, Status: 200},
		{Name: "other tag, same time", Target: itemPath, Header: "If-None-Match: \"x\"\nIf-Modified-Since: $TIME", Status: 200},
		{Name: "same time", Target: itemPath, Header: "If-Modified-Since: $TIME", Status: 304},
		{Name: "earlier", Target: itemPath, Header: "If-Modified-Since: $BEFORE", Status: 200},
		{Name: "no time", Target: itemPath, Header: "If-Modified-Since: yesterday", Status: 200},
		{Name: "If-Match", Target: itemPath, Header: "If-Match: $TAG", Status: 200},
		{Name: "If-Match other", Target: itemPath, Header: `If-Match: "x"`, Status: 412, Want: "Cache-Control: no-store"},
		{Name: "If-Unmodified-Since", Target: itemPath, Header: "If-Unmodified-Since: $BEFORE", Status: 412},
		{Name: "If-Range", Target: itemPath, Header: "Range: bytes=1-2\nIf-Range: $TAG", Status: 206, Text: "12"},
		{Name: "If-Range other", Target: itemPath, Header: "Range: bytes=1-2\nIf-Range: \"x\"", Status: 200, Text: "0123456789"},
		{Name: "If-Range weak", Target: itemPath, Header: "Range: bytes=1-2\nIf-Range: W/$TAG", Status: 200},
		{Name: "If-Range time", Target: itemPath, Header: "Range: bytes=1-2\nIf-Range: $TIME", Status: 206},
	})
}

// TestStaticMethods: only GET and HEAD are for the service. Nothing changes an item.
func TestStaticMethods(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "MOVE", "OPTIONS", "PROPFIND"} {
		for _, header := range []string{bearer, bearer + "X-HTTP-Method-Override: DELETE\n"} {
			s := withItem(t)
			if handled, err := s.Handler.Serve(nil, s.Request(t, method, itemPath, header, "x")); handled || err != nil {
				t.Errorf("%s is handled: %v", method, err)
			}
			httpCase{Method: method, Target: itemPath, Header: header, Body: "x", Status: 404}.Check(t, s)
		}
	}
	s := withItem(t)
	for _, path := range []string{"/", "/static/", "/static/file", "/static/other/content/item.txt", "/api/auth"} {
		if handled, err := s.Handler.Serve(nil, s.Request(t, http.MethodGet, path, "", "")); handled || err != nil {
			t.Errorf("%s is handled: %v", path, err)
		}
	}
}

// TestStaticTypes: the headers of an item depend on its name, not on the declarations of the
// uploader.
func TestStaticTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ target, alias, name, content, contentType, save, policy string }{
		{imagePath, "exact", "a.jpg", jpegPicture, "image/jpeg", "", ""},
		{imagePath, "exact", "a.JPEG", jpegPicture, "image/jpeg", "", ""},
		{imagePath, "exact", "a.png", pngPicture, "image/png", "", ""},
		{imagePath, "exact", "a.gif", gifPicture, "image/gif", "", ""},
		{imagePath, "exact", "a.svg", svgPicture, "image/svg+xml", "", sandbox},
		{imagePath, "keep", "a.svg", `<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>`, "image/svg+xml", "", sandbox},
		{filePath, "web", "a.pdf", pdfDocument, "application/pdf", "", ""},
		{filePath, "web", "a.txt", "<html><script>1</script>", "text/plain; charset=utf-8", "", ""},
		{filePath, "web", "a.mp3", "ID3\x03\x00\x00\x00\x00\x00\x00", "audio/mpeg", "", ""},
		{filePath, "web", "a.zip", zipArchive, "application/zip", "a.zip", ""},
		{filePath, "web", "My Archive ěšč \"1\".zip", zipArchive, "application/zip", "My Archive ěšč \"1\".zip", ""},
		{filePath, "web", "a.html", "<!doctype html><p>x", "text/html; charset=utf-8", "a.html", sandbox},
		{filePath, "web", "a.xml", "<a/>", "application/xml", "a.xml", sandbox},
		{filePath, "web", "b.svg", svgPicture, "image/svg+xml", "", sandbox},
		{filePath, "web", "a.json", "{}", "application/json", "a.json", ""},
		{filePath, "web", "a.js", "alert(1)", "text/javascript; charset=utf-8", "a.js", ""},
		{filePath, "web", "a.css", "a{}", "text/css; charset=utf-8", "a.css", ""},
		{filePath, "typed", "a.step", "x", "model/step", "a.step", ""},
		{filePath, "typed", "a.PAGE", "words", "text/html; charset=UTF-8", "a.PAGE", sandbox},
		{filePath, "typed", "a.draw", "", "image/svg+xml", "", sandbox},
		{filePath, "typed", "a.feed", "<a/>", "application/rss+xml", "a.feed", sandbox},
		{filePath, "typed", "a.film", "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom", "video/mp4", "", ""},
		{filePath, "typed", "a.run", "alert(1)", "text/javascript", "a.run", ""},
		{filePath, "typed", "a.txt", "words", "application/x-mine", "a.txt", ""},
		{filePath, "typed", "a.m3u8", "#EXTM3U\n", "application/vnd.apple.mpegurl", "a.m3u8", ""},
		{filePath, "typed", "a.ts", "const a = 1;", "video/mp2t", "", ""},
		{filePath, "typed", "a.kml", "<kml/>", "application/vnd.google-earth.kml+xml", "a.kml", sandbox},
		{filePath, "web", "a.md", "# x", "text/markdown; charset=utf-8", "a.md", ""},
	} {
		t.Run(c.alias+" "+c.name, func(t *testing.T) {
			t.Parallel()
			s := aSite(t)
			p := file(c.name, c.content)
			p.Header = "Content-Type: text/html\r\nContent-Encoding: gzip\r\nCache-Control: no-store\r\n"
			up := s.Do(t, http.MethodPost, c.target, multipart+bearer, form(field("alias", c.alias), field("content_type", "text/html"), p))
			r := httpCase{
				Target: strings.TrimPrefix(up.Items(t)[0].FullPath, origin), Status: 200, Text: c.content,
				Want: "Content-Type: " + c.contentType + "\nContent-Security-Policy: " + c.policy + "\nContent-Encoding\nCache-Control: " + forever,
			}.Check(t, s)
			disposition := r.Header.Get("Content-Disposition")
			if c.save == "" && disposition == "" {
				return
			}
			if kind, params, err := mime.ParseMediaType(disposition); err != nil || kind != "attachment" || params["filename"] != c.save {
				t.Errorf("Content-Disposition %q, want an attachment called %s", disposition, c.save)
			}
		})
	}
}

// TestCacheControl: items that never change are cached for ever, others are revalidated each time,
// unless configured otherwise.
func TestCacheControl(t *testing.T) {
	t.Parallel()
	site := func(t *testing.T) *site {
		t.Helper()
		s := aSite(t)
		for _, alias := range []string{"content", "replacing", "own"} {
			s.Vars = append(s.Vars, "$"+alias, s.Put(t, "file/"+alias+"/a.txt", "x").ETag)
		}
		return s
	}
	for alias, want := range map[string]string{"content": forever, "replacing": "public, no-cache", "own": "private, max-age=60"} {
		path := "/static/file/" + alias + "/a.txt"
		run(t, site, []httpCase{
			{Name: alias, Target: path, Status: 200, Want: "Cache-Control: " + want},
			{Name: alias + " again", Target: path, Header: "If-None-Match: $" + alias, Status: 304, Want: "Cache-Control: " + want},
			{Name: alias + " missing", Target: path + "x", Status: 404, Want: "Cache-Control"},
		})
	}
}

// TestRedirects: clients are redirected to the storage, except for types such as HTML, which only
// this service serves safely. HEAD is not redirected.
func TestRedirects(t *testing.T) {
	t.Parallel()
	site := func(t *testing.T) *site {
		t.Helper()
		s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
			c.ImageAliases["pictures"].Redirect = c.ImageAliases["elsewhere"].Redirect
		})
		for _, key := range []string{"file/elsewhere/Žluť 1.txt", "file/elsewhere/page.html", "img/pictures/a.jpg", "img/pictures/a.jpg.webp"} {
			s.Put(t, key, "content")
		}
		return s
	}
	const (
		text  = "/static/file/elsewhere/%C5%BDlu%C5%A5%201.txt"
		there = "Location: https://bucket.example/media"
		cache = "\nCache-Control: private, max-age=30\nX-Content-Type-Options: nosniff"
	)
	run(t, site, []httpCase{
		{Name: "file", Target: text, Status: 302, Want: there + "/file/elsewhere/%C5%BDlu%C5%A5%201.txt" + cache},
		{Name: "HEAD", Method: http.MethodHead, Target: text, Status: 200, Want: "Location\nContent-Length: 7"},
		{Name: "again", Target: text, Header: "If-None-Match: *", Status: 302, Want: there + "/file/elsewhere/%C5%BDlu%C5%A5%201.txt" + cache},
		{Name: "page", Target: "/static/file/elsewhere/page.html", Status: 200, Want: "Location\nCache-Control: " + forever, Text: "content"},
		{Name: "missing", Target: text + "x", Status: 404, Want: "Location\nCache-Control"},
		{Name: "picture", Target: "/static/img/pictures/a.jpg", Status: 302, Want: there + "/img/pictures/a.jpg" + cache + "\nVary: Accept"},
		{
			Name: "picture as WebP", Target: "/static/img/pictures/a.jpg", Header: "Accept: image/webp", Status: 302,
			Want: there + "/img/pictures/a.jpg.webp" + cache + "\nVary: Accept",
		},
		{Name: "variant", Target: "/static/img/pictures/a.jpg.webp", Status: 302, Want: there + "/img/pictures/a.jpg.webp" + cache},
	})
}
