package integration

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The Accept headers of browsers for pictures, and Chrome's for a page.
const (
	acceptChrome  = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
	acceptFirefox = "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"
	acceptSafari  = "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"
	acceptPage    = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8"
	acceptOld     = "image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"
)

// negotiated is a site with the picture photo, and its two representations.
type negotiated struct {
	*site
	original, variant *reply
}

const photo = "/static/img/content/photo.jpg"

func negotiate(t *testing.T, block string) negotiated {
	t.Helper()
	s := withVariants(t, block, "negotiate on")
	content := asJPEG(t, photograph(200, 100), 80)
	one := s.uploadImage(t, file("photo.jpg", content)).one(t)
	if one.FullPath != s.url+photo {
		t.Fatalf("full_path %s", one.FullPath)
	}
	n := negotiated{s, s.get(t, photo), s.get(t, photo, "Accept", "image/webp")}
	if n.original.status != 200 || n.original.body != content {
		t.Fatalf("without Accept: %d, %d bytes", n.original.status, len(n.original.body))
	}
	if n.variant.status != 200 || n.variant.body != s.variant(t, one) {
		t.Fatalf("with Accept: %d, %d bytes", n.variant.status, len(n.variant.body))
	}
	return n
}

func (n negotiated) tags() (original, variant string) {
	return n.original.header.Get("ETag"), n.variant.header.Get("ETag")
}

// TestNegotiation: the Accept header decides which requests get the variant.
func TestNegotiation(t *testing.T) {
	n := negotiate(t, "media")
	for _, c := range []struct {
		accept  []string
		variant bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"*/*"}, false}, // sent by any program, whatever it supports
		{[]string{"image/*"}, false},
		{[]string{acceptOld}, false},
		{[]string{"image/webp"}, true},
		{[]string{acceptChrome}, true},
		{[]string{acceptFirefox}, true},
		{[]string{acceptSafari}, true},
		{[]string{acceptPage}, true},
		{[]string{"IMAGE/WebP"}, true},
		{[]string{"image/webp;q=0"}, false},
		{[]string{"image/webp;q=0.000, */*"}, false},
		{[]string{"image/webp ; Q=0.0"}, false},
		{[]string{"image/webp;q=0.5"}, true},
		{[]string{"image/webp;q=0.5, image/jpeg"}, false},
		{[]string{"image/jpeg;q=0.9,image/webp;q=0.8"}, false},
		{[]string{"image/jpeg;q=0.8,image/webp;q=0.9"}, true},
		{[]string{"image/png,image/webp;q=0.9"}, true},
		{[]string{"text/html", "image/webp"}, true},
		{[]string{"image/jpeg", "image/webp;q=0.1"}, false},
		{[]string{"text/html,, ,image/webp"}, true},
		{[]string{"image/webpx"}, false},
		{[]string{"x-image/webp"}, false},
		{[]string{"image"}, false},
	} {
		t.Run(fmt.Sprintf("%q", c.accept), func(t *testing.T) {
			want, kind := n.original, "image/jpeg"
			if c.variant {
				want, kind = n.variant, "image/webp"
			}
			header := map[string]string{
				"Content-Type": kind, "Vary": "Accept", "ETag": want.header.Get("ETag"), "X-Content-Type-Options": "nosniff",
				"Content-Length": fmt.Sprint(len(want.body)), "Cache-Control": "public, max-age=31536000, immutable",
			}
			accept := http.Header{}
			if c.accept != nil {
				accept["Accept"] = c.accept
			}
			httpCase{path: photo, header: accept, wantStatus: 200, wantHeader: header, wantBody: want.body}.check(t, n.site)
			httpCase{path: photo, method: http.MethodHead, header: accept, wantStatus: 200, wantHeader: header}.check(t, n.site)
		})
	}
}

// TestNegotiatedConditions: each representation has its own ETag. A conditional request is compared
// with the ETag of the negotiated representation.
func TestNegotiatedConditions(t *testing.T) {
	n := negotiate(t, "media")
	original, variant := n.tags()
	if original == variant || original == "" || variant == "" {
		t.Fatalf("ETags %s and %s", original, variant)
	}
	vary := map[string]string{"Vary": "Accept", "X-Content-Type-Options": "nosniff"}
	with := func(pairs ...string) http.Header { return headers(append(pairs, "Accept", acceptChrome)...) }
	v, o := n.variant.body, n.original.body
	checkAll(t, n.site, []httpCase{
		{name: "the variant again", path: photo, header: with("If-None-Match", variant), wantStatus: 304, wantHeader: vary},
		{name: "the variant again by HEAD", method: "HEAD", path: photo, header: with("If-None-Match", variant), wantStatus: 304, wantHeader: vary},
		{name: "the variant, who has the original", path: photo, header: with("If-None-Match", original), wantStatus: 200, wantHeader: vary, wantBody: v},
		{name: "the variant, who has both", path: photo, header: with("If-None-Match", original+", "+variant), wantStatus: 304},
		{name: "the original again", path: photo, header: headers("If-None-Match", original), wantStatus: 304, wantHeader: vary},
		{name: "the original, who has the variant", path: photo, header: headers("If-None-Match", variant), wantStatus: 200, wantHeader: vary, wantBody: o},
		{name: "If-Match", path: photo, header: with("If-Match", variant), wantStatus: 200, wantBody: v},
		{name: "If-Match of the other", path: photo, header: with("If-Match", original), wantStatus: 412},
	})
}

