package serve

import (
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
)

func TestOneRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ranges []string
		keeps  bool
	}{
		{nil, true},
		{[]string{"bytes=0-1"}, true},
		{[]string{"bytes=-5"}, true},
		{[]string{"bytes=5-"}, true},
		{[]string{"bytes=0-1,3-4"}, false},
		{[]string{"bytes=0-1, 3-4"}, false},
		{[]string{"bytes=0-1,"}, false},
		{[]string{"bytes=" + strings.Repeat("0-1,", 1000)}, false},
		{[]string{"bytes=0-1", "bytes=3-4"}, false},
		{[]string{"", "bytes=0-1,2-3"}, false},
		{[]string{"bytes= 0-1 "}, true},
		{[]string{"bytes=a-b"}, false},
		{[]string{"bytes=-"}, false},
		{[]string{"bytes=-0"}, false},
		{[]string{"bytes=0-99999999999999999999"}, false},
		{[]string{"items=0-1"}, false},
		{[]string{"bytes"}, false},
		{[]string{""}, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if c.ranges != nil {
			r.Header["Range"] = c.ranges
		}
		got := oneRange(r, 10)
		if _, there := got.Header["Range"]; there != (c.keeps && c.ranges != nil) || (got == r) != c.keeps {
			t.Errorf("%q: asks for %q", c.ranges, got.Header["Range"])
		}
		if len(r.Header["Range"]) != len(c.ranges) {
			t.Errorf("%q: the request itself was changed", c.ranges)
		}
	}
}

func TestInline(t *testing.T) {
	t.Parallel()
	for mediaType, want := range map[string]bool{
		"image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true, "image/svg+xml": true,
		"image/avif": true, "image/heic": true,
		"application/pdf": true, "text/plain": true, "audio/mpeg": true, "video/mp4": true,
		"": false, "text/html": false, "application/xhtml+xml": false, "application/xml": false, "text/xml": false,
		"text/css": false, "text/javascript": false, "application/javascript": false, "application/json": false,
		"application/zip": false, "application/octet-stream": false, "image/unknown": false, "text/markdown": false,
	} {
		if got := inline(mediaType); got != want {
			t.Errorf("inline(%q) is %t", mediaType, got)
		}
	}
}

func TestAttachment(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"a.zip", "a b.zip", `a"b.zip`, "a;b.zip", "ěšč.zip", "a%20b.zip", "a'b.zip", "a\\b.zip", strings.Repeat("x", 200),
	} {
		value := attachment(name)
		disposition, params, err := mime.ParseMediaType(value)
		if err != nil || disposition != "attachment" || params["filename"] != name {
			t.Errorf("%q returns %q: %q, %v", name, value, params["filename"], err)
		}
		if strings.ContainsAny(value, "\r\n") {
			t.Errorf("%q returns %q", name, value)
		}
	}
}

func TestStaticStatus(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{
		fs.ErrNotExist:                 http.StatusNotFound,
		storagedrivers.ErrInvalidKey:   http.StatusNotFound,
		storagedrivers.ErrUnavailable:  http.StatusServiceUnavailable,
		storagedrivers.ErrClosed:       http.StatusServiceUnavailable,
		fs.ErrPermission:               http.StatusBadGateway,
		errors.New("something else"):   http.StatusBadGateway,
		storagedrivers.ErrInvalidRange: http.StatusBadGateway,
	} {
		if got := staticStatus(&storagedrivers.OpError{Op: "open", Err: err}); got != want {
			t.Errorf("%v returns %d, want %d", err, got, want)
		}
	}
}

// TestEntityTag: there is no tag of a size alone.
func TestEntityTag(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	for _, tt := range []struct {
		info      storagedrivers.Info
		overwrite bool
		want      string
	}{
		{storagedrivers.Info{ETag: `"x"`, Size: 10}, true, `"x"`},
		{storagedrivers.Info{Size: 10, ModTime: at}, false, `"a-3b9aca00"`},
		{storagedrivers.Info{Size: 10, ModTime: at}, true, `W/"a-3b9aca00"`},
		{storagedrivers.Info{Size: 10}, false, ""},
		{storagedrivers.Info{Size: 10}, true, ""},
	} {
		alias := &item.Alias{Overwrite: tt.overwrite}
		if got := (target{alias: alias}).entityTag(tt.info); got != tt.want {
			t.Errorf("%+v: tag %q, want %q", tt.info, got, tt.want)
		}
		header := http.Header{}
		setHeaders(header, target{alias: alias}, tt.info)
		if _, there := header["Etag"]; there != (tt.want != "") {
			t.Errorf("%+v: header %q", tt.info, header["Etag"])
		}
	}
}
