package browser_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestBrowserPrivateItem: an alias is made private in its form, and its item is opened and copied
// by a signed address.
func TestBrowserPrivateItem(t *testing.T) {
	needsBrowser(t)
	p := site.StartPanel(t, site.Account+site.LocalDefault+"image_alias content {\nrendition small 320x320\n}\n")
	site.PutFile(t, filepath.Join(p.Root, "img", "content", "tree.jpg"), sample.JPEG(t, 640, 480))
	browse(t, "privateitem", panelFacts(p, nil))
}

// TestPrivateImages: with step, a browser that opens a page of private images again finds all of
// them in its cache, although their addresses are signed anew.
func TestPrivateImages(t *testing.T) {
	needsBrowser(t)
	const images = 100
	folder := site.TempFolder(t)
	s := site.StartConfig(t, site.Config{
		Media: site.Account + site.AtRoot + "}\nimage_alias photos {\nprivate {\nstep 1d\n}\n}\n",
		Site:  "log\nmedia\nroot * " + folder + "\ntemplates {\nextensions {\nmedia\n}\n}\nfile_server",
	})
	photo := site.File("photo.jpg", sample.JPEG(t, 40, 30))
	up := s.UploadImage(t, append(slices.Repeat([]site.Part{photo}, images), site.Field("alias", "photos"))...)
	if up.Status != http.StatusOK {
		t.Fatal(up)
	}
	page := "<!doctype html><html lang=\"en\"><title>A page</title><h1>A page</h1>\n"
	for _, item := range up.Result(t) {
		page += `<img alt="" src="{{image_url "photos" "` + item.Filename + "\" \"1h\"}}\">\n"
	}
	if err := os.WriteFile(filepath.Join(folder, "index.html"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	browse(t, "private", facts{Panel: s.URL + "/", More: map[string]int{"images": images}})
	s.Get(t, "/last-request")
	s.WaitForLog(t, "/last-request")
	log := s.Logged(t)
	if requested := strings.Count(log, `"uri":"/static/img/photos/`); requested != images {
		t.Errorf("the browser requested %d images, want each of %d once", requested, images)
	}
	if opened := strings.Count(log, `"uri":"/?again"`); opened != 1 {
		t.Errorf("the page was opened again %d times", opened)
	}
}
