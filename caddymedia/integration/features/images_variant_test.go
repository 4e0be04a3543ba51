package features_test

import (
	"compress/gzip"
	"image"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// The packages imaging, render and webp test checks and variants of every format. Package upload
// tests what is stored, package mediahttp what is served. The tests here show that an alias of a
// Caddyfile has all of it.

// withVariants starts a site whose images have variants, at the root of the alias. more are
// additional lines of the alias.
func withVariants(t *testing.T, block string, more ...string) *site.Site {
	t.Helper()
	return site.Start(t, site.Account+site.AtRoot+"}\nimage_alias content {\nwebp\n"+strings.Join(more, "\n")+"\n}", block)
}

// fetchVariant fetches the variant named in an answer, which must have exactly the documented address.
func fetchVariant(t *testing.T, s *site.Site, of site.Stored) string {
	t.Helper()
	if of.WebP != of.FullPath+".webp" {
		t.Fatalf("webp %q, want %q", of.WebP, of.FullPath+".webp")
	}
	r := s.Fetch(t, of.WebP)
	if r.Status != http.StatusOK {
		t.Fatalf("%s: %d", of.WebP, r.Status)
	}
	return r.Body
}

// countVariants returns how many variants of the alias content had a result, according to the metrics.
// The site must serve them as /metrics.
func countVariants(t *testing.T, s *site.Site, result string) int {
	t.Helper()
	r := s.Get(t, "/metrics")
	if r.Status != http.StatusOK {
		t.Fatalf("metrics: %d", r.Status)
	}
	found := regexp.MustCompile(`(?m)^caddy_media_variants_total\{alias="content",result="` + result + `"\} (\d+)$`).FindStringSubmatch(r.Body)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestVariants: images are stored without metadata, and those that can have a variant have one at
// the documented address. Every outcome is counted, and the log names the image without a variant.
func TestVariants(t *testing.T) {
	s := withVariants(t, "metrics /metrics\nmedia", "strip_metadata on", "negotiate on")
	noise := image.NewGray(image.Rect(0, 0, 64, 64))
	for i := range noise.Pix {
		noise.Pix[i] = uint8(rand.Uint32())
	}
	photo := sample.EncodeJPEG(t, sample.Quartered(60, 40), 90)
	const comment = "\xff\xfe\x00\x09comment"
	for _, c := range []struct{ name, content, stored, result string }{
		{"photo.jpg", photo[:2] + comment + photo[2:] + "<?php", photo, "made"},
		{"drawing.png", sample.EncodePNG(t, sample.Photo(300, 200)), "", "made"},
		{"moving.gif", sample.MovingGIF(t, 5), "", "larger"},
		{"noise.jpg", sample.EncodeJPEG(t, noise, 1), "", "larger"},
		{"wide.png", sample.PNG(t, 16_384, 2), "", "none"},
		{"drawing.svg", sample.SVG, "", ""}, // no variant is tried
	} {
		before := countVariants(t, s, c.result)
		answer := s.UploadImage(t, site.File(c.name, c.content))
		one := answer.One(t)
		if c.stored == "" {
			c.stored = c.content
		}
		if got := s.Fetch(t, one.FullPath); got.Body != c.stored {
			t.Errorf("%s: %d with %d bytes, want %d", c.name, got.Status, len(got.Body), len(c.stored))
		}
		if c.result != "" && countVariants(t, s, c.result) != before+1 {
			t.Errorf("%s is not counted as %q", c.name, c.result)
		}
		if c.result == "" || c.result == "none" {
			if r := s.Fetch(t, one.FullPath+".webp"); strings.Contains(answer.Body, `"webp"`) || r.Status != http.StatusNotFound {
				t.Errorf("%s has a variant: %d %s", c.name, r.Status, answer.Body)
			}
			continue
		}
		variant, want := fetchVariant(t, s, one), sample.Decode(t, c.content).Bounds()
		if f := sample.WebPFeatures(t, variant); f.Width != want.Dx() || f.Height != want.Dy() || strings.Contains(variant, "comment") {
			t.Errorf("the variant of %s is %+v, want one of %v without metadata", c.name, f, want)
		}
		if r := s.Do(t, http.MethodGet, "/static/img/content/"+c.name, site.Headers("Accept", "image/webp"), ""); r.Body != variant {
			t.Errorf("%s negotiated: %d, %d bytes", c.name, r.Status, len(r.Body))
		}
	}
	s.WaitForLog(t, "wide.png")
	if none := countVariants(t, s, "none"); none != 1 {
		t.Errorf("%d are counted as without a variant, want 1", none)
	}
	stored := len(site.Files(t, s.Root))
	got := s.UploadImage(t, site.File("1.jpg", photo), site.File("2.jpg", photo[:len(photo)/2])).Failures(t, http.StatusUnsupportedMediaType)
	if len(got) != 1 || got[0].Filename != "2.jpg" || len(site.Files(t, s.Root)) != stored {
		t.Errorf("errors %v, want one for the damaged image, and nothing stored", got)
	}
}

// TestNegotiatedCompressed: with encode around the service, an answer depends on two request
// headers.
func TestNegotiatedCompressed(t *testing.T) {
	s := withVariants(t, "encode gzip {\nminimum_length 1\nmatch header Content-Type image/*\n}\nmedia", "negotiate on")
	content := sample.EncodeJPEG(t, sample.Photo(200, 100), 80)
	one := s.UploadImage(t, site.File("photo.jpg", content)).One(t)
	path := strings.TrimPrefix(one.FullPath, s.URL)
	for accept, want := range map[string]string{"": content, "image/webp": fetchVariant(t, s, one)} {
		r := s.Get(t, path, "Accept", accept, "Accept-Encoding", "gzip")
		if r.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("it is not compressed: %v", r.Header)
		}
		vary := strings.Split(strings.ReplaceAll(strings.Join(r.Header["Vary"], ","), " ", ""), ",")
		slices.Sort(vary)
		if !slices.Equal(vary, []string{"Accept", "Accept-Encoding"}) {
			t.Errorf("Vary %q, want Accept and Accept-Encoding", vary)
		}
		unpack, err := gzip.NewReader(strings.NewReader(r.Body))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(unpack); err != nil || string(got) != want {
			t.Errorf("Accept %q: %d bytes, want %d; %v", accept, len(got), len(want), err)
		}
		if got := s.Get(t, path, "Accept", accept, "Accept-Encoding", "gzip", "If-None-Match", r.Header.Get("ETag")); got.Status != http.StatusNotModified {
			t.Errorf("Accept %q: asking again: %d", accept, got.Status)
		}
	}
}
