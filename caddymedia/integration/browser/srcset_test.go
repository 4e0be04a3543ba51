package browser_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestSrcset: of the renditions of an image, a browser picks the one that suits its window.
func TestSrcset(t *testing.T) {
	needsBrowser(t)
	folder := site.TempFolder(t)
	s := site.Start(t, site.Account+site.AtRoot+`}
image_alias content {
	webp
	negotiate on
	rendition small {
		width 320
	}
	rendition medium {
		width 640
		format webp
	}
	rendition large {
		width 1280
		eager on
	}
	rendition huge {
		width 4000
	}
}
`, "media\nroot * "+folder+"\ntemplates {\nextensions {\nmedia\n}\n}\nfile_server")
	up := s.UploadImage(t, site.Part{Name: "files[]", File: true, Filename: "photo.jpg", Content: sample.PhotoJPEG(1600, 1200)})
	if up.Status != http.StatusOK {
		t.Fatal(up)
	}
	const page = `<!doctype html><html lang="en"><title>A page</title><h1>A page</h1>
<img alt="A photograph" style="width: 100%" src="{{image_path "content"}}/photo.jpg" srcset="{{image_srcset "content" "photo.jpg"}}" sizes="calc(100vw - 16px)">`
	if err := os.WriteFile(filepath.Join(folder, "index.html"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	type window struct {
		Width  int    `json:"width"`
		Picked string `json:"picked"`
	}
	windows := []window{
		{300, "/static/img/content@small/photo.jpg"},
		{600, "/static/img/content@medium/photo.jpg"},
		{1200, "/static/img/content@large/photo.jpg"},
		{1900, "/static/img/content/photo.jpg"},
	}
	browse(t, "srcset", facts{Panel: s.URL + "/", More: windows})
}
