package features_test

import (
	"encoding/json"
	"image"
	_ "image/jpeg"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestPanelThumbnails: a list shows an image by its thumbnail, which is stored and swept, and an item has
// the addresses of its renditions.
func TestPanelThumbnails(t *testing.T) {
	p := site.StartPanel(t, site.Account+site.LocalDefault+`image_alias content {
		rendition tiny 10x10
		rendition small 200x200
		rendition large 400x400
	}
	`)
	stored := p.UploadImage(t, site.File("a.jpg", sample.JPEG(t, 640, 480))).One(t)
	for query, width := range map[string]int{"?thumbnail=1": 320, "": 640} {
		r := p.Must(t, http.StatusOK, http.MethodGet, "preview/img/content/"+stored.Filename+query, nil)
		decoded, _, err := image.DecodeConfig(strings.NewReader(r.Body))
		if err != nil || decoded.Width != width || !strings.HasPrefix(r.Header.Get("Cache-Control"), "private") {
			t.Errorf("%q: %+v, error %v, want a width of %d", query, decoded, err, width)
		}
	}
	if thumbnails, err := filepath.Glob(filepath.Join(p.Root, "img", "content@renditions", "*", "*", "*", "a.jpg", "@thumbnail.*")); len(thumbnails) != 1 || err != nil {
		t.Errorf("stored are %q, %v", thumbnails, err)
	}
	drawing := p.UploadImage(t, site.File("d.svg", `<svg xmlns="http://www.w3.org/2000/svg"/>`)).One(t)
	p.Must(t, http.StatusOK, http.MethodGet, "preview/img/content/"+drawing.Filename+"?thumbnail=1", nil)
	item := p.Must(t, http.StatusOK, http.MethodGet, "items/img/content/"+stored.Filename, nil)
	for _, name := range []string{"tiny", "small", "large"} {
		if want := `"` + name + `":"` + p.URL + `/static/img/content@` + name + "/" + stored.Filename + `"`; !strings.Contains(item.Body, want) {
			t.Errorf("no %s in %s", want, item.Body)
		}
	}
}

// TestPanelChangesItems: below its own path, and as the root behind handle_path, the panel moves, copies,
// replaces and deletes items with any name.
func TestPanelChangesItems(t *testing.T) {
	inside := strings.NewReplacer("handle /media-admin*", "handle_path /media-admin/*", "media_admin {", "media_admin / {").Replace(site.PanelBlock)
	for name, block := range map[string]string{"own path": site.PanelBlock, "handle_path": inside} {
		t.Run(name, func(t *testing.T) {
			p := site.StartPanelConfig(t, site.Config{
				Media: site.Account + "storage default {\ndriver local $ROOT\nsub_folder_format /\nsanitize off\noverwrite_strategy overwrite\n}\n" +
					"file_alias content\nfile_alias other\n",
				Site: block, Global: "admin " + servers.FreeAddress(t),
			})
			urlencoded := []string{"Content-Type", "application/x-www-form-urlencoded"}
			for _, filename := range []string{"a.txt", "a b+c.txt", "100% #1?.txt", "%2F&=;.txt", "čaj ☕.txt"} {
				p.Must(t, http.StatusOK, http.MethodPost, "upload/file", site.Form(site.File(filename, "old")), "Content-Type", site.FormType.Get("Content-Type"))
				route := "items/file/content/" + url.PathEscape(filename)
				var answer struct{ Result []struct{ ETag string } }
				if err := json.Unmarshal([]byte(p.Must(t, http.StatusOK, http.MethodGet, route, nil).Body), &answer); err != nil {
					t.Fatal(err)
				}
				item := answer.Result[0]
				p.Must(t, http.StatusPreconditionFailed, http.MethodPut, route, "new", "If-Match", `"x"`)
				p.Must(t, http.StatusOK, http.MethodPut, route, "new", "If-Match", item.ETag)
				p.Must(t, http.StatusPreconditionFailed, http.MethodPut, route, "newer", "If-Match", item.ETag)
				p.Must(t, http.StatusOK, http.MethodPost, route, "copy_to="+url.QueryEscape("sub/"+filename)+"&to_alias=other", urlencoded...)
				if r := p.Get(t, "/static/file/other/sub/"+url.PathEscape(filename)); r.Status != http.StatusOK || r.Body != "new" {
					t.Errorf("%s: %d %s", filename, r.Status, r.Body)
				}
				p.Must(t, http.StatusOK, http.MethodPost, route, "to="+url.QueryEscape("moved/"+filename), urlencoded...)
				p.Must(t, http.StatusNotFound, http.MethodDelete, route, nil)
				p.Must(t, http.StatusOK, http.MethodDelete, "items/file/content/moved/"+url.PathEscape(filename), nil)
				p.Must(t, http.StatusOK, http.MethodPost, "items/file/other", "action=delete&filename="+url.QueryEscape("sub/"+filename), urlencoded...)
			}
			if left := site.Files(t, p.Root); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// TestPanelItems: the panel uploads, previews and removes items.
func TestPanelItems(t *testing.T) {
	p := site.StartPanel(t, site.Account+site.LocalDefault+"image_alias content {\nwebp\n}\nimage_alias plain {\nsvg keep\n}\nfile_alias content\n")
	upload := func(route string, parts ...site.Part) site.Stored {
		t.Helper()
		return p.Must(t, http.StatusOK, http.MethodPost, "upload/"+route, site.Form(parts...), "Content-Type", site.FormType.Get("Content-Type")).One(t)
	}
	photo := upload("img?sub_folder=a", site.File("photo.gif", sample.GIF(t)))
	plain := upload("img?alias=plain", site.File("plain.gif", sample.GIF(t)))
	drawing := upload("img?alias=plain", site.File("d.svg", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`))
	text := upload("file", site.File("a.txt", "text"))
	small := upload("file", site.File("small.gif", sample.GIF(t)))
	if r := p.Call(t, http.MethodPost, "upload/img", site.Form(site.File("a.gif", "x")), "Content-Type", site.FormType.Get("Content-Type")); r.Status != http.StatusUnsupportedMediaType {
		t.Errorf("no image: %d %s", r.Status, r.Body)
	}
	if r := p.Call(t, http.MethodPost, "upload/img", site.Form(site.File("a.txt", "x")), "Content-Type", site.FormType.Get("Content-Type")); !strings.Contains(r.Body, "choose an alias for files") {
		t.Errorf("a file for images: %d %s", r.Status, r.Body)
	}
	for _, c := range []struct {
		route string
		want  int
		kind  string
	}{
		{"img/content/" + photo.Filename, http.StatusOK, "image/gif"},
		{"img/content/" + photo.Filename + ".webp", http.StatusOK, "image/webp"},
		{"img/plain/" + plain.Filename, http.StatusOK, "image/gif"},
		{"img/plain/" + drawing.Filename, http.StatusOK, "image/svg+xml"},
		{"file/content/" + small.Filename, http.StatusOK, "image/gif"},
		{"file/content/" + text.Filename, http.StatusOK, "text/plain; charset=utf-8"},
		{"img/content/none.gif", http.StatusNotFound, ""},
		{"img/none/" + photo.Filename, http.StatusNotFound, ""},
		{"other/content/" + photo.Filename, http.StatusNotFound, ""},
		{"img/content/../plain/" + plain.Filename, http.StatusNotFound, ""},
		{"img/content/", http.StatusNotFound, ""},
	} {
		r := p.Call(t, http.MethodGet, "preview/"+c.route, nil)
		if r.Status != c.want {
			t.Errorf("%s: %d %q, want %d", c.route, r.Status, r.Body[:min(100, len(r.Body))], c.want)
		}
		if c.want != http.StatusOK {
			continue
		}
		policy := r.Header.Get("Content-Security-Policy")
		if r.Header.Get("Content-Type") != c.kind || r.Header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(policy, "sandbox") || !strings.HasPrefix(r.Header.Get("Cache-Control"), "private") {
			t.Errorf("%s: %v", c.route, r.Header)
		}
		again := p.Call(t, http.MethodGet, "preview/"+c.route, nil, "If-None-Match", r.Header.Get("Etag"))
		if again.Status != http.StatusNotModified {
			t.Errorf("%s again: %d, want 304", c.route, again.Status)
		}
	}
	p.Must(t, http.StatusMethodNotAllowed, http.MethodDelete, "preview/img/content/"+photo.Filename, nil)
	p.Must(t, http.StatusOK, http.MethodDelete, "items/img/content/"+photo.Filename, nil)
	if r := p.Fetch(t, photo.FullPath); r.Status != http.StatusNotFound {
		t.Errorf("a removed item: %d", r.Status)
	}
	p.WaitForLog(t, `"section":"items","name":"img/content/`+photo.Filename)
}
