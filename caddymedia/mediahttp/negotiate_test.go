package mediahttp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging/imagingtest"
	"github.com/caddymedia/media/storagedrivers"
)

// The Accept headers of browsers for pictures, and Chrome's for a page.
const (
	acceptChrome  = "Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8\n"
	acceptFirefox = "Accept: image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5\n"
	acceptSafari  = "Accept: image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5\n"
	acceptPage    = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8\n"
	acceptOld     = "Accept: image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5\n"
)

const (
	photoKey  = "img/pictures/photo.jpg"
	photo     = "/static/" + photoKey
	original  = "the bytes of the photo"
	aVariant  = "the bytes of its variant"
	withRange = "Range: bytes=10-13\n"
)

// withPhoto is a site with a photo and its variant, whose tags are $ORIGINAL and $VARIANT, and with
// items that have no variants.
func withPhoto(t *testing.T) *site {
	t.Helper()
	s := aSite(t)
	s.vars = []string{"$ORIGINAL", s.put(t, photoKey, original).ETag, "$VARIANT", s.put(t, photoKey+".webp", aVariant).ETag}
	for _, key := range []string{"img/pictures/alone.jpg", "img/pictures/a.svg", "file/content/a.jpg", "img/content/a.jpg", "img/content/a.jpg.webp"} {
		s.put(t, key, original)
	}
	return s
}

// TestNegotiation: the Accept header decides which requests get the variant.
func TestNegotiation(t *testing.T) {
	t.Parallel()
	for accept, variant := range map[string]bool{
		"": false, "Accept:": false, acceptOld: false, acceptChrome: true, acceptFirefox: true, acceptSafari: true, acceptPage: true,
		"Accept: */*": false, "Accept: image/*": false, // sent by programs that do not support WebP
		"Accept: image/webp": true, "Accept: IMAGE/WebP": true, "Accept: image/webpx": false, "Accept: x-image/webp": false, "Accept: image": false,
		"Accept: image/webp;q=0": false, "Accept: image/webp;q=0.000, */*": false, "Accept: image/webp ; Q=0.0": false, "Accept: image/webp;q=0.5": true,
		"Accept: image/webp;q=0.5, image/jpeg": false, "Accept: image/jpeg;q=0.9,image/webp;q=0.8": false, "Accept: image/jpeg;q=0.8,image/webp;q=0.9": true,
		"Accept: image/png,image/webp;q=0.9": true, "Accept: text/html\nAccept: image/webp": true, "Accept: image/jpeg\nAccept: image/webp;q=0.1": false,
		"Accept: text/html,, ,image/webp": true,
	} {
		kind, tag, text := "image/jpeg", "$ORIGINAL", original
		if variant {
			kind, tag, text = "image/webp", "$VARIANT", aVariant
		}
		want := fmt.Sprintf("Content-Type: %s\nETag: %s\nContent-Length: %d\nVary: Accept\nCache-Control: %s", kind, tag, len(text), forever)
		httpCase{name: "GET " + accept, target: photo, header: accept, status: 200, want: want, text: text}.run(t, withPhoto)
		httpCase{name: "HEAD " + accept, method: http.MethodHead, target: photo, header: accept, status: 200, want: want}.run(t, withPhoto)
	}
}

// TestNegotiatedConditions: each representation has its own tag. A conditional request is compared
// with that of the negotiated one.
func TestNegotiatedConditions(t *testing.T) {
	t.Parallel()
	const vary = "Vary: Accept\nX-Content-Type-Options: nosniff"
	run(t, withPhoto, []httpCase{
		{name: "variant again", target: photo, header: acceptChrome + "If-None-Match: $VARIANT", status: 304, want: vary},
		{name: "variant again by HEAD", method: http.MethodHead, target: photo, header: acceptChrome + "If-None-Match: $VARIANT", status: 304, want: vary},
		{name: "variant after the original", target: photo, header: acceptChrome + "If-None-Match: $ORIGINAL", status: 200, want: vary, text: aVariant},
		{name: "variant after both", target: photo, header: acceptChrome + "If-None-Match: $ORIGINAL, $VARIANT", status: 304},
		{name: "original again", target: photo, header: "If-None-Match: $ORIGINAL", status: 304, want: vary},
		{name: "original after the variant", target: photo, header: "If-None-Match: $VARIANT", status: 200, want: vary, text: original},
		{name: "If-Match", target: photo, header: acceptChrome + "If-Match: $VARIANT", status: 200, text: aVariant},
		{name: "If-Match of the other", target: photo, header: acceptChrome + "If-Match: $ORIGINAL", status: 412},
	})
}

