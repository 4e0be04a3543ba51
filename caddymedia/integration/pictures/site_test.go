package pictures_test

import (
	"bytes"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// withVariants starts a site whose pictures have variants, at the root of the alias. more are
// additional lines of the alias.
func withVariants(t *testing.T, block string, more ...string) *site.Site {
	t.Helper()
	return site.Start(t, site.Account+site.AtRoot+"}\nfile_alias content\nimage_alias content {\nwebp\n"+strings.Join(more, "\n")+"\n}", block)
}

// fetchVariant fetches the variant named in an answer, which must have exactly the documented address.
func fetchVariant(t *testing.T, s *site.Site, of site.Stored) string {
	t.Helper()
	if of.WebP != of.FullPath+".webp" {
		t.Fatalf("webp %q, want %q", of.WebP, of.FullPath+".webp")
	}
	r := s.Fetch(t, of.WebP)
	if r.Status != 200 {
		t.Fatalf("%s: %d", of.WebP, r.Status)
	}
	return r.Body
}

// wantNoVariant expects an answer without `webp`, and no item at the variant's address.
func wantNoVariant(t *testing.T, s *site.Site, answer *site.Reply) {
	t.Helper()
	one := answer.One(t)
	if strings.Contains(answer.Body, `"webp"`) {
		t.Errorf("there is a variant in the answer %s", answer.Body)
	}
	if r := s.Fetch(t, one.FullPath+".webp"); r.Status != 404 {
		t.Errorf("the address of a variant answers %d", r.Status)
	}
}

// countVariants returns how many variants of the alias content had a result, according to the metrics.
// The site must serve them as /metrics.
func countVariants(t *testing.T, s *site.Site, result string) int {
	t.Helper()
	r := s.Get(t, "/metrics")
	if r.Status != 200 {
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

// wantQuarters expects a picture of this size with these colours in its quarters.
func wantQuarters(t *testing.T, m image.Image, width, height int, want [4]color.NRGBA) {
	t.Helper()
	size := m.Bounds()
	if size.Dx() != width || size.Dy() != height {
		t.Errorf("it is %dx%d, want %dx%d", size.Dx(), size.Dy(), width, height)
	}
	for i, c := range want {
		x := size.Min.X + size.Dx()*(1+2*(i%2))/4
		y := size.Min.Y + size.Dy()*(1+2*(i/2))/4
		if !near(m.At(x, y), c) {
			t.Errorf("at %d,%d it is %v, want %v", x, y, m.At(x, y), c)
		}
	}
}

func near(a, b color.Color) bool {
	const much = 24 << 8
	ar, ag, ab, aa := a.RGBA()
	br, bg, bb, ba := b.RGBA()
	for _, d := range []int{int(ar) - int(br), int(ag) - int(bg), int(ab) - int(bb), int(aa) - int(ba)} {
		if d < -much || d > much {
			return false
		}
	}
	return true
}

// corpus returns the pictures in a folder of MEDIA_TEST_CORPUS, or none if that is unset.
func corpus(t *testing.T, folder string) map[string]string {
	t.Helper()
	root := os.Getenv("MEDIA_TEST_CORPUS")
	if root == "" {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(root, folder))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, entry := range entries {
		b, err := os.ReadFile(filepath.Join(root, folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[entry.Name()] = string(b)
	}
	return found
}

// samePixels decodes two files with one decoder and compares the pixels.
func samePixels(t *testing.T, a, b string) bool {
	t.Helper()
	var pixels [2][]byte
	for i, file := range []string{a, b} {
		m := sample.Decode(t, file)
		size := m.Bounds()
		for y := size.Min.Y; y < size.Max.Y; y++ {
			for x := size.Min.X; x < size.Max.X; x++ {
				r, g, b, a := m.At(x, y).RGBA()
				pixels[i] = append(pixels[i], byte(r>>8), byte(r), byte(g>>8), byte(g), byte(b>>8), byte(b), byte(a>>8), byte(a))
			}
		}
	}
	return bytes.Equal(pixels[0], pixels[1])
}
