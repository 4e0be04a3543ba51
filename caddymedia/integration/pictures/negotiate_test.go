package pictures_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
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
	*site.Site
	original, variant *site.Reply
}

const photo = "/static/img/content/photo.jpg"

func negotiate(t *testing.T, block string) negotiated {
	t.Helper()
	s := withVariants(t, block, "negotiate on")
	content := sample.EncodeJPEG(t, sample.Photo(200, 100), 80)
	one := s.UploadImage(t, site.File("photo.jpg", content)).One(t)
	if one.FullPath != s.URL+photo {
		t.Fatalf("full_path %s", one.FullPath)
	}
	n := negotiated{s, s.Get(t, photo), s.Get(t, photo, "Accept", "image/webp")}
	if n.original.Status != 200 || n.original.Body != content {
		t.Fatalf("without Accept: %d, %d bytes", n.original.Status, len(n.original.Body))
	}
	if n.variant.Status != 200 || n.variant.Body != fetchVariant(t, s, one) {
		t.Fatalf("with Accept: %d, %d bytes", n.variant.Status, len(n.variant.Body))
	}
	return n
}

func (n negotiated) tags() (original, variant string) {
	return n.original.Header.Get("ETag"), n.variant.Header.Get("ETag")
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
				"Content-Type": kind, "Vary": "Accept", "ETag": want.Header.Get("ETag"), "X-Content-Type-Options": "nosniff",
				"Content-Length": fmt.Sprint(len(want.Body)), "Cache-Control": "public, max-age=31536000, immutable",
			}
			accept := http.Header{}
			if c.accept != nil {
				accept["Accept"] = c.accept
			}
			site.Case{Path: photo, Header: accept, WantStatus: 200, WantHeader: header, WantBody: want.Body}.Check(t, n.Site)
			site.Case{Path: photo, Method: http.MethodHead, Header: accept, WantStatus: 200, WantHeader: header}.Check(t, n.Site)
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
	with := func(pairs ...string) http.Header { return site.Headers(append(pairs, "Accept", acceptChrome)...) }
	v, o := n.variant.Body, n.original.Body
	site.CheckAll(t, n.Site, []site.Case{
		{Name: "the variant again", Path: photo, Header: with("If-None-Match", variant), WantStatus: 304, WantHeader: vary},
		{Name: "the variant again by HEAD", Method: "HEAD", Path: photo, Header: with("If-None-Match", variant), WantStatus: 304, WantHeader: vary},
		{Name: "the variant, who has the original", Path: photo, Header: with("If-None-Match", original), WantStatus: 200, WantHeader: vary, WantBody: v},
		{Name: "the variant, who has both", Path: photo, Header: with("If-None-Match", original+", "+variant), WantStatus: 304},
		{Name: "the original again", Path: photo, Header: site.Headers("If-None-Match", original), WantStatus: 304, WantHeader: vary},
		{Name: "the original, who has the variant", Path: photo, Header: site.Headers("If-None-Match", variant), WantStatus: 200, WantHeader: vary, WantBody: o},
		{Name: "If-Match", Path: photo, Header: with("If-Match", variant), WantStatus: 200, WantBody: v},
		{Name: "If-Match of the other", Path: photo, Header: with("If-Match", original), WantStatus: 412},
	})
}

