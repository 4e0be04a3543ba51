package pictures_test

import (
	"image"
	"image/color"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// turnedAround returns a picture upside down and mirrored, with the colours of its quarters.
func turnedAround(m *image.NRGBA) (*image.NRGBA, [4]color.NRGBA) {
	out := image.NewNRGBA(m.Rect)
	for i := 0; i < len(m.Pix); i += 4 {
		*(*[4]byte)(out.Pix[len(m.Pix)-4-i:]) = [4]byte(m.Pix[i:])
	}
	return out, [4]color.NRGBA{sample.Quarters[3], sample.Quarters[2], sample.Quarters[1], sample.Quarters[0]}
}

// TestVariantNames: the address of a variant is that of its picture with `.webp` appended, for any
// name and folder.
func TestVariantNames(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"sanitize off\n}\nimage_alias content {\nwebp\n}", "media")
	content := sample.JPEG(t, 8, 8)
	for _, name := range []string{
		"plain.jpg", "two words.jpg", "Ěščř ČŘ.JPG", "100%.jpg", "a#b?c&d+e.jpeg", "写真.jpg", "x.webp.jpg", "%2e.jpg",
	} {
		for _, folder := range []string{"/", "sub folder/žluť"} {
			one := s.UploadImage(t, site.Field("sub_folder", folder), site.File(name, content)).One(t)
			sample.WebPChunks(t, fetchVariant(t, s, one))
			if got := s.Fetch(t, one.FullPath); got.Body != content {
				t.Errorf("%s in %s: got back other bytes", name, folder)
			}
			stored := filepath.Join(s.Root, "img/content", one.Filename)
			if !site.Exists(stored) || !site.Exists(stored+".webp") {
				t.Errorf("%s in %s: the picture and its variant are not side by side", name, folder)
			}
		}
	}
}

// TestVariantsInOrder: several pictures in one request, with and without variants.
func TestVariantsInOrder(t *testing.T) {
	s := withVariants(t, "media")
	result := s.UploadImage(t,
		site.Field("sub_folder", "a/b"), site.File("1.png", sample.PNG(t, 30, 10)), site.File("2.svg", sample.SVG), site.File("3.gif", sample.GIF(t)),
		site.File("4.png", sample.PNG(t, 16_384, 1)), site.File("5.jpg", sample.EncodeJPEG(t, sample.Photo(300, 300), 80)), site.File("6.png", sample.PNG(t, 6, 6)),
	).Result(t)
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
		if f := sample.WebPFeatures(t, fetchVariant(t, s, one)); f.Width != w.width || f.Height != w.height {
			t.Errorf("%s: the variant is %dx%d, want %dx%d", w.name, f.Width, f.Height, w.width, w.height)
		}
	}
}

// TestVariantsAllOrNothing: if one picture is damaged, none of the others is stored.
func TestVariantsAllOrNothing(t *testing.T) {
	s := withVariants(t, "media")
	good := sample.EncodePNG(t, sample.Photo(200, 200))
	got := s.UploadImage(t, site.File("1.png", good), site.File("2.png", good[:len(good)/2]), site.File("3.png", good)).
		Failures(t, http.StatusUnsupportedMediaType)
	if len(got) != 1 || got[0].Filename != "2.png" {
		t.Errorf("errors %v, want one for 2.png", got)
	}
	s.WantNothing(t)
}

// TestVariantAppendTime: if the name exists, the time is added to the name of the picture and of
// its variant.
func TestVariantAppendTime(t *testing.T) {
	s := withVariants(t, "media")
	other, otherQuarters := turnedAround(sample.Quartered(60, 40))
	first := s.UploadImage(t, site.File("a.jpg", sample.EncodeJPEG(t, sample.Quartered(60, 40), 90))).One(t)
	second := s.UploadImage(t, site.File("a.jpg", sample.EncodeJPEG(t, other, 90))).One(t)
	if !regexp.MustCompile(`/a-\d{10}\.jpg\.webp$`).MatchString(second.WebP) {
		t.Errorf("the second is %s", second.WebP)
	}
	wantQuarters(t, sample.DecodeWebP(t, fetchVariant(t, s, first)), 60, 40, sample.Quarters)
	wantQuarters(t, sample.DecodeWebP(t, fetchVariant(t, s, second)), 60, 40, otherQuarters)
}

// TestVariantOverwrite: replacing a picture replaces its variant.
func TestVariantOverwrite(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"overwrite_strategy overwrite\n}\nimage_alias content {\nwebp\n}", "media")
	other, otherQuarters := turnedAround(sample.Quartered(60, 40))
	path := "/static/img/content/a.png.webp"
	wantQuarters(t, sample.DecodeWebP(t, fetchVariant(t, s, s.UploadImage(t, site.File("a.png", sample.EncodePNG(t, sample.Quartered(60, 40)))).One(t))), 60, 40, sample.Quarters)
	before := s.Get(t, path)
	if got := before.Header.Get("Cache-Control"); got != "public, no-cache" {
		t.Errorf("Cache-Control %q", got)
	}
	wantQuarters(t, sample.DecodeWebP(t, fetchVariant(t, s, s.UploadImage(t, site.File("a.png", sample.EncodePNG(t, other))).One(t))), 60, 40, otherQuarters)
	if after := s.Get(t, path, "If-None-Match", before.Header.Get("ETag")); after.Status != http.StatusOK {
		t.Errorf("the old variant still exists: %d", after.Status)
	}
	damaged := sample.EncodePNG(t, sample.Quartered(60, 40))
	s.UploadImage(t, site.File("a.png", damaged[:len(damaged)-20])).Failures(t, http.StatusUnsupportedMediaType)
	wantQuarters(t, sample.DecodeWebP(t, s.Get(t, path).Body), 60, 40, otherQuarters)
	wantNoVariant(t, s, s.UploadImage(t, site.File("a.png", sample.PNG(t, 16_384, 1)))) // which can have none
	if names := site.Files(t, filepath.Join(s.Root, "img")); len(names) != 1 {
		t.Errorf("%d files are stored, want the picture alone", len(names))
	}
}

// TestVariantOverwriteWithoutWebP: an alias that no longer makes variants removes the variant of a
// picture when the picture is replaced.
func TestVariantOverwriteWithoutWebP(t *testing.T) {
	media := site.Account + site.AtRoot + "overwrite_strategy overwrite\n}\nimage_alias content {\nwebp\n}"
	s := site.Start(t, media, "media")
	fetchVariant(t, s, s.UploadImage(t, site.File("a.png", sample.PNG(t, 8, 8))).One(t))
	s.Load(t, site.Config{Media: strings.Replace(media, "\nwebp\n", "\n", 1), Site: "media"})
	wantNoVariant(t, s, s.UploadImage(t, site.File("a.png", sample.PNG(t, 9, 9))))
	if left, err := os.ReadDir(filepath.Join(s.Root, "img/content")); err != nil || len(left) != 1 {
		t.Errorf("remaining in the folder: %v %v", left, err)
	}
}
