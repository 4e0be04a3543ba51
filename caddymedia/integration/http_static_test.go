package integration

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// staticSite holds the item /static/file/content/item.txt of ten bytes.
func staticSite(t *testing.T, block string) *site {
	t.Helper()
	s := startSite(t, account+atRoot+"sanitize off\n}\nimage_alias content\nfile_alias content {\nextensions txt zip html svg xml json js css md pdf mp3\n}", block)
	s.uploadFile(t, file("item.txt", "0123456789")).one(t)
	return s
}

const item = "/static/file/content/item.txt"

func TestStaticRanges(t *testing.T) {
	s := staticSite(t, "media")
	partial := func(name, ask, contentRange, body string) httpCase {
		return httpCase{
			name: name, path: item, header: headers("Range", ask), wantStatus: 206, wantBody: body,
			wantHeader: map[string]string{"Content-Range": contentRange, "X-Content-Type-Options": "nosniff"},
		}
	}
	whole := func(name string, ask ...string) httpCase {
		c := httpCase{name: name, path: item, header: http.Header{"Range": ask}, wantStatus: 200, wantBody: "0123456789"}
		c.wantHeader = map[string]string{"Content-Range": "", "Content-Length": "10"}
		return c
	}
	checkAll(t, s, []httpCase{
		partial("first", "bytes=0-0", "bytes 0-0/10", "0"),
		partial("middle", "bytes=2-4", "bytes 2-4/10", "234"),
		partial("open end", "bytes=7-", "bytes 7-9/10", "789"),
		partial("all", "bytes=0-", "bytes 0-9/10", "0123456789"),
		partial("over the end", "bytes=8-100", "bytes 8-9/10", "89"),
		partial("suffix", "bytes=-3", "bytes 7-9/10", "789"),
		partial("suffix over the start", "bytes=-30", "bytes 0-9/10", "0123456789"),
		whole("two ranges", "bytes=0-0,2-2"),
		whole("two headers", "bytes=0-0", "bytes=2-2"),
		whole("overlapping", "bytes=0-,0-,0-"),
		whole("many", "bytes="+strings.Repeat("0-0,", 1000)+"0-0"),
		{
			name: "beyond the end", path: item, header: headers("Range", "bytes=10-"), wantStatus: 416,
			wantHeader: map[string]string{"Content-Range": "bytes */10", "X-Content-Type-Options": "nosniff"},
		},
		{name: "malformed", path: item, header: headers("Range", "bytes=x-"), wantStatus: 416},
		{
			name: "HEAD", method: http.MethodHead, path: item, header: headers("Range", "bytes=2-4"), wantStatus: 206,
			wantHeader: map[string]string{"Content-Length": "3", "Content-Range": "bytes 2-4/10"},
		},
	})
}

func TestStaticConditions(t *testing.T) {
	s := staticSite(t, "media")
	first := s.get(t, item)
	etag, modified := first.header.Get("ETag"), first.header.Get("Last-Modified")
	if !strings.HasPrefix(etag, `"`) || !strings.HasSuffix(etag, `"`) || len(etag) < 6 {
		t.Fatalf("ETag %q, want a strong one", etag)
	}
	when, err := http.ParseTime(modified)
	if err != nil || time.Since(when).Abs() > time.Minute {
		t.Fatalf("Last-Modified %q, want now: %v", modified, err)
	}
	before := when.Add(-time.Hour).Format(http.TimeFormat)
	not := map[string]string{"ETag": etag, "Cache-Control": first.header.Get("Cache-Control"), "X-Content-Type-Options": "nosniff", "Content-Length": ""}
	checkAll(t, s, []httpCase{
		{name: "same ETag", path: item, header: headers("If-None-Match", etag), wantStatus: 304, wantHeader: not},
		{name: "one of several", path: item, header: headers("If-None-Match", `"x", `+etag), wantStatus: 304, wantHeader: not},
		{name: "weak", path: item, header: headers("If-None-Match", "W/"+etag), wantStatus: 304},
		{name: "any", path: item, header: headers("If-None-Match", "*"), wantStatus: 304},
		{name: "HEAD", method: "HEAD", path: item, header: headers("If-None-Match", etag), wantStatus: 304},
		{name: "other ETag", path: item, header: headers("If-None-Match", `"x"`), wantStatus: 200},
		{name: "other ETag, same time", path: item, header: headers("If-None-Match", `"x"`, "If-Modified-Since", modified), wantStatus: 200},
		{name: "same time", path: item, header: headers("If-Modified-Since", modified), wantStatus: 304},
		{name: "earlier", path: item, header: headers("If-Modified-Since", before), wantStatus: 200},
		{name: "no time", path: item, header: headers("If-Modified-Since", "yesterday"), wantStatus: 200},
		{name: "If-Match", path: item, header: headers("If-Match", etag), wantStatus: 200},
		{name: "If-Match other", path: item, header: headers("If-Match", `"x"`), wantStatus: 412},
		{name: "If-Unmodified-Since", path: item, header: headers("If-Unmodified-Since", before), wantStatus: 412},
		{name: "If-Range", path: item, header: headers("Range", "bytes=1-2", "If-Range", etag), wantStatus: 206, wantBody: "12"},
		{name: "If-Range other", path: item, header: headers("Range", "bytes=1-2", "If-Range", `"x"`), wantStatus: 200, wantBody: "0123456789"},
		{name: "If-Range weak", path: item, header: headers("Range", "bytes=1-2", "If-Range", "W/"+etag), wantStatus: 200},
		{name: "If-Range time", path: item, header: headers("Range", "bytes=1-2", "If-Range", modified), wantStatus: 206},
	})
}

