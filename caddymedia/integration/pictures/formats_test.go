package pictures_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestFormats: a configured format is stored under the extension of its content, without metadata
// and without a variant, and browsers may show it.
func TestFormats(t *testing.T) {
	s := withVariants(t, "media", "formats avif heic", "rename_mismatched on", "strip_metadata on")
	for _, c := range []struct{ submitted, stored, mediaType string }{
		{"turned.avif", "turned.avif", "image/avif"},
		{"photo.heic", "photo.heic", "image/heic"},
		{"thumbnail.jpg", "thumbnail.heic", "image/heic"},
	} {
		data, err := os.ReadFile(filepath.Join("../../internal/imaging/testdata", c.stored))
		if err != nil {
			t.Fatal(err)
		}
		answer := s.UploadImage(t, site.File(c.submitted, string(data)))
		one := answer.One(t)
		wantNoVariant(t, s, answer)
		r := s.Fetch(t, one.FullPath)
		if one.Filename != c.stored || r.Header.Get("Content-Type") != c.mediaType || r.Header.Get("Content-Disposition") != "" {
			t.Errorf("%s is stored as %s: %v", c.submitted, one.Filename, r.Header)
		}
		if len(r.Body) != len(data) || strings.Contains(r.Body, "GPS") {
			t.Errorf("%s: %d of %d bytes", c.submitted, len(r.Body), len(data))
		}
	}
}
