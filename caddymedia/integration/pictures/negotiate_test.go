package pictures_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// The Accept headers of a browser that supports WebP, and of one that does not.
const (
	acceptChrome = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
	acceptOld    = "image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"
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

// TestNegotiatedCompressed: with encode around the service, an answer depends on two request
// headers.
func TestNegotiatedCompressed(t *testing.T) {
	n := negotiate(t, "encode gzip {\nminimum_length 1\nmatch header Content-Type image/*\n}\nmedia")
	for accept, want := range map[string]*site.Reply{"": n.original, "image/webp": n.variant} {
		r := n.Get(t, photo, "Accept", accept, "Accept-Encoding", "gzip")
		if r.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("it is not compressed: %v", r.Header)
		}
		var vary []string
		for _, line := range r.Header["Vary"] {
			for name := range strings.SplitSeq(line, ",") {
				vary = append(vary, strings.TrimSpace(name))
			}
		}
		slices.Sort(vary)
		if !slices.Equal(vary, []string{"Accept", "Accept-Encoding"}) {
			t.Errorf("Vary %q, want Accept and Accept-Encoding", vary)
		}
		unpack, err := gzip.NewReader(strings.NewReader(r.Body))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(unpack); err != nil || string(got) != want.Body {
			t.Errorf("Accept %q: %d bytes, want %d; %v", accept, len(got), len(want.Body), err)
		}
		if got := n.Get(t, photo, "Accept", accept, "Accept-Encoding", "gzip", "If-None-Match", r.Header.Get("ETag")); got.Status != http.StatusNotModified {
			t.Errorf("Accept %q: asking again: %d", accept, got.Status)
		}
	}
}

// TestNegotiationOverAllVersions: negotiation works over every version of HTTP.
func TestNegotiationOverAllVersions(t *testing.T) {
	s := site.StartConfig(t, site.Config{
		Media: site.Account + site.AtRoot + "}\nimage_alias content {\nwebp\nnegotiate on\n}", Site: "media", TLS: true,
	})
	one := s.UploadImage(t, site.File("photo.jpg", sample.EncodeJPEG(t, sample.Photo(200, 100), 80))).One(t)
	original, variant := s.Get(t, photo), fetchVariant(t, s, one)
	for version, client := range s.Clients(t) {
		for accept, want := range map[string]string{acceptChrome: variant, acceptOld: original.Body} {
			r := s.Send(t, client, s.Request(t, http.MethodGet, photo, site.Headers("Accept", accept), nil))
			if r.Proto != version || r.Status != http.StatusOK || r.Body != want || r.Header.Get("Vary") != "Accept" {
				t.Errorf("over %s %s, Accept %q: %d, %d bytes, want %d; %v", version, r.Proto, accept, r.Status, len(r.Body), len(want), r.Header)
			}
		}
	}
}
