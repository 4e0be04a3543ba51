package http_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// staticSite holds the item /static/file/content/item.txt of ten bytes.
func staticSite(t *testing.T, block string) *site.Site {
	t.Helper()
	s := site.Start(t, site.Account+site.AtRoot+"sanitize off\n}\nimage_alias content\nfile_alias content {\nextensions txt zip html svg xml json js css md pdf mp3\n}", block)
	s.UploadFile(t, site.File("item.txt", "0123456789")).One(t)
	return s
}

const item = "/static/file/content/item.txt"

func TestStaticRanges(t *testing.T) {
	s := staticSite(t, "media")
	partial := func(name, ask, contentRange, body string) site.Case {
		return site.Case{
			Name: name, Path: item, Header: site.Headers("Range", ask), WantStatus: 206, WantBody: body,
			WantHeader: map[string]string{"Content-Range": contentRange, "X-Content-Type-Options": "nosniff"},
		}
	}
	whole := func(name string, ask ...string) site.Case {
		c := site.Case{Name: name, Path: item, Header: http.Header{"Range": ask}, WantStatus: 200, WantBody: "0123456789"}
		c.WantHeader = map[string]string{"Content-Range": "", "Content-Length": "10"}
		return c
	}
	site.CheckAll(t, s, []site.Case{
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
			Name: "beyond the end", Path: item, Header: site.Headers("Range", "bytes=10-"), WantStatus: 416,
			WantHeader: map[string]string{"Content-Range": "bytes */10", "X-Content-Type-Options": "nosniff"},
		},
		{Name: "malformed", Path: item, Header: site.Headers("Range", "bytes=x-"), WantStatus: 416},
		{
			Name: "HEAD", Method: http.MethodHead, Path: item, Header: site.Headers("Range", "bytes=2-4"), WantStatus: 206,
			WantHeader: map[string]string{"Content-Length": "3", "Content-Range": "bytes 2-4/10"},
		},
	})
}

func TestStaticConditions(t *testing.T) {
	s := staticSite(t, "media")
	first := s.Get(t, item)
	etag, modified := first.Header.Get("ETag"), first.Header.Get("Last-Modified")
	if !strings.HasPrefix(etag, `"`) || !strings.HasSuffix(etag, `"`) || len(etag) < 6 {
		t.Fatalf("ETag %q, want a strong one", etag)
	}
	when, err := http.ParseTime(modified)
	if err != nil || time.Since(when).Abs() > time.Minute {
		t.Fatalf("Last-Modified %q, want now: %v", modified, err)
	}
	before := when.Add(-time.Hour).Format(http.TimeFormat)
	not := map[string]string{"ETag": etag, "Cache-Control": first.Header.Get("Cache-Control"), "X-Content-Type-Options": "nosniff", "Content-Length": ""}
	site.CheckAll(t, s, []site.Case{
		{Name: "same ETag", Path: item, Header: site.Headers("If-None-Match", etag), WantStatus: 304, WantHeader: not},
		{Name: "one of several", Path: item, Header: site.Headers("If-None-Match", `"x", `+etag), WantStatus: 304, WantHeader: not},
		{Name: "weak", Path: item, Header: site.Headers("If-None-Match", "W/"+etag), WantStatus: 304},
		{Name: "any", Path: item, Header: site.Headers("If-None-Match", "*"), WantStatus: 304},
		{Name: "HEAD", Method: "HEAD", Path: item, Header: site.Headers("If-None-Match", etag), WantStatus: 304},
		{Name: "other ETag", Path: item, Header: site.Headers("If-None-Match", `"x"`), WantStatus: 200},
		{Name: "other ETag, same time", Path: item, Header: site.Headers("If-None-Match", `"x"`, "If-Modified-Since", modified), WantStatus: 200},
		{Name: "same time", Path: item, Header: site.Headers("If-Modified-Since", modified), WantStatus: 304},
		{Name: "earlier", Path: item, Header: site.Headers("If-Modified-Since", before), WantStatus: 200},
		{Name: "no time", Path: item, Header: site.Headers("If-Modified-Since", "yesterday"), WantStatus: 200},
		{Name: "If-Match", Path: item, Header: site.Headers("If-Match", etag), WantStatus: 200},
		{Name: "If-Match other", Path: item, Header: site.Headers("If-Match", `"x"`), WantStatus: 412},
		{Name: "If-Unmodified-Since", Path: item, Header: site.Headers("If-Unmodified-Since", before), WantStatus: 412},
		{Name: "If-Range", Path: item, Header: site.Headers("Range", "bytes=1-2", "If-Range", etag), WantStatus: 206, WantBody: "12"},
		{Name: "If-Range other", Path: item, Header: site.Headers("Range", "bytes=1-2", "If-Range", `"x"`), WantStatus: 200, WantBody: "0123456789"},
		{Name: "If-Range weak", Path: item, Header: site.Headers("Range", "bytes=1-2", "If-Range", "W/"+etag), WantStatus: 200},
		{Name: "If-Range time", Path: item, Header: site.Headers("Range", "bytes=1-2", "If-Range", modified), WantStatus: 206},
	})
}

