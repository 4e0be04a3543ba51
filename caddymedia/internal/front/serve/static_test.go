package serve_test

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
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
		"$TAG", info.ETag, "$COMPRESSED", strings.TrimSuffix(info.ETag, `"`) + `-gzip"`, "$TIME", modified.Format(http.TimeFormat), "$BEFORE", modified.Add(-time.Hour).Format(http.TimeFormat),
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
		{Name: "missing", Target: itemPath + "x", Status: 404, Want: "Cache-Control: no-store\nETag", Text: "Not Found\n"},
		{Name: "missing by HEAD", Method: http.MethodHead, Target: itemPath + "x", Status: 404, Want: "Cache-Control: no-store\nVary"},
		{Name: "storage down", Target: "/static/file/broken/a.txt", Status: 503, Text: "Service Unavailable\n"},
		{Name: "storage down by HEAD", Method: http.MethodHead, Target: "/static/file/broken/a.txt", Status: 503},
		{Name: "unknown alias", Target: "/static/file/none/item.txt", Status: 404},
		{Name: "another kind", Target: "/static/img/content/item.txt", Status: 404},
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
		partial("middle", "bytes=2-4", "bytes 2-4/10", "234"),
		partial("open end", "bytes=7-", "bytes 7-9/10", "789"),
		partial("over the end", "bytes=8-100", "bytes 8-9/10", "89"),
		partial("suffix", "bytes=-3", "bytes 7-9/10", "789"),
		whole("two ranges", "Range: bytes=0-0,2-2"),
		whole("many", "Range: bytes="+strings.Repeat("0-0,", 1000)+"0-0"),
		{Name: "reversed", Target: itemPath, Header: "Range: bytes=5-2", Status: 416, Want: "Cache-Control: no-store"},
		{Name: "beyond the end", Target: itemPath, Header: "Range: bytes=10-", Status: 416, Want: "Content-Range: bytes */10\nCache-Control: no-store\nX-Content-Type-Options: nosniff"},
		whole("malformed", "Range: bytes=x-"),
		partial("upper case", "BYTES=0-1", "bytes 0-1/10", "01"),
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
		{Name: "any", Target: itemPath, Header: "If-None-Match: *", Status: 304},
		{Name: "other tag", Target: itemPath, Header: `If-None-Match: "x"`, Status: 200},
		{Name: "same time", Target: itemPath, Header: "If-Modified-Since: $TIME", Status: 304},
		{Name: "If-Match", Target: itemPath, Header: "If-Match: $TAG", Status: 200},
		{Name: "in the second line", Target: itemPath, Header: "If-None-Match: \"x\"\nIf-None-Match: $TAG", Status: 304, Want: unchanged},
		{Name: "in no line", Target: itemPath, Header: "If-None-Match: \"x\"\nIf-None-Match: \"y\"", Status: 200},
		{Name: "If-Match in the second line", Target: itemPath, Header: "If-Match: \"x\"\nIf-Match: $TAG", Status: 200},
		{Name: "If-Match of a compressed answer", Target: itemPath, Header: "If-Match: $COMPRESSED", Status: 200},
		{Name: "If-Match other", Target: itemPath, Header: `If-Match: "x"`, Status: 412, Want: "Cache-Control: no-store"},
		{Name: "If-Range", Target: itemPath, Header: "Range: bytes=1-2\nIf-Range: $TAG", Status: 206, Text: "12"},
		{Name: "If-Range other", Target: itemPath, Header: "Range: bytes=1-2\nIf-Range: \"x\"", Status: 200, Text: "0123456789"},
		{Name: "If-Range time", Target: itemPath, Header: "Range: bytes=1-2\nIf-Range: $TIME", Status: 206},
	})
}

