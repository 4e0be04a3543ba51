package pictures_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestVariantOfManyWriters: many writers replace one picture at the same time, also with pictures
// without a variant. The last picture has its own variant, or none.
func TestVariantOfManyWriters(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"overwrite_strategy overwrite\n}\nimage_alias content {\nwebp\n}", "media")
	header := site.Merged(s.Credentials(t), site.FormType)
	const writers = 8
	var bodies [writers]string
	for i := range bodies {
		content := sample.EncodePNG(t, sample.Photo(100+i*30, 50))
		if i == 0 {
			content = sample.PNG(t, 16_384, 1)
		}
		bodies[i] = site.Form(site.File("a.png", content))
	}
	stored := filepath.Join(s.Root, "img/content")
	for round := range 10 {
		var all sync.WaitGroup
		for _, body := range bodies {
			all.Go(func() {
				r, err := s.Client.Do(s.Request(t, http.MethodPost, "/api/upload/image", header, strings.NewReader(body)))
				if err != nil {
					t.Error(err)
					return
				}
				defer r.Body.Close()
				if r.StatusCode != http.StatusOK {
					t.Errorf("an upload is answered with %d", r.StatusCode)
				}
			})
		}
		all.Wait()
		found := site.Files(t, stored)
		width := sample.Decode(t, string(found["a.png"])).Bounds().Dx()
		variant, has := found["a.png.webp"]
		switch {
		case width > 16_383 && has:
			t.Errorf("round %d: a picture that can have no variant has one", round)
		case width <= 16_383 && !has:
			t.Errorf("round %d: the picture %d pixels wide has no variant", round, width)
		case has && sample.WebPFeatures(t, string(variant)).Width != width:
			t.Errorf("round %d: the variant is %d pixels wide, its picture %d", round, sample.WebPFeatures(t, string(variant)).Width, width)
		}
		delete(found, "a.png")
		delete(found, "a.png.webp")
		for name := range found {
			t.Errorf("round %d: %s remains", round, name)
		}
	}
}

// TestVariantsOfOneName: many writers add pictures of one name at the same time. Each picture has
// its own variant.
func TestVariantsOfOneName(t *testing.T) {
	s := withVariants(t, "media")
	header := site.Merged(s.Credentials(t), site.FormType)
	var all sync.WaitGroup
	for i := range 12 {
		body := site.Form(site.File("a.png", sample.EncodePNG(t, sample.Photo(100+i, 50))))
		all.Go(func() {
			r, err := s.Client.Do(s.Request(t, http.MethodPost, "/api/upload/image", header, strings.NewReader(body)))
			if err != nil {
				t.Error(err)
				return
			}
			r.Body.Close()
		})
	}
	all.Wait()
	found := site.Files(t, filepath.Join(s.Root, "img/content"))
	widths := map[int]bool{}
	for name, content := range found {
		if strings.HasSuffix(name, ".webp") {
			continue
		}
		width := sample.Decode(t, string(content)).Bounds().Dx()
		widths[width] = true
		if got := sample.WebPFeatures(t, string(found[name+".webp"])).Width; got != width {
			t.Errorf("%s is %d pixels wide, its variant %d", name, width, got)
		}
	}
	if len(found) != 24 || len(widths) != 12 {
		t.Errorf("%d files of %d pictures are stored, want 24 of 12", len(found), len(widths))
	}
}
