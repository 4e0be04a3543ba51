package storagedrivers_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/textproto"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/memory"
)

func TestRangeWithin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		offset, length, size int64
		want                 int64
		err                  error
	}{
		{0, 0, 0, 0, nil},
		{0, 0, 10, 10, nil},
		{0, 5, 10, 5, nil},
		{0, 10, 10, 10, nil},
		{0, 11, 10, 10, nil},
		{5, 0, 10, 5, nil},
		{5, 5, 10, 5, nil},
		{5, 6, 10, 5, nil},
		{9, 1, 10, 1, nil},
		{1, math.MaxInt64, 10, 9, nil},
		{0, 1, 0, 0, storagedrivers.ErrInvalidRange},
		{10, 0, 10, 0, storagedrivers.ErrInvalidRange},
		{10, 1, 10, 0, storagedrivers.ErrInvalidRange},
		{math.MaxInt64, math.MaxInt64, 10, 0, storagedrivers.ErrInvalidRange},
		{-1, 0, 10, 0, storagedrivers.ErrInvalidRange},
		{0, -1, 10, 0, storagedrivers.ErrInvalidRange},
	} {
		rng := storagedrivers.Range{Offset: tt.offset, Length: tt.length}
		got, err := rng.Within(tt.size)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%+v within %d: %d, %v; want %d, %v", rng, tt.size, got, err, tt.want, tt.err)
		}
	}
}

func TestPageLimit(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{-1: 1000, 0: 1000, 1: 1, 999: 999, 1000: 1000, 1001: 1000} {
		test.Equal(t, (storagedrivers.ListOptions{Limit: limit}).PageLimit(), want, "limit", limit)
	}
}

func TestGuaranteeString(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(storagedrivers.Atomic, ", ", storagedrivers.BestEffort)
	test.Equal(t, got, "atomic, best effort")
}

func TestContentType(t *testing.T) {
	t.Parallel()
	const unknown = "application/octet-stream"
	for key, want := range map[string]string{
		"a.png": "image/png", "a.PNG": "image/png", "a/b.c/d.jpeg": "image/jpeg", "a.tar.gz": "application/gzip",
		"a.svg": "image/svg+xml", "a.html": "text/html; charset=utf-8", "a.mp4": "video/mp4", "a.woff2": "font/woff2",
		"a.m3u8": "application/vnd.apple.mpegurl", "a.ts": "video/mp2t", "a.m4s": "video/iso.segment", "a.mpd": "application/dash+xml",
		"a.wasm": "application/wasm", "a.mjs": "text/javascript; charset=utf-8", "a.webmanifest": "application/manifest+json",
		"a.geojson": "application/geo+json", "a.gpx": "application/gpx+xml", "a.kml": "application/vnd.google-earth.kml+xml",
		"a.rss": "application/rss+xml", "a.atom": "application/atom+xml", "a.tsv": "text/tab-separated-values; charset=utf-8",
		"a.usdz": "model/vnd.usdz+zip", "a.pkpass": "application/vnd.apple.pkpass", "a.apk": "application/vnd.android.package-archive",
		"a.glb": "model/gltf-binary", "a.jxl": "image/jxl", "a.amr": "audio/amr",
		"a": unknown, "a.": unknown, "a.b/c": unknown, "png": unknown, "a.unknown": unknown, "": unknown, "a.png/": unknown,
		"a.é": unknown,
	} {
		test.Equal(t, storagedrivers.ContentType(key), want, key)
	}
}

func TestOpError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  storagedrivers.OpError
		want string
	}{
		{
			storagedrivers.OpError{Op: "put", Storage: "main", Key: "a/b.png", Err: fs.ErrExist},
			`put "a/b.png" on storage "main": file already exists`,
		},
		{
			storagedrivers.OpError{Op: "check", Storage: "main", Err: storagedrivers.ErrUnavailable},
			`check on storage "main": storage unavailable`,
		},
	} {
		test.Equal(t, tt.err.Error(), tt.want)
		test.Is(t, &tt.err, tt.err.Err)
	}
	test.Is(t, storagedrivers.ErrClosed, fs.ErrClosed)
}

func TestValidKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"a", "a/b", "a b/c d.txt", " a", "a..b", "a.b.c", "-rf", "~", "con", "日本語/é.png", "😀", "a\u00a0b",
		`#?%&+='"()[]{}~!$;,@*:|<>`,
		strings.Repeat("x", 255),
		strings.Repeat("x/", 511) + "xx", // 1,024 bytes
	} {
		test.Is(t, storagedrivers.ValidKey(key), nil, key)
	}
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "./a", "../a", "a/..", "a/./b", ".a", "a/.b", "a.", "a ", "a./b", "a /b",
		`a\b`, "a\x00", "a\nb", "a\tb", "\x7f", "\u0080", "\xff", "a\xc3",
		strings.Repeat("x", 255+1),
		strings.Repeat("é", 128),
		strings.Repeat("x/", 511) + "xxx", // 1,025 bytes
	} {
		test.Is(t, storagedrivers.ValidKey(key), storagedrivers.ErrInvalidKey, key)
	}
}

func FuzzValidKey(f *testing.F) {
	for _, seed := range []string{"a/b.png", "../a", "a/./b", "a\\b", "a\x00", " ", "é", "\xff", "a//b", "/a", "a. /b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if err := storagedrivers.ValidKey(key); err != nil {
			test.Is(t, err, storagedrivers.ErrInvalidKey, key)
			return
		}
		if !fs.ValidPath(key) || !filepath.IsLocal(key) || path.Clean(key) != key || !utf8.ValidString(key) {
			t.Errorf("%q passed and is no clean local path", key)
		}
		if strings.Contains("/"+key, "/.") || strings.ContainsAny(key, "\x00\r\n\\") || len(key) > 1024 {
			t.Errorf("%q passed", key)
		}
	})
}