// TestNegotiatedRanges: a range is part of the negotiated representation.
func TestNegotiatedRanges(t *testing.T) {
	n := negotiate(t, "media")
	original, variant := n.tags()
	v, o := n.variant.body, n.original.body
	part := func(of string) map[string]string {
		return map[string]string{"Content-Range": fmt.Sprintf("bytes 10-29/%d", len(of)), "Content-Length": "20", "Vary": "Accept"}
	}
	whole := func(of string) map[string]string {
		return map[string]string{"Content-Range": "", "Content-Length": fmt.Sprint(len(of)), "Vary": "Accept"}
	}
	with := func(pairs ...string) http.Header {
		return headers(append(pairs, "Accept", acceptFirefox, "Range", "bytes=10-29")...)
	}
	plain := func(pairs ...string) http.Header { return headers(append(pairs, "Range", "bytes=10-29")...) }
	checkAll(t, n.site, []httpCase{
		{name: "of the variant", path: photo, header: with(), wantStatus: 206, wantHeader: part(v), wantBody: v[10:30]},
		{name: "of the original", path: photo, header: plain(), wantStatus: 206, wantHeader: part(o), wantBody: o[10:30]},
		{name: "HEAD", method: "HEAD", path: photo, header: with(), wantStatus: 206, wantHeader: part(v)},
		{name: "going on with the variant", path: photo, header: with("If-Range", variant), wantStatus: 206, wantHeader: part(v), wantBody: v[10:30]},
		{name: "going on with the original", path: photo, header: plain("If-Range", original), wantStatus: 206, wantHeader: part(o), wantBody: o[10:30]},
		{name: "the variant after the original", path: photo, header: with("If-Range", original), wantStatus: 200, wantHeader: whole(v), wantBody: v},
		{name: "the original after the variant", path: photo, header: plain("If-Range", variant), wantStatus: 200, wantHeader: whole(o), wantBody: o},
		{
			name: "behind the end", path: photo, header: headers("Accept", "image/webp", "Range", "bytes=9999999-"), wantStatus: 416,
			wantHeader: map[string]string{"Content-Range": fmt.Sprintf("bytes */%d", len(v)), "Vary": "Accept"},
		},
	})
}

// TestNotNegotiated: items without variants have no Vary header.
func TestNotNegotiated(t *testing.T) {
	n := negotiate(t, "media")
	svg := strings.TrimPrefix(n.uploadImage(t, file("a.svg", svgPicture)).one(t).FullPath, n.url)
	doc := strings.TrimPrefix(n.uploadFile(t, file("a.pdf", pdfDocument)).one(t).FullPath, n.url)
	none := map[string]string{"Vary": ""}
	accept := headers("Accept", acceptChrome)
	checkAll(t, n.site, []httpCase{
		{name: "SVG", path: svg, header: accept, wantStatus: 200, wantBody: svgPicture, wantHeader: none},
		{name: "a file", path: doc, header: accept, wantStatus: 200, wantBody: pdfDocument, wantHeader: none},
		{name: "the variant's own address", path: photo + ".webp", wantStatus: 200, wantBody: n.variant.body, wantHeader: none},
	})
	off := withVariants(t, "media")
	content := jpegOf(t, 8, 8)
	off.uploadImage(t, file("photo.jpg", content))
	checkAll(t, off, []httpCase{{name: "off", path: photo, header: accept, wantStatus: 200, wantBody: content, wantHeader: none}})
}

// TestNegotiatedFiles: the current files in the folder decide, not earlier ones.
func TestNegotiatedFiles(t *testing.T) {
	n := negotiate(t, "media")
	stored := filepath.Join(n.root, "img/content/photo.jpg")
	variant := httpCase{name: "both", path: photo, header: headers("Accept", "image/webp"), wantStatus: 200, wantBody: n.variant.body}
	original := variant
	original.wantBody, original.wantHeader = n.original.body, map[string]string{"Content-Type": "image/jpeg", "Vary": "Accept"}
	variant.check(t, n.site)

	at := func(when time.Time) {
		if err := os.Chtimes(stored+".webp", when, when); err != nil {
			t.Fatal(err)
		}
	}
	at(time.Now().Add(-time.Hour)) // it is of an earlier picture
	original.check(t, n.site)
	at(time.Now().Add(time.Hour))
	variant.check(t, n.site)

	if err := os.Remove(stored + ".webp"); err != nil {
		t.Fatal(err)
	}
	original.check(t, n.site)

	if err := os.WriteFile(stored+".webp", []byte(n.variant.body), 0o600); err != nil {
		t.Fatal(err)
	}
	variant.check(t, n.site)
	if err := os.Remove(stored); err != nil {
		t.Fatal(err)
	}
	for _, header := range []http.Header{nil, variant.header} {
		httpCase{path: photo, header: header, wantStatus: 404}.check(t, n.site)
	}
}
