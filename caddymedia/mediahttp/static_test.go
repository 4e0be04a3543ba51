package mediahttp_test

import (
	"mime"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	itemKey  = "file/content/item.txt"
	itemPath = "/static/" + itemKey
	sandbox  = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
	forever  = "public, max-age=31536000, immutable"
)

// put stores an object in the backend.
func (s *site) put(t *testing.T, key, content string) storagedrivers.Info {
	t.Helper()
	info, err := s.driver.Put(t.Context(), key, strings.NewReader(content), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// withItem is a site with an item of ten bytes, the variables $TAG and $TIME of it, and $BEFORE.
func withItem(t *testing.T) *site {
	t.Helper()
	s := aSite(t)
	info := s.put(t, itemKey, "0123456789")
	modified := info.ModTime.UTC()
	s.vars = []string{
		"$TAG", info.ETag, "$TIME", modified.Format(http.TimeFormat), "$BEFORE", modified.Add(-time.Hour).Format(http.TimeFormat),
	}
	return s
}

func TestStatic(t *testing.T) {
	t.Parallel()
	const all = "Content-Type: text/plain; charset=utf-8\nContent-Length: 10\nETag: $TAG\nLast-Modified: $TIME\nAccept-Ranges: bytes\n" +
		"Cache-Control: " + forever + "\nX-Content-Type-Options: nosniff\nContent-Disposition\nContent-Security-Policy\nVary\nContent-Encoding"
	run(t, withItem, []httpCase{
		{name: "GET", target: itemPath, status: 200, want: all, text: "0123456789"},
		{name: "HEAD", method: http.MethodHead, target: itemPath, status: 200, want: all},
		{name: "query", target: itemPath + "?v=1&download=../x", status: 200, text: "0123456789"},
		{name: "cookie", target: itemPath, header: "Cookie: a=b", status: 200, text: "0123456789"},
		{name: "missing", target: itemPath + "x", status: 404, want: "Cache-Control\nETag", text: "Not Found\n"},
		{name: "missing by HEAD", method: http.MethodHead, target: itemPath + "x", status: 404, want: "Cache-Control"},
		{name: "unknown alias", target: "/static/file/none/item.txt", status: 404},
		{name: "another kind", target: "/static/img/content/item.txt", status: 404},
		{name: "elsewhere", target: "/static/other/content/item.txt", status: 404},
		{name: "no path", target: "/", status: 404},
		{name: "endpoint with a slash", method: http.MethodPost, target: tokenPath + "/", status: 404},
	})
}

func TestRanges(t *testing.T) {
	t.Parallel()
	partial := func(name, ask, contentRange, text string) httpCase {
		return httpCase{name: name, target: itemPath, header: "Range: " + ask, status: 206, text: text, want: "Content-Range: " + contentRange}
	}
	whole := func(name, header string) httpCase {
		return httpCase{name: name, target: itemPath, header: header, status: 200, text: "0123456789", want: "Content-Range\nContent-Length: 10"}
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
		{name: "reversed", target: itemPath, header: "Range: bytes=5-2", status: 416, want: "Cache-Control: no-store"},
		{name: "beyond the end", target: itemPath, header: "Range: bytes=10-", status: 416, want: "Content-Range: bytes */10\nCache-Control: no-store\nX-Content-Type-Options: nosniff"},
		whole("malformed", "Range: bytes=x-"),
		whole("another unit", "Range: items=0-1"),
		whole("empty suffix", "Range: bytes=-0"),
		partial("upper case", "BYTES=0-1", "bytes 0-1/10", "01"),
		partial("upper case suffix", "Bytes=-1", "bytes 9-9/10", "9"),
		{name: "HEAD", method: http.MethodHead, target: itemPath, header: "Range: bytes=2-4", status: 206, want: "Content-Length: 3\nContent-Range: bytes 2-4/10"},
	})
}

// TestEmptyRanges: an empty item has no ranges.
func TestEmptyRanges(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	s.put(t, itemKey, "")
	for _, ask := range []string{"bytes=-5", "bytes=0-0", "bytes=0-", "bytes=5-", "BYTES=-1"} {
		httpCase{name: ask, target: itemPath, header: "Range: " + ask, status: 200, want: "Content-Range\nContent-Length: 0"}.check(t, s)
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	const unchanged = "ETag: $TAG\nCache-Control: " + forever + "\nX-Content-Type-Options: nosniff\nContent-Length\nContent-Type"
	run(t, withItem, []httpCase{
		{name: "same tag", target: itemPath, header: "If-None-Match: $TAG", status: 304, want: unchanged},
		{name: "one of several", target: itemPath, header: `If-None-Match: "x", $TAG`, status: 304, want: unchanged},
		{name: "weak", target: itemPath, header: "If-None-Match: W/$TAG", status: 304},
		{name: "any", target: itemPath, header: "If-None-Match: *", status: 304},
		{name: "HEAD", method: http.MethodHead, target: itemPath, header: "If-None-Match: $TAG", status: 304},
		{name: "other tag", target: itemPath, header: `If-None-Match: "x"`, status: 200},
		{name: "other tag, same time", target: itemPath, header: "If-None-Match: \"x\"\nIf-Modified-Since: $TIME", status: 200},
		{name: "same time", target: itemPath, header: "If-Modified-Since: $TIME", status: 304},
		{name: "earlier", target: itemPath, header: "If-Modified-Since: $BEFORE", status: 200},
		{name: "no time", target: itemPath, header: "If-Modified-Since: yesterday", status: 200},
		{name: "If-Match", target: itemPath, header: "If-Match: $TAG", status: 200},
		{name: "If-Match other", target: itemPath, header: `If-Match: "x"`, status: 412, want: "Cache-Control: no-store"},
		{name: "If-Unmodified-Since", target: itemPath, header: "If-Unmodified-Since: $BEFORE", status: 412},
		{name: "If-Range", target: itemPath, header: "Range: bytes=1-2\nIf-Range: $TAG", status: 206, text: "12"},
		{name: "If-Range other", target: itemPath, header: "Range: bytes=1-2\nIf-Range: \"x\"", status: 200, text: "0123456789"},
		{name: "If-Range weak", target: itemPath, header: "Range: bytes=1-2\nIf-Range: W/$TAG", status: 200},
		{name: "If-Range time", target: itemPath, header: "Range: bytes=1-2\nIf-Range: $TIME", status: 206},
	})
}

// TestStaticMethods: only GET and HEAD are for the service. Nothing changes an item.
func TestStaticMethods(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "MOVE", "OPTIONS", "PROPFIND"} {
		for _, header := range []string{bearer, bearer + "X-HTTP-Method-Override: DELETE\n"} {
			s := withItem(t)
			if handled, err := s.handler.Serve(nil, s.request(t, method, itemPath, header, "x")); handled || err != nil {
				t.Errorf("%s is handled: %v", method, err)
			}
			httpCase{method: method, target: itemPath, header: header, body: "x", status: 404}.check(t, s)
		}
	}
	s := withItem(t)
	for _, path := range []string{"/", "/static/", "/static/file", "/static/other/content/item.txt", "/api/auth"} {
		if handled, err := s.handler.Serve(nil, s.request(t, http.MethodGet, path, "", "")); handled || err != nil {
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
			p.header = "Content-Type: text/html\r\nContent-Encoding: gzip\r\nCache-Control: no-store\r\n"
			up := s.do(t, http.MethodPost, c.target, multipart+bearer, form(field("alias", c.alias), field("content_type", "text/html"), p))
			r := httpCase{
				target: strings.TrimPrefix(up.items(t)[0].FullPath, origin), status: 200, text: c.content,
				want: "Content-Type: " + c.contentType + "\nContent-Security-Policy: " + c.policy + "\nContent-Encoding\nCache-Control: " + forever,
			}.check(t, s)
			disposition := r.header.Get("Content-Disposition")
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
			s.vars = append(s.vars, "$"+alias, s.put(t, "file/"+alias+"/a.txt", "x").ETag)
		}
		return s
	}
	for alias, want := range map[string]string{"content": forever, "replacing": "public, no-cache", "own": "private, max-age=60"} {
		path := "/static/file/" + alias + "/a.txt"
		run(t, site, []httpCase{
			{name: alias, target: path, status: 200, want: "Cache-Control: " + want},
			{name: alias + " again", target: path, header: "If-None-Match: $" + alias, status: 304, want: "Cache-Control: " + want},
			{name: alias + " missing", target: path + "x", status: 404, want: "Cache-Control"},
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
			s.put(t, key, "content")
		}
		return s
	}
	const (
		text  = "/static/file/elsewhere/%C5%BDlu%C5%A5%201.txt"
		there = "Location: https://bucket.example/media"
		cache = "\nCache-Control: private, max-age=30\nX-Content-Type-Options: nosniff"
	)
	run(t, site, []httpCase{
		{name: "file", target: text, status: 302, want: there + "/file/elsewhere/%C5%BDlu%C5%A5%201.txt" + cache},
		{name: "HEAD", method: http.MethodHead, target: text, status: 200, want: "Location\nContent-Length: 7"},
		{name: "again", target: text, header: "If-None-Match: *", status: 302, want: there + "/file/elsewhere/%C5%BDlu%C5%A5%201.txt" + cache},
		{name: "page", target: "/static/file/elsewhere/page.html", status: 200, want: "Location\nCache-Control: " + forever, text: "content"},
		{name: "missing", target: text + "x", status: 404, want: "Location\nCache-Control"},
		{name: "picture", target: "/static/img/pictures/a.jpg", status: 302, want: there + "/img/pictures/a.jpg" + cache + "\nVary: Accept"},
		{
			name: "picture as WebP", target: "/static/img/pictures/a.jpg", header: "Accept: image/webp", status: 302,
			want: there + "/img/pictures/a.jpg.webp" + cache + "\nVary: Accept",
		},
		{name: "variant", target: "/static/img/pictures/a.jpg.webp", status: 302, want: there + "/img/pictures/a.jpg.webp" + cache},
	})
}
