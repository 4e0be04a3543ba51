package serve_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
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
	s.Vars = []string{"$ORIGINAL", s.Put(t, photoKey, original).ETag, "$VARIANT", s.Put(t, photoKey+".webp", aVariant).ETag}
	for _, key := range []string{"img/pictures/alone.jpg", "img/pictures/a.svg", "file/content/a.jpg", "img/content/a.jpg", "img/content/a.jpg.webp"} {
		s.Put(t, key, original)
	}
	return s
}

// TestNegotiation: the Accept header decides which requests get the variant.
func TestNegotiation(t *testing.T) {
	t.Parallel()
	s := withPhoto(t)
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
		httpCase{Target: photo, Header: accept, Status: 200, Want: want, Text: text}.Check(t, s)
		httpCase{Method: http.MethodHead, Target: photo, Header: accept, Status: 200, Want: want}.Check(t, s)
	}
}

// TestNegotiatedConditions: each representation has its own tag. A conditional request is compared
// with that of the negotiated one.
func TestNegotiatedConditions(t *testing.T) {
	t.Parallel()
	const vary = "Vary: Accept\nX-Content-Type-Options: nosniff"
	run(t, withPhoto, []httpCase{
		{Name: "variant again", Target: photo, Header: acceptChrome + "If-None-Match: $VARIANT", Status: 304, Want: vary},
		{Name: "variant after the original", Target: photo, Header: acceptChrome + "If-None-Match: $ORIGINAL", Status: 200, Want: vary, Text: aVariant},
		{Name: "original again", Target: photo, Header: "If-None-Match: $ORIGINAL", Status: 304, Want: vary},
		{Name: "original after the variant", Target: photo, Header: "If-None-Match: $VARIANT", Status: 200, Want: vary, Text: original},
		{Name: "If-Match of the other", Target: photo, Header: acceptChrome + "If-Match: $ORIGINAL", Status: 412},
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
		{Name: "variant", Target: photo, Header: accept, Status: 206, Want: part(aVariant), Text: aVariant[10:14]},
		{Name: "original", Target: photo, Header: withRange, Status: 206, Want: part(original), Text: original[10:14]},
		{Name: "rest of the variant", Target: photo, Header: accept + "If-Range: $VARIANT", Status: 206, Want: part(aVariant), Text: aVariant[10:14]},
		{Name: "variant after the original", Target: photo, Header: accept + "If-Range: $ORIGINAL", Status: 200, Want: whole(aVariant), Text: aVariant},
		{
			Name: "beyond the end", Target: photo, Header: acceptChrome + "Range: bytes=999-", Status: 416,
			Want: fmt.Sprintf("Content-Range: bytes */%d\nVary: Accept", len(aVariant)),
		},
	})
}

// TestNotNegotiated: items without variants have no Vary header, and those whose variant is missing
// are served themselves.
func TestNotNegotiated(t *testing.T) {
	t.Parallel()
	get := func(key, want, text string) httpCase {
		return httpCase{Name: key, Target: "/static/" + key, Header: acceptChrome, Status: 200, Want: want, Text: text}
	}
	run(t, withPhoto, []httpCase{
		get("img/pictures/a.svg", "Vary", original),
		get("file/content/a.jpg", "Vary\nContent-Type: image/jpeg", original),
		get("img/content/a.jpg", "Vary\nContent-Type: image/jpeg", original),
		get(photoKey+".webp", "Vary\nContent-Type: image/webp", aVariant),
		get("img/pictures/alone.jpg", "Vary: Accept\nContent-Type: image/jpeg", original),
		{Name: "missing", Target: "/static/img/pictures/none.jpg", Header: acceptChrome, Status: 404, Want: "Vary: Accept\nCache-Control: no-store"},
	})
	s := withPhoto(t)
	if err := s.Driver.Delete(t.Context(), photoKey, storagedrivers.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, header := range []string{"", acceptChrome} {
		httpCase{Target: photo, Header: header, Status: 404, Want: "Vary: Accept"}.Check(t, s)
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
	s.Put(t, "img/pictures/before.jpg", hdr)
	s.Put(t, "img/pictures/before.jpg.webp", aVariant)
	s.Put(t, "img/pictures/plain.jpg", plain.String())
	s.Put(t, "img/pictures/plain.jpg.webp", aVariant)
	r := s.Do(t, http.MethodPost, imagePath, multipart+bearer, form(field("alias", "pictures"), file("new.jpg", hdr)))
	if webp := r.Items(t)[0].WebP; webp == "" {
		t.Errorf("no variant: %s", r.Body)
	}
	for range 2 { // the second time it is known
		for name, want := range map[string][2]string{"before.jpg": {"image/jpeg", hdr}, "new.jpg": {"image/jpeg", hdr}, "plain.jpg": {"image/webp", aVariant}, "before.jpg.webp": {"image/webp", aVariant}} {
			vary := "\nVary: Accept"
			if strings.HasSuffix(name, ".webp") {
				vary = "\nVary"
			}
			httpCase{Target: "/static/img/pictures/" + name, Header: acceptChrome, Status: 200, Want: "Content-Type: " + want[0] + vary, Text: want[1]}.Check(t, s)
		}
		httpCase{Target: "/static/img/pictures/before.jpg", Header: acceptChrome + withRange, Status: 206, Want: "Content-Type: image/jpeg", Text: hdr[10:14]}.Check(t, s)
	}
	damaged := strings.Replace(hdr, imagingtest.ISO, strings.ToUpper(imagingtest.ISO), 1)
	s.Put(t, "img/pictures/before.jpg", damaged)
	s.Put(t, "img/pictures/before.jpg.webp", aVariant)
	httpCase{Target: "/static/img/pictures/before.jpg", Header: acceptChrome, Status: 200, Want: "Content-Type: image/webp", Text: aVariant}.Check(t, s)
}

// TestUploadNegotiated: the variant of an upload is served under both addresses, and is replaced by
// none that is older than the picture.
func TestUploadNegotiated(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	r := s.Do(t, http.MethodPost, imagePath, multipart+bearer, form(field("alias", "pictures"), file("a.png", pngPicture), file("a.svg", svgPicture)))
	items := r.Items(t)
	variant := s.Do(t, http.MethodGet, strings.TrimPrefix(items[0].WebP, origin), "", "")
	if variant.Status != http.StatusOK || !strings.HasPrefix(variant.Body, "RIFF") || items[0].WebP != items[0].FullPath+".webp" || items[1].WebP != "" {
		t.Fatalf("%d %.20q: %s", variant.Status, variant.Body, r.Body)
	}
	httpCase{Target: "/static/img/pictures/a.png", Header: acceptSafari, Status: 200, Want: "Content-Type: image/webp", Text: variant.Body}.Check(t, s)
	httpCase{Target: "/static/img/pictures/a.png", Status: 200, Want: "Content-Type: image/png", Text: pngPicture}.Check(t, s)
}