// TestStaticHead: the answer to HEAD is that to GET without the body.
func TestStaticHead(t *testing.T) {
	s := staticSite(t, "media")
	get, head := s.Get(t, item), s.Do(t, http.MethodHead, item, nil, "")
	if head.Status != http.StatusOK || head.Body != "" {
		t.Errorf("HEAD: %d %q", head.Status, head.Body)
	}
	for _, name := range []string{
		"Content-Type", "Content-Length", "ETag", "Last-Modified", "Cache-Control", "Accept-Ranges", "X-Content-Type-Options", "Content-Disposition",
	} {
		if get.Header.Get(name) != head.Header.Get(name) {
			t.Errorf("%s: HEAD %q, GET %q", name, head.Header.Get(name), get.Header.Get(name))
		}
	}
	if get.Header.Get("Accept-Ranges") != "bytes" || get.Header.Get("Content-Length") != "10" {
		t.Errorf("headers %v", get.Header)
	}
}

// TestStaticMethods: the service handles only GET and HEAD; other requests go to the next handler.
func TestStaticMethods(t *testing.T) {
	s := staticSite(t, "media\nrespond \"next\" 418")
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"} {
		site.CheckAll(t, s, []site.Case{{Name: method, Method: method, Path: item, WantStatus: 418, WantBody: "next"}})
	}
	site.CheckAll(t, s, []site.Case{
		{Name: "elsewhere", Path: "/static/other/content/item.txt", WantStatus: 418},
		{Name: "no kind", Path: "/static/", WantStatus: 418},
		{Name: "kind alone", Path: "/static/file", WantStatus: 418},
		{Name: "it is still there", Path: item, WantStatus: 200},
	})
}

// TestStaticCacheControl: items that never change are cached for ever, others are revalidated each
// time, unless configured otherwise.
func TestStaticCacheControl(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"}\nstorage over {\ndriver local $ROOT/over\noverwrite_strategy overwrite\nsub_folder_format /\n}\n"+
		"file_alias content {\nstorage default\n}\nfile_alias over {\nstorage over\n}\n"+
		"file_alias own {\nstorage default\ncache_control \"private, max-age=60\"\n}", "media")
	for alias, want := range map[string]string{
		"content": "public, max-age=31536000, immutable", "over": "public, no-cache", "own": "private, max-age=60",
	} {
		s.UploadFile(t, site.Field("alias", alias), site.File("a.txt", "x")).One(t)
		path := "/static/file/" + alias + "/a.txt"
		r := s.Get(t, path)
		if got := r.Header.Get("Cache-Control"); got != want {
			t.Errorf("%s: Cache-Control %q, want %q", alias, got, want)
		}
		if got := s.Get(t, path, "If-None-Match", r.Header.Get("ETag")); got.Status != http.StatusNotModified {
			t.Errorf("%s: asking again: %d", alias, got.Status)
		}
		if got := s.Get(t, path+"x").Header.Get("Cache-Control"); strings.Contains(got, "immutable") {
			t.Errorf("%s: a missing item is cached: %q", alias, got)
		}
	}
}

// TestStaticErrors: the site's handle_errors writes the answer, which keeps the nosniff header.
func TestStaticErrors(t *testing.T) {
	s := staticSite(t, "media\nhandle_errors {\nrespond \"sorry: {err.status_code}\"\n}")
	site.CheckAll(t, s, []site.Case{
		{Name: "missing", Path: item + "x", WantStatus: 404, WantBody: "sorry: 404", WantHeader: map[string]string{"X-Content-Type-Options": "nosniff"}},
		{Name: "alias", Path: "/static/img/none/a.jpg", WantStatus: 404, WantBody: "sorry: 404"},
	})
}

// TestStaticCompressed: with encode around the service, a compressed item has another ETag. Both
// ETags are recognised.
func TestStaticCompressed(t *testing.T) {
	s := staticSite(t, "encode gzip\nmedia")
	text := strings.Repeat("some words, again and again\n", 1000)
	path := "/static/file/content/" + s.UploadFile(t, site.File("long.txt", text)).One(t).Filename
	plain, packed := s.Get(t, path), s.Get(t, path, "Accept-Encoding", "gzip")
	if plain.Body != text || packed.Header.Get("Content-Encoding") != "gzip" || len(packed.Body) >= len(text) {
		t.Fatalf("plain %d bytes, packed %d bytes: %v", len(plain.Body), len(packed.Body), packed.Header)
	}
	if plain.Header.Get("ETag") == packed.Header.Get("ETag") {
		t.Error("two representations have one ETag")
	}
	for _, header := range []http.Header{
		site.Headers("If-None-Match", packed.Header.Get("ETag"), "Accept-Encoding", "gzip"),
		site.Headers("If-None-Match", plain.Header.Get("ETag")),
	} {
		if r := s.Do(t, http.MethodGet, path, header, ""); r.Status != http.StatusNotModified {
			t.Errorf("asking again with %v: %d", header, r.Status)
		}
	}
	if r := s.Get(t, path, "Accept-Encoding", "gzip", "Range", "bytes=5-9"); r.Status != http.StatusPartialContent || r.Body != text[5:10] {
		t.Errorf("a range, compression accepted: %d %q", r.Status, r.Body)
	}
}
