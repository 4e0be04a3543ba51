package integration

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestNegotiatedCompressed: with encode around the service, an answer depends on two request
// headers.
func TestNegotiatedCompressed(t *testing.T) {
	n := negotiate(t, "encode gzip {\nminimum_length 1\nmatch header Content-Type image/*\n}\nmedia")
	for accept, want := range map[string]*reply{"": n.original, "image/webp": n.variant} {
		r := n.get(t, photo, "Accept", accept, "Accept-Encoding", "gzip")
		if r.header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("it is not compressed: %v", r.header)
		}
		var vary []string
		for _, line := range r.header["Vary"] {
			for name := range strings.SplitSeq(line, ",") {
				vary = append(vary, strings.TrimSpace(name))
			}
		}
		slices.Sort(vary)
		if !slices.Equal(vary, []string{"Accept", "Accept-Encoding"}) {
			t.Errorf("Vary %q, want Accept and Accept-Encoding", vary)
		}
		unpack, err := gzip.NewReader(strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(unpack); err != nil || string(got) != want.body {
			t.Errorf("Accept %q: %d bytes, want %d; %v", accept, len(got), len(want.body), err)
		}
		if got := n.get(t, photo, "Accept", accept, "Accept-Encoding", "gzip", "If-None-Match", r.header.Get("ETag")); got.status != http.StatusNotModified {
			t.Errorf("Accept %q: asking again: %d", accept, got.status)
		}
	}
}

// TestNegotiationOverAllVersions: negotiation works over every version of HTTP.
func TestNegotiationOverAllVersions(t *testing.T) {
	s := startSiteConfig(t, siteConfig{
		Media: account + atRoot + "}\nimage_alias content {\nwebp\nnegotiate on\n}", Site: "media", TLS: true,
	})
	one := s.uploadImage(t, file("photo.jpg", asJPEG(t, photograph(200, 100), 80))).one(t)
	original, variant := s.get(t, photo), s.variant(t, one)
	for version, client := range s.clients(t) {
		for accept, want := range map[string]string{acceptChrome: variant, acceptOld: original.body} {
			r := s.send(t, client, s.request(t, http.MethodGet, photo, headers("Accept", accept), nil))
			if r.proto != version || r.status != http.StatusOK || r.body != want || r.header.Get("Vary") != "Accept" {
				t.Errorf("over %s %s, Accept %q: %d, %d bytes, want %d; %v", version, r.proto, accept, r.status, len(r.body), len(want), r.header)
			}
		}
	}
}

// TestNegotiateNeedsVariants: a configuration that negotiates without making variants is refused.
func TestNegotiateNeedsVariants(t *testing.T) {
	s := startSite(t, basic, "media")
	for name, alias := range map[string]string{"alone": "negotiate on", "with others": "strip_metadata on\nnegotiate on"} {
		err := s.tryLoad(t, siteConfig{Media: account + localDefault + "image_alias other {\n" + alias + "\n}", Site: "media"})
		if err == nil || !strings.Contains(err.Error(), "negotiate") || !strings.Contains(err.Error(), "webp") || !strings.Contains(err.Error(), "other") {
			t.Errorf("%s: error %v, want one that names negotiate, webp and the alias", name, err)
		}
	}
	s.uploadImage(t, file("a.jpg", jpegOf(t, 4, 4))).one(t) // the old one continues
}