// TestStaticHead: the answer to HEAD is that to GET without the body.
func TestStaticHead(t *testing.T) {
	s := staticSite(t, "media")
	get, head := s.get(t, item), s.do(t, http.MethodHead, item, nil, "")
	if head.status != http.StatusOK || head.body != "" {
		t.Errorf("HEAD: %d %q", head.status, head.body)
	}
	for _, name := range []string{
		"Content-Type", "Content-Length", "ETag", "Last-Modified", "Cache-Control", "Accept-Ranges", "X-Content-Type-Options", "Content-Disposition",
	} {
		if get.header.Get(name) != head.header.Get(name) {
			t.Errorf("%s: HEAD %q, GET %q", name, head.header.Get(name), get.header.Get(name))
		}
	}
	if get.header.Get("Accept-Ranges") != "bytes" || get.header.Get("Content-Length") != "10" {
		t.Errorf("headers %v", get.header)
	}
}

// TestStaticMethods: the service handles only GET and HEAD; other requests go to the next handler.
func TestStaticMethods(t *testing.T) {
	s := staticSite(t, "media\nrespond \"next\" 418")
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"} {
		checkAll(t, s, []httpCase{{name: method, method: method, path: item, wantStatus: 418, wantBody: "next"}})
	}
	checkAll(t, s, []httpCase{
		{name: "elsewhere", path: "/static/other/content/item.txt", wantStatus: 418},
		{name: "no kind", path: "/static/", wantStatus: 418},
		{name: "kind alone", path: "/static/file", wantStatus: 418},
		{name: "it is still there", path: item, wantStatus: 200},
	})
}

// TestStaticCacheControl: items that never change are cached for ever, others are revalidated each
// time, unless configured otherwise.
func TestStaticCacheControl(t *testing.T) {
	s := startSite(t, account+atRoot+"}\nstorage over {\ndriver local $ROOT/over\noverwrite_strategy overwrite\nsub_folder_format /\n}\n"+
		"file_alias content {\nstorage default\n}\nfile_alias over {\nstorage over\n}\n"+
		"file_alias own {\nstorage default\ncache_control \"private, max-age=60\"\n}", "media")
	for alias, want := range map[string]string{
		"content": "public, max-age=31536000, immutable", "over": "public, no-cache", "own": "private, max-age=60",
	} {
		s.uploadFile(t, field("alias", alias), file("a.txt", "x")).one(t)
		path := "/static/file/" + alias + "/a.txt"
		r := s.get(t, path)
		if got := r.header.Get("Cache-Control"); got != want {
			t.Errorf("%s: Cache-Control %q, want %q", alias, got, want)
		}
		if got := s.get(t, path, "If-None-Match", r.header.Get("ETag")); got.status != http.StatusNotModified {
			t.Errorf("%s: asking again: %d", alias, got.status)
		}
		if got := s.get(t, path+"x").header.Get("Cache-Control"); strings.Contains(got, "immutable") {
			t.Errorf("%s: a missing item is cached: %q", alias, got)
		}
	}
}

// TestStaticErrors: the site's handle_errors writes the answer, which keeps the nosniff header.
func TestStaticErrors(t *testing.T) {
	s := staticSite(t, "media\nhandle_errors {\nrespond \"sorry: {err.status_code}\"\n}")
	checkAll(t, s, []httpCase{
		{name: "missing", path: item + "x", wantStatus: 404, wantBody: "sorry: 404", wantHeader: map[string]string{"X-Content-Type-Options": "nosniff"}},
		{name: "alias", path: "/static/img/none/a.jpg", wantStatus: 404, wantBody: "sorry: 404"},
	})
}

// TestStaticCompressed: with encode around the service, a compressed item has another ETag. Both
// ETags are recognised.
func TestStaticCompressed(t *testing.T) {
	s := staticSite(t, "encode gzip\nmedia")
	text := strings.Repeat("some words, again and again\n", 1000)
	path := "/static/file/content/" + s.uploadFile(t, file("long.txt", text)).one(t).Filename
	plain, packed := s.get(t, path), s.get(t, path, "Accept-Encoding", "gzip")
	if plain.body != text || packed.header.Get("Content-Encoding") != "gzip" || len(packed.body) >= len(text) {
		t.Fatalf("plain %d bytes, packed %d bytes: %v", len(plain.body), len(packed.body), packed.header)
	}
	if plain.header.Get("ETag") == packed.header.Get("ETag") {
		t.Error("two representations have one ETag")
	}
	for _, header := range []http.Header{
		headers("If-None-Match", packed.header.Get("ETag"), "Accept-Encoding", "gzip"),
		headers("If-None-Match", plain.header.Get("ETag")),
	} {
		if r := s.do(t, http.MethodGet, path, header, ""); r.status != http.StatusNotModified {
			t.Errorf("asking again with %v: %d", header, r.status)
		}
	}
	if r := s.get(t, path, "Accept-Encoding", "gzip", "Range", "bytes=5-9"); r.status != http.StatusPartialContent || r.body != text[5:10] {
		t.Errorf("a range, compression accepted: %d %q", r.status, r.body)
	}
}