// TestListPrefix: a driver only gets prefixes that valid keys may have.
func TestListPrefix(t *testing.T) {
	t.Parallel()
	var asked []string
	d := memory.New()
	d.Fail = func(_, prefix string) error {
		asked = append(asked, prefix)
		return nil
	}
	s := open(t, d, storagedrivers.Options{})
	for prefix, want := range map[string]bool{
		"": true, "a": true, "a/": true, "a/b": true, "a.": true, "a ": true, "a/b ": true,
		strings.Repeat("x", 255):   true,
		strings.Repeat("x", 255+1): false,
		"/":                        false, "a//": false, "../": false, ".": false, "a/.": false, "a./": false, "a /": false, `a\`: false,
		"a\x00": false, "\xff": false,
	} {
		asked = nil
		page, err := s.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix})
		if err != nil || len(page.Objects) > 0 || page.Next != "" {
			t.Errorf("%q: %d objects, cursor %q, error %v", prefix, len(page.Objects), page.Next, err)
		}
		test.Equal(t, len(asked) > 0, want, prefix, "driver asked")
	}
}

func TestLocationOverlaps(t *testing.T) {
	t.Parallel()
	at := func(root string) storagedrivers.Location {
		return storagedrivers.Location{Backend: "x"}.Join(root)
	}
	for name, test := range map[string]struct {
		a, b storagedrivers.Location
		want bool
	}{
		"the same":               {at("a"), at("a"), true},
		"written otherwise":      {at("/srv/a"), at("/srv//b/../a/"), true},
		"the whole bucket":       {at(""), at("."), true},
		"another backend":        {at("a"), storagedrivers.Location{Backend: "y", Root: "a"}, false},
		"a folder":               {at(""), at("a"), true},
		"beside":                 {at("/srv/a"), at("/srv/b"), false},
		"longer names":           {at("a"), at("aa"), false},
		"within":                 {at("/srv/a/b"), at("/srv/a"), true},
		"within the root":        {at("/"), at("/srv"), true},
		"outside of the login's": {at(""), at("/srv/a"), false},
		"beside the login's":     {at(""), at("../a"), false},
		"above the login's":      {at(""), at(".."), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.a.Overlaps(test.b) != test.want || test.b.Overlaps(test.a) != test.want {
				t.Errorf("%v and %v: want %t", test.a, test.b, test.want)
			}
		})
	}
}

// TestLocationJoin: the location of an object is the same from every folder above it.
func TestLocationJoin(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"", "/", "media", "/srv/media"} {
		l := storagedrivers.Location{Backend: "x", Root: root}
		if whole, parts := l.Join("img/a/b.jpg"), l.Join("img").Join("a/b.jpg"); whole != parts || whole.String() != parts.String() {
			t.Errorf("%v and %v", whole, parts)
		}
		test.Equal(t, l.Join(""), l, "is not")
	}
}

func TestEnters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		prefix, cursor, folder string
		deep, shallow          bool
	}{
		{"", "", "a/", true, false},
		{"a", "", "a/", true, false},
		{"a/", "", "a/", true, true},
		{"a/", "", "ab/", false, false},
		{"a/b", "", "a/", true, true},
		{"a/b", "", "a/b/", true, false},
		{"a/b/c", "", "a/b/", true, true},
		{"a/b/c", "", "a/c/", false, false},
		{"", "a/b", "a/", true, false},
		{"", "a0", "a/", false, false},
		{"a/", "a/b", "a/", true, true},
		{"a/b", "a0", "a/", false, false},
	} {
		opts := storagedrivers.ListOptions{Prefix: tt.prefix, Cursor: tt.cursor}
		test.Equal(t, opts.Enters(tt.folder), tt.deep, opts, "enters", tt.folder)
		opts.Shallow = true
		test.Equal(t, opts.Enters(tt.folder), tt.shallow, opts, "enters", tt.folder)
	}
}

// TestWalk: objects and folders fill a page together, and the cursor is the last name of either.
func TestWalk(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]struct {
		objects []string
		folders []string
		next    string
	}{
		1: {[]string{"a"}, nil, "a"},
		2: {[]string{"a"}, []string{"b/"}, "b/"},
		3: {[]string{"a", "c"}, []string{"b/"}, ""},
	} {
		w := storagedrivers.Walk{ListOptions: storagedrivers.ListOptions{Limit: limit, Shallow: true}}
		err := w.Take(storagedrivers.Info{Key: "a"})
		if err == nil {
			err = w.TakeFolder("b/")
		}
		if err == nil {
			err = w.Take(storagedrivers.Info{Key: "c"})
		}
		page, err := w.Page(err)
		test.Is(t, err, nil)
		if !slices.Equal(keysOf(page), want.objects) || !slices.Equal(page.Folders, want.folders) || page.Next != want.next {
			t.Errorf("a page of %d has %+v, want %+v", limit, page, want)
		}
	}
}

func TestWalkLeavesFoldersOut(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]storagedrivers.ListOptions{
		"deep": {}, "another prefix": {Shallow: true, Prefix: "c"}, "passed": {Shallow: true, Cursor: "b/"},
	} {
		w := storagedrivers.Walk{ListOptions: opts}
		page, err := w.Page(w.TakeFolder("b/"))
		if err != nil || len(page.Folders) > 0 {
			t.Errorf("%s: folders %q, error %v", name, page.Folders, err)
		}
	}
}

func TestWalkThatFails(t *testing.T) {
	t.Parallel()
	var w storagedrivers.Walk
	test.Is(t, w.Take(storagedrivers.Info{Key: "a"}), nil)
	page, err := w.Page(fs.ErrPermission)
	test.Is(t, err, fs.ErrPermission)
	if len(page.Objects) > 0 {
		t.Errorf("a walk that failed returns %+v", page)
	}
}

func keysOf(page storagedrivers.Page) []string {
	keys := make([]string, len(page.Objects))
	for i, info := range page.Objects {
		keys[i] = info.Key
	}
	return keys
}

func TestWithCause(t *testing.T) {
	t.Parallel()
	const cause = storagedrivers.Cause("It is broken. Repair it.")
	err := fmt.Errorf("connecting: %w", storagedrivers.WithCause(storagedrivers.ErrUnavailable, cause))
	test.Equal(t, storagedrivers.CauseOf(err), cause, "cause")
	if !errors.Is(err, storagedrivers.ErrUnavailable) || err.Error() != "connecting: storage unavailable" {
		t.Errorf("error %v", err)
	}
	test.Equal(t, storagedrivers.CauseOf(storagedrivers.WithCause(err, "Something.")), cause, "the cause of the cause is")
	if storagedrivers.WithCause(nil, cause) != nil {
		t.Error("no error became one")
	}
	test.Equal(t, storagedrivers.CauseOf(storagedrivers.WithCause(storagedrivers.ErrNoSpace, "")), "", "no cause became one")
}

// TestExplain: every known error has an explanation and a remedy.
func TestExplain(t *testing.T) {
	t.Parallel()
	denied := fs.ErrPermission
	drivers := map[string]storagedrivers.Description{
		"local": {Noun: "folder", Local: true}, "sftp": {Noun: "folder"}, "ftp": {Noun: "folder"}, "s3": {Noun: "bucket"},
	}
	for _, c := range []struct {
		driver, op string
		err        error
		want       string
	}{
		{"local", "check", &fs.PathError{Op: "mkdir", Path: "/srv/media", Err: syscall.EACCES}, "The user that Caddy runs as may not use the folder."},
		{"local", "put", fmt.Errorf("%w: %w", denied, syscall.EROFS), "may not store objects there"},
		{"local", "check", &fs.PathError{Op: "open", Path: "/srv/media", Err: syscall.ENOTDIR}, "not a folder"},
		{"local", "put", fmt.Errorf("%w: x", storagedrivers.ErrNoSpace), "full"},
		{"sftp", "put", denied, "The login succeeded but may not store objects there."},
		{"sftp", "open", denied, "may not read"},
		{"sftp", "delete", denied, "may not delete"},
		{"sftp", "list", denied, "may not read"},
		{"sftp", "list", fs.ErrNotExist, "The folder does not exist"},
		{"s3", "check", fmt.Errorf("%w: %w", denied, errors.New("AccessDenied")), "may not use the bucket"},
		{"ftp", "check", fmt.Errorf("%w: %w", storagedrivers.ErrUnavailable, &textproto.Error{Code: 421, Msg: "Too many."}), "too busy"},
		{"ftp", "check", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, "does not speak TLS"},
		{"ftp", "check", x509.UnknownAuthorityError{}, "certificate"},
		{"sftp", "check", &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, "no route to the host"},
		{"sftp", "check", fmt.Errorf("%w: %w", storagedrivers.ErrUnavailable, io.EOF), "ended the connection"},
		{"sftp", "check", os.ErrDeadlineExceeded, "does not answer"},
		{"sftp", "check", errors.Join(storagedrivers.ErrUnavailable, context.DeadlineExceeded), "does not answer"},
		{"sftp", "check", context.Canceled, "aborted"},
		{"ftp", "delete", errors.Join(storagedrivers.ErrUnavailable, context.DeadlineExceeded, context.Canceled), "does not answer"},
		{"sftp", "check", fs.ErrNotExist, "The folder does not exist"},
		{"sftp", "open", storagedrivers.ErrClosed, "changed meanwhile"},
		{"sftp", "put", storagedrivers.ErrSizeMismatch, "shorter or longer"},
		{"sftp", "put", denied, "may not store objects there"},
		{"sftp", "stat", denied, "may not read"},
		{"sftp", "sweep", denied, "may not delete"},
		{"s3", "check", storagedrivers.WithCause(denied, "The key is wrong."), "The key is wrong."},
		{"s3", "check", storagedrivers.WithCause(storagedrivers.ErrClosed, "The key is wrong."), "changed meanwhile"},
	} {
		wrapped := &storagedrivers.OpError{Op: c.op, Storage: "main", Err: c.err}
		s := storagedrivers.New("main", nil, storagedrivers.Options{Description: drivers[c.driver], Close: func() error { return nil }})
		got := s.Explain(wrapped)
		if !strings.Contains(got, c.want) || !strings.HasSuffix(got, ".") || strings.Contains(got, "{") {
			t.Errorf("%s, %s: %v is explained as %q, want %q", c.driver, c.op, c.err, got, c.want)
		}
	}
	test.Equal(t, drivers["s3"].Explain(errors.New("what nobody foresaw")), "", "an unknown error is explained as")
}