// TestStaticMethods: only GET and HEAD are for the service. Nothing changes an item.
func TestStaticMethods(t *testing.T) {
	t.Parallel()
	s := withItem(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "MOVE", "OPTIONS", "PROPFIND"} {
		for _, header := range []string{bearer, bearer + "X-HTTP-Method-Override: DELETE\n"} {
			if handled, err := s.Handler.Serve(nil, s.Request(t, method, itemPath, header, "x")); handled || err != nil {
				t.Errorf("%s is handled: %v", method, err)
			}
			httpCase{Method: method, Target: itemPath, Header: header, Body: "x", Status: 404}.Check(t, s)
		}
	}
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
		{imagePath, "exact", "a.svg", svgPicture, "image/svg+xml", "", sandbox},
		{imagePath, "keep", "a.svg", `<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>`, "image/svg+xml", "", sandbox},
		{filePath, "web", "a.pdf", pdfDocument, "application/pdf", "", ""},
		{filePath, "web", "a.txt", "<html><script>1</script>", "text/plain; charset=utf-8", "", ""},
		{filePath, "web", "a.zip", zipArchive, "application/zip", "a.zip", ""},
		{filePath, "web", "My Archive ěšč \"1\".zip", zipArchive, "application/zip", "My Archive ěšč \"1\".zip", ""},
		{filePath, "web", "a.html", "<!doctype html><p>x", "text/html; charset=utf-8", "a.html", sandbox},
		{filePath, "web", "b.svg", svgPicture, "image/svg+xml", "", sandbox},
		{filePath, "typed", "a.PAGE", "words", "text/html; charset=UTF-8", "a.PAGE", sandbox},
		{filePath, "typed", "a.draw", "", "image/svg+xml", "", sandbox},
		{filePath, "typed", "a.film", "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom", "video/mp4", "", ""},
		{filePath, "typed", "a.run", "alert(1)", "text/javascript", "a.run", ""},
		{filePath, "typed", "a.txt", "words", "application/x-mine", "a.txt", ""},
		{filePath, "typed", "a.ts", "const a = 1;", "video/mp2t", "", ""},
		{filePath, "typed", "a.kml", "<kml/>", "application/vnd.google-earth.kml+xml", "a.kml", sandbox},
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
	s := aSite(t)
	for alias, want := range map[string]string{"content": forever, "replacing": "public, no-cache", "own": "private, max-age=60"} {
		path, tag := "/static/file/"+alias+"/a.txt", s.Put(t, "file/"+alias+"/a.txt", "x").ETag
		httpCase{Target: path, Status: 200, Want: "Cache-Control: " + want}.Check(t, s)
		httpCase{Target: path, Header: "If-None-Match: " + tag, Status: 304, Want: "Cache-Control: " + want}.Check(t, s)
		httpCase{Target: path + "x", Status: 404, Want: "Cache-Control: no-store\nVary"}.Check(t, s)
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
		{Name: "missing", Target: text + "x", Status: 404, Want: "Location\nCache-Control: no-store"},
		{Name: "picture", Target: "/static/img/pictures/a.jpg", Status: 302, Want: there + "/img/pictures/a.jpg" + cache + "\nVary: Accept"},
		{
			Name: "picture as WebP", Target: "/static/img/pictures/a.jpg", Header: "Accept: image/webp", Status: 302,
			Want: there + "/img/pictures/a.jpg.webp" + cache + "\nVary: Accept",
		},
		{Name: "variant", Target: "/static/img/pictures/a.jpg.webp", Status: 302, Want: there + "/img/pictures/a.jpg.webp" + cache},
	})
}

// unsigning is a driver whose credentials cannot sign addresses.
type unsigning struct{ *memory.Driver }

func (unsigning) Presign(context.Context, string, storagedrivers.PresignOptions) (string, error) {
	return "", errors.ErrUnsupported
}

// TestRedirectWarnings: the log warns once of each alias that cannot redirect, also if an alias of
// the other kind has its name.
func TestRedirectWarnings(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, unsigning{memory.New()}, media.Limits{}, func(c *media.Config) {
		signed := &media.Redirect{To: "presigned"}
		c.ImageAliases["elsewhere"].Redirect, c.FileAliases["elsewhere"].Redirect = signed, signed
	})
	for path, item := range map[string]part{imagePath: file("a.gif", gifPicture), filePath: file("a.txt", "text")} {
		c := httpCase{Target: path + "?alias=elsewhere", Header: bearer + multipart, Body: form(item), Status: 200}
		c.Check(t, s)
	}
	s.Log.Take()
	for range 2 {
		for _, path := range []string{"/static/img/elsewhere/a.gif", "/static/file/elsewhere/a.txt"} {
			httpCase{Target: path, Status: 200}.Check(t, s)
		}
	}
	const warning = "WARN serving an item instead of redirecting"
	if got := s.Log.Take(); !slices.Equal(got, []string{warning, warning}) {
		t.Errorf("logged %q", got)
	}
}

// TestRedirectOfActiveType: an item that was stored as HTML is served here, although its alias has
// another type for it by now: its storage would serve it as HTML. One that its alias makes HTML is
// too.
func TestRedirectOfActiveType(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.FileAliases["elsewhere"].Redirect = &media.Redirect{To: "public", Base: "https://bucket.example.com"}
		c.FileAliases["elsewhere"].Types = []string{"html=text/plain", "txt=text/plain", "page=text/html"}
	})
	for name, status := range map[string]int{"a.html": 200, "a.page": 200, "a.txt": 302} {
		opts := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
		if _, err := s.Backend.Put(t.Context(), "file/elsewhere/"+name, strings.NewReader("<b>text</b>"), opts); err != nil {
			t.Fatal(err)
		}
		httpCase{Target: "/static/file/elsewhere/" + name, Status: status}.Check(t, s)
	}
}