// TestNegotiatedRanges: a range is part of the negotiated representation.
func TestNegotiatedRanges(t *testing.T) {
	t.Parallel()
	part := func(of string) string {
		return fmt.Sprintf("Content-Range: bytes 10-13/%d\nContent-Length: 4\nVary: Accept", len(of))
	}
	whole := func(of string) string {
		return fmt.Sprintf("Content-Range\nContent-Length: %d\nVary: Accept", len(of))
	}
	accept := acceptFirefox + withRange
	run(t, withPhoto, []httpCase{
		{name: "variant", target: photo, header: accept, status: 206, want: part(aVariant), text: aVariant[10:14]},
		{name: "original", target: photo, header: withRange, status: 206, want: part(original), text: original[10:14]},
		{name: "HEAD", method: http.MethodHead, target: photo, header: accept, status: 206, want: part(aVariant)},
		{name: "rest of the variant", target: photo, header: accept + "If-Range: $VARIANT", status: 206, want: part(aVariant), text: aVariant[10:14]},
		{name: "rest of the original", target: photo, header: withRange + "If-Range: $ORIGINAL", status: 206, want: part(original), text: original[10:14]},
		{name: "variant after the original", target: photo, header: accept + "If-Range: $ORIGINAL", status: 200, want: whole(aVariant), text: aVariant},
		{name: "original after the variant", target: photo, header: withRange + "If-Range: $VARIANT", status: 200, want: whole(original), text: original},
		{
			name: "beyond the end", target: photo, header: acceptChrome + "Range: bytes=999-", status: 416,
			want: fmt.Sprintf("Content-Range: bytes */%d\nVary: Accept", len(aVariant)),
		},
	})
}

// TestNotNegotiated: items without variants have no Vary header, and those whose variant is missing
// are served themselves.
func TestNotNegotiated(t *testing.T) {
	t.Parallel()
	get := func(key, want, text string) httpCase {
		return httpCase{name: key, target: "/static/" + key, header: acceptChrome, status: 200, want: want, text: text}
	}
	run(t, withPhoto, []httpCase{
		get("img/pictures/a.svg", "Vary", original),
		get("file/content/a.jpg", "Vary\nContent-Type: image/jpeg", original),
		get("img/content/a.jpg", "Vary\nContent-Type: image/jpeg", original),
		get(photoKey+".webp", "Vary\nContent-Type: image/webp", aVariant),
		get("img/pictures/alone.jpg", "Vary: Accept\nContent-Type: image/jpeg", original),
		{name: "missing", target: "/static/img/pictures/none.jpg", header: acceptChrome, status: 404},
	})
	s := withPhoto(t)
	if err := s.driver.Delete(t.Context(), photoKey, storagedrivers.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, header := range []string{"", acceptChrome} {
		httpCase{target: photo, header: header, status: 404}.check(t, s)
	}
}

// TestNegotiatedHDR: an HDR photo is served itself, also one that was stored before.
func TestNegotiatedHDR(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	var plain bytes.Buffer
	if err := jpeg.Encode(&plain, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	hdr := string(imagingtest.Photo{Image: plain.Bytes(), GainMap: plain.Bytes(), Order: binary.BigEndian, ISO: true, Plain: true}.JPEG())
	s.put(t, "img/pictures/before.jpg", hdr)
	s.put(t, "img/pictures/before.jpg.webp", aVariant)
	s.put(t, "img/pictures/plain.jpg", plain.String())
	s.put(t, "img/pictures/plain.jpg.webp", aVariant)
	r := s.do(t, http.MethodPost, imagePath, multipart+bearer, form(field("alias", "pictures"), file("new.jpg", hdr)))
	if webp := r.items(t)[0].WebP; webp == "" {
		t.Errorf("no variant: %s", r.body)
	}
	for range 2 { // the second time it is known
		for name, want := range map[string][2]string{"before.jpg": {"image/jpeg", hdr}, "new.jpg": {"image/jpeg", hdr}, "plain.jpg": {"image/webp", aVariant}, "before.jpg.webp": {"image/webp", aVariant}} {
			vary := "\nVary: Accept"
			if strings.HasSuffix(name, ".webp") {
				vary = "\nVary"
			}
			httpCase{target: "/static/img/pictures/" + name, header: acceptChrome, status: 200, want: "Content-Type: " + want[0] + vary, text: want[1]}.check(t, s)
		}
		httpCase{target: "/static/img/pictures/before.jpg", header: acceptChrome + withRange, status: 206, want: "Content-Type: image/jpeg", text: hdr[10:14]}.check(t, s)
	}
	damaged := strings.Replace(hdr, imagingtest.ISO, strings.ToUpper(imagingtest.ISO), 1)
	s.put(t, "img/pictures/before.jpg", damaged)
	s.put(t, "img/pictures/before.jpg.webp", aVariant)
	httpCase{target: "/static/img/pictures/before.jpg", header: acceptChrome, status: 200, want: "Content-Type: image/webp", text: aVariant}.check(t, s)
}

// TestUploadNegotiated: the variant of an upload is served under both addresses, and is replaced by
// none that is older than the picture.
func TestUploadNegotiated(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	r := s.do(t, http.MethodPost, imagePath, multipart+bearer, form(field("alias", "pictures"), file("a.png", pngPicture), file("a.svg", svgPicture)))
	items := r.items(t)
	variant := s.do(t, http.MethodGet, strings.TrimPrefix(items[0].WebP, origin), "", "")
	if variant.status != http.StatusOK || !strings.HasPrefix(variant.body, "RIFF") || items[0].WebP != items[0].FullPath+".webp" || items[1].WebP != "" {
		t.Fatalf("%d %.20q: %s", variant.status, variant.body, r.body)
	}
	httpCase{target: "/static/img/pictures/a.png", header: acceptSafari, status: 200, want: "Content-Type: image/webp", text: variant.body}.check(t, s)
	httpCase{target: "/static/img/pictures/a.png", status: 200, want: "Content-Type: image/png", text: pngPicture}.check(t, s)
}