// TestNegotiatedRanges: a range is part of the negotiated representation.
func TestNegotiatedRanges(t *testing.T) {
	n := negotiate(t, "media")
	original, variant := n.tags()
	v, o := n.variant.Body, n.original.Body
	part := func(of string) map[string]string {
		return map[string]string{"Content-Range": fmt.Sprintf("bytes 10-29/%d", len(of)), "Content-Length": "20", "Vary": "Accept"}
	}
	whole := func(of string) map[string]string {
		return map[string]string{"Content-Range": "", "Content-Length": fmt.Sprint(len(of)), "Vary": "Accept"}
	}
	with := func(pairs ...string) http.Header {
		return site.Headers(append(pairs, "Accept", acceptFirefox, "Range", "bytes=10-29")...)
	}
	plain := func(pairs ...string) http.Header { return site.Headers(append(pairs, "Range", "bytes=10-29")...) }
	site.CheckAll(t, n.Site, []site.Case{
		{Name: "of the variant", Path: photo, Header: with(), WantStatus: 206, WantHeader: part(v), WantBody: v[10:30]},
		{Name: "of the original", Path: photo, Header: plain(), WantStatus: 206, WantHeader: part(o), WantBody: o[10:30]},
		{Name: "HEAD", Method: "HEAD", Path: photo, Header: with(), WantStatus: 206, WantHeader: part(v)},
		{Name: "going on with the variant", Path: photo, Header: with("If-Range", variant), WantStatus: 206, WantHeader: part(v), WantBody: v[10:30]},
		{Name: "going on with the original", Path: photo, Header: plain("If-Range", original), WantStatus: 206, WantHeader: part(o), WantBody: o[10:30]},
		{Name: "the variant after the original", Path: photo, Header: with("If-Range", original), WantStatus: 200, WantHeader: whole(v), WantBody: v},
		{Name: "the original after the variant", Path: photo, Header: plain("If-Range", variant), WantStatus: 200, WantHeader: whole(o), WantBody: o},
		{
			Name: "behind the end", Path: photo, Header: site.Headers("Accept", "image/webp", "Range", "bytes=9999999-"), WantStatus: 416,
			WantHeader: map[string]string{"Content-Range": fmt.Sprintf("bytes */%d", len(v)), "Vary": "Accept"},
		},
	})
}

// TestNotNegotiated: items without variants have no Vary header.
func TestNotNegotiated(t *testing.T) {
	n := negotiate(t, "media")
	svg := strings.TrimPrefix(n.UploadImage(t, site.File("a.svg", sample.SVG)).One(t).FullPath, n.URL)
	doc := strings.TrimPrefix(n.UploadFile(t, site.File("a.pdf", sample.PDF)).One(t).FullPath, n.URL)
	none := map[string]string{"Vary": ""}
	accept := site.Headers("Accept", acceptChrome)
	site.CheckAll(t, n.Site, []site.Case{
		{Name: "SVG", Path: svg, Header: accept, WantStatus: 200, WantBody: sample.SVG, WantHeader: none},
		{Name: "a file", Path: doc, Header: accept, WantStatus: 200, WantBody: sample.PDF, WantHeader: none},
		{Name: "the variant's own address", Path: photo + ".webp", WantStatus: 200, WantBody: n.variant.Body, WantHeader: none},
	})
	off := withVariants(t, "media")
	content := sample.JPEG(t, 8, 8)
	off.UploadImage(t, site.File("photo.jpg", content))
	site.CheckAll(t, off, []site.Case{{Name: "off", Path: photo, Header: accept, WantStatus: 200, WantBody: content, WantHeader: none}})
}

// TestNegotiatedFiles: the current files in the folder decide, not earlier ones.
func TestNegotiatedFiles(t *testing.T) {
	n := negotiate(t, "media")
	stored := filepath.Join(n.Root, "img/content/photo.jpg")
	variant := site.Case{Name: "both", Path: photo, Header: site.Headers("Accept", "image/webp"), WantStatus: 200, WantBody: n.variant.Body}
	original := variant
	original.WantBody, original.WantHeader = n.original.Body, map[string]string{"Content-Type": "image/jpeg", "Vary": "Accept"}
	variant.Check(t, n.Site)

	at := func(when time.Time) {
		if err := os.Chtimes(stored+".webp", when, when); err != nil {
			t.Fatal(err)
		}
	}
	at(time.Now().Add(-time.Hour)) // it is of an earlier picture
	original.Check(t, n.Site)
	at(time.Now().Add(time.Hour))
	variant.Check(t, n.Site)

	if err := os.Remove(stored + ".webp"); err != nil {
		t.Fatal(err)
	}
	original.Check(t, n.Site)

	if err := os.WriteFile(stored+".webp", []byte(n.variant.Body), 0o600); err != nil {
		t.Fatal(err)
	}
	variant.Check(t, n.Site)
	if err := os.Remove(stored); err != nil {
		t.Fatal(err)
	}
	for _, header := range []http.Header{nil, variant.Header} {
		site.Case{Path: photo, Header: header, WantStatus: 404}.Check(t, n.Site)
	}
}