// withTree is a site with the item a/b/item.txt of the alias content, and with objects that no
// address may reach.
func withTree(t *testing.T) *site {
	t.Helper()
	s := aSite(t)
	s.Put(t, "file/content/a/b/item.txt", "content")
	for _, key := range []string{"top.txt", "file/other/x.txt", "file/x.txt", "x.txt"} {
		s.Put(t, key, "hidden")
	}
	return s
}

// TestPaths: an item has one address. All other spellings and paths are answered with 404.
func TestPaths(t *testing.T) {
	t.Parallel()
	const here, address = "/static/file/content/", "/static/file/content/a/b/item.txt"
	s := withTree(t)
	httpCase{Target: address, Status: 200, Text: "content"}.Check(t, s)
	for _, path := range []string{
		"/static/img/", "/static/file/", "/static/file/content", here, here + "a", here + "a/", here + "a/b/",
		address + "/", address + ".", address + "%20", address + "%00", address + "x", here + "/a/b/item.txt", here + "a//b/item.txt",
		here + "A/b/item.txt", "/static/file/Content/a/b/item.txt", "/static/file/none/a/b/item.txt", "/static/img/content/a/b/item.txt",
		here + "./a/b/item.txt", here + "a/../a/b/item.txt", here + "a/b/../b/item.txt",
		here + "%2e/a/b/item.txt", here + "a/%2e%2e/a/b/item.txt", here + "a/b/%2E%2E/b/item.txt",
		here + "a%2fb/item.txt", here + "a%2Fb/item.txt", "/static/file/content%2Fa/b/item.txt", "/static/file%2fcontent/a/b/item.txt",
		here + "a%5cb%5citem.txt", here + `a\b\item.txt`, here + "a/b%5citem.txt", here + "a/b/..%5cb/item.txt",
		here + ".env", here + "%2eenv", here + ".d/x", here + "a/.txt",
		here + "../../top.txt", here + "%2e%2e/%2e%2e/top.txt", here + "..%2f..%2ftop.txt", here + "..%2f..%2f..%2foutside.txt",
		here + "../other/x.txt", "/static/file/../file/other/x.txt", "/static/file/other/x.txt", here + "..%5c..%5ctop.txt", here + "../x.txt",
		here + "%252e%252e/%252e%252e/top.txt", here + "a/b/item.txt%2f..%2fitem.txt", here + "a/b/item.txt::$DATA",
		"/static/file//etc/passwd", here + "/etc/passwd", here + "%2fetc%2fpasswd", here + "a/b/item.txt%ff", here + strings.Repeat("x", 300),
		here + strings.Repeat("x/", 800) + "x", here + "a/b/*", here + "a/b/item.???", here + "{env.HOME}", here + "a%0d%0aDELE%20x.txt",
	} {
		httpCase{Target: path, Status: 404}.Check(t, s)
	}
}

// TestHiddenNames: names that no upload can have are not asked of the storage.
func TestHiddenNames(t *testing.T) {
	t.Parallel()
	s := withTree(t)
	s.Driver.Fail = func(op, key string) error {
		if op != "list" && strings.Contains(key, "/.") {
			t.Errorf("%s of %s", op, key)
		}
		return nil
	}
	for _, name := range []string{".env", "%2eenv", ".d/x", "a/.txt", ".media-tmp/x"} {
		httpCase{Target: "/static/file/content/" + name, Status: 404}.Check(t, s)
	}
}

// TestEncodings: the characters of a name, except for slashes, may be percent-encoded in any way.
func TestEncodings(t *testing.T) {
	t.Parallel()
	const name = "Ä b+c.txt"
	s := aSite(t)
	s.Put(t, "file/exact/"+name, "content")
	all := ""
	for _, c := range []byte(name) {
		all += fmt.Sprintf("%%%02x", c)
	}
	for _, path := range []string{url.PathEscape(name), strings.ReplaceAll(url.PathEscape(name), "+", "%2B"), all, "%c3%84%20b+c.txt"} {
		httpCase{Target: "/static/file/exact/" + path, Status: 200, Text: "content"}.Check(t, s)
	}
	httpCase{Target: "/static/file/exact/%C3%84+b+c.txt", Status: 404}.Check(t, s)
}
