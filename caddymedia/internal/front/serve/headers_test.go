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

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
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

// TestAttachment: a name is encoded by RFC 6266 and RFC 8187, whatever is in it.
func TestAttachment(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"plain.txt":                `attachment; filename=plain.txt`,
		"two words.txt":            `attachment; filename="two words.txt"`,
		`a"b\c;d=e'.txt`:           `attachment; filename="a\"b\\c;d=e'.txt"`,
		"Účet č. 5.pdf":            `attachment; filename="__et _. 5.pdf"; filename*=utf-8''%C3%9A%C4%8Det%20%C4%8D.%205.pdf`,
		"a\r\nSet-Cookie: x=y.txt": `attachment; filename="a__Set-Cookie: x=y.txt"; filename*=utf-8''a%0D%0ASet-Cookie%3A%20x%3Dy.txt`,
		"100%.txt":                 `attachment; filename=100%.txt`,
		"a%20b.zip":                `attachment; filename=a%20b.zip`,
		"写真 🎉.png":                 `attachment; filename="__ _.png"; filename*=utf-8''%E5%86%99%E7%9C%9F%20%F0%9F%8E%89.png`,
	} {
		value := Attachment(name)
		disposition, params, err := mime.ParseMediaType(value)
		if err != nil || value != want || disposition != "attachment" || params["filename"] != name {
			t.Errorf("%q returns %s, want %s: %q, %v", name, value, want, params["filename"], err)
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
