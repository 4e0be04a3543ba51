package integration

import (
	"image"
	"image/color"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// turnedAround returns a picture upside down and mirrored, with the colours of its quarters.
func turnedAround(m *image.NRGBA) (*image.NRGBA, [4]color.NRGBA) {
	out := image.NewNRGBA(m.Rect)
	for i := 0; i < len(m.Pix); i += 4 {
		*(*[4]byte)(out.Pix[len(m.Pix)-4-i:]) = [4]byte(m.Pix[i:])
	}
	return out, [4]color.NRGBA{quarters[3], quarters[2], quarters[1], quarters[0]}
}

// TestVariantNames: the address of a variant is that of its picture with `.webp` appended, for any
// name and folder.
func TestVariantNames(t *testing.T) {
	s := startSite(t, account+atRoot+"sanitize off\n}\nimage_alias content {\nwebp\n}", "media")
	content := jpegOf(t, 8, 8)
	for _, name := range []string{
		"plain.jpg", "two words.jpg", "Ěščř ČŘ.JPG", "100%.jpg", "a#b?c&d+e.jpeg", "写真.jpg", "x.webp.jpg", "%2e.jpg",
	} {
		for _, folder := range []string{"/", "sub folder/žluť"} {
			one := s.uploadImage(t, field("sub_folder", folder), file(name, content)).one(t)
			webpChunks(t, s.variant(t, one))
			if got := s.fetch(t, one.FullPath); got.body != content {
				t.Errorf("%s in %s: got back other bytes", name, folder)
			}
			stored := filepath.Join(s.root, "img/content", one.Filename)
			if !exists(stored) || !exists(stored+".webp") {
				t.Errorf("%s in %s: the picture and its variant are not side by side", name, folder)
			}
		}
	}
}

// TestVariantsInOrder: several pictures in one request, with and without variants.
func TestVariantsInOrder(t *testing.T) {
	s := withVariants(t, "media")
	result := s.uploadImage(t,
		field("sub_folder", "a/b"), file("1.png", pngOf(t, 30, 10)), file("2.svg", svgPicture), file("3.gif", gifOf(t)),
		file("4.png", pngOf(t, 16_384, 1)), file("5.jpg", asJPEG(t, photograph(300, 300), 80)), file("6.png", pngOf(t, 6, 6)),
	).result(t)
	want := []struct {
		name          string
		width, height int
	}{{"1.png", 30, 10}, {"2.svg", 0, 0}, {"3.gif", 4, 3}, {"4.png", 0, 0}, {"5.jpg", 300, 300}, {"6.png", 6, 6}}
	if len(result) != len(want) {
		t.Fatalf("%d results, want %d", len(result), len(want))
	}
	for i, w := range want {
		one := result[i]
		if one.Filename != "a/b/"+w.name {
			t.Errorf("position %d has %s, want %s", i, one.Filename, w.name)
		}
		if w.width == 0 {
			if one.WebP != "" {
				t.Errorf("%s has the variant %s", w.name, one.WebP)
			}
			continue
		}
		if f := webpFeatures(t, s.variant(t, one)); f.Width != w.width || f.Height != w.height {
			t.Errorf("%s: the variant is %dx%d, want %dx%d", w.name, f.Width, f.Height, w.width, w.height)
		}
	}
}

// TestVariantsAllOrNothing: if one picture is damaged, none of the others is stored.
func TestVariantsAllOrNothing(t *testing.T) {
	s := withVariants(t, "media")
	good := asPNG(t, photograph(200, 200))
	got := s.uploadImage(t, file("1.png", good), file("2.png", good[:len(good)/2]), file("3.png", good)).
		failures(t, http.StatusUnsupportedMediaType)
	if len(got) != 1 || got[0].Filename != "2.png" {
		t.Errorf("errors %v, want one for 2.png", got)
	}
	s.wantNothing(t)
}

// TestVariantAppendTime: if the name exists, the time is added to the name of the picture and of
// its variant.
func TestVariantAppendTime(t *testing.T) {
	s := withVariants(t, "media")
	other, otherQuarters := turnedAround(quartered(60, 40))
	first := s.uploadImage(t, file("a.jpg", asJPEG(t, quartered(60, 40), 90))).one(t)
	second := s.uploadImage(t, file("a.jpg", asJPEG(t, other, 90))).one(t)
	if !regexp.MustCompile(`/a-\d{10}\.jpg\.webp$`).MatchString(second.WebP) {
		t.Errorf("the second is %s", second.WebP)
	}
	wantQuarters(t, decodedWebP(t, s.variant(t, first)), 60, 40, quarters)
	wantQuarters(t, decodedWebP(t, s.variant(t, second)), 60, 40, otherQuarters)
}

// TestVariantOverwrite: replacing a picture replaces its variant.
func TestVariantOverwrite(t *testing.T) {
	s := startSite(t, account+atRoot+"overwrite_strategy overwrite\n}\nimage_alias content {\nwebp\n}", "media")
	other, otherQuarters := turnedAround(quartered(60, 40))
	path := "/static/img/content/a.png.webp"
	wantQuarters(t, decodedWebP(t, s.variant(t, s.uploadImage(t, file("a.png", asPNG(t, quartered(60, 40)))).one(t))), 60, 40, quarters)
	before := s.get(t, path)
	if got := before.header.Get("Cache-Control"); got != "public, no-cache" {
		t.Errorf("Cache-Control %q", got)
	}
	wantQuarters(t, decodedWebP(t, s.variant(t, s.uploadImage(t, file("a.png", asPNG(t, other))).one(t))), 60, 40, otherQuarters)
	if after := s.get(t, path, "If-None-Match", before.header.Get("ETag")); after.status != http.StatusOK {
		t.Errorf("the old variant still exists: %d", after.status)
	}
	damaged := asPNG(t, quartered(60, 40))
	s.uploadImage(t, file("a.png", damaged[:len(damaged)-20])).failures(t, http.StatusUnsupportedMediaType)
	wantQuarters(t, decodedWebP(t, s.get(t, path).body), 60, 40, otherQuarters)
	s.wantNoVariant(t, s.uploadImage(t, file("a.png", pngOf(t, 16_384, 1)))) // which can have none
	if names := files(t, filepath.Join(s.root, "img")); len(names) != 1 {
		t.Errorf("%d files are stored, want the picture alone", len(names))
	}
}

// TestVariantOverwriteWithoutWebP: an alias that no longer makes variants removes the variant of a
// picture when the picture is replaced.
func TestVariantOverwriteWithoutWebP(t *testing.T) {
	media := account + atRoot + "overwrite_strategy overwrite\n}\nimage_alias content {\nwebp\n}"
	s := startSite(t, media, "media")
	s.variant(t, s.uploadImage(t, file("a.png", pngOf(t, 8, 8))).one(t))
	s.load(t, siteConfig{Media: strings.Replace(media, "\nwebp\n", "\n", 1), Site: "media"})
	s.wantNoVariant(t, s.uploadImage(t, file("a.png", pngOf(t, 9, 9))))
	if left, err := os.ReadDir(filepath.Join(s.root, "img/content")); err != nil || len(left) != 1 {
		t.Errorf("remaining in the folder: %v %v", left, err)
	}
}
