package storagedrivers_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
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
