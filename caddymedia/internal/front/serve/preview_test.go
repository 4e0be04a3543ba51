package serve_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/front/items"
	"github.com/caddymedia/media/caddymedia/internal/front/serve"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/media"
)

// withPreviews is a site with a picture of 800 x 400 pixels in some aliases; hidden is a private
// one.
func withPreviews(t *testing.T) *site {
	t.Helper()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		hidden := on("main")
		hidden.Private = new(media.Private)
		c.ImageAliases["hidden"] = &media.ImageAlias{AliasOptions: hidden}
	})
	for _, key := range []string{
		"img/content/a.png", "img/content/b.png", "img/replacing/a.png", "img/hidden/a.png", "img/elsewhere/a.png", "img/pictures/a.png", "file/one/a.png",
	} {
		s.Put(t, key, pngOf(800, 400))
	}
	return s
}

// preview requests a preview, with "?thumbnail" at the end of the path that of a list, and checks
// its status.
func preview(t *testing.T, s *site, path, header string, status int) *httptest.ResponseRecorder {
	t.Helper()
	kind, path, _ := strings.Cut(path, "/")
	path, thumbnail := strings.CutSuffix(path, "?thumbnail")
	w := httptest.NewRecorder()
	err := serve.New(s.Gate).Preview(w, s.Request(t, http.MethodGet, "/panel", header, ""), item.Kind(kind), path, thumbnail)
	if failed, ok := errors.AsType[*httpx.Error](err); ok {
		w.Code = failed.Status
	}
	if w.Code != status {
		t.Errorf("%s: %d %v %.100q, want %d", path, w.Code, w.Header(), w.Body, status)
	}
	return w
}

// TestPreview: an item of any alias is served to a page, which can only show it.
func TestPreview(t *testing.T) {
	t.Parallel()
	s := withPreviews(t)
	for name, content := range map[string]string{
		"a.html": "<script>", "a.pdf": "x", "a.mp4": "0123456789", "a.zip": "x", "@uploads/a.txt": "x",
	} {
		s.Put(t, "file/web/"+name, content)
	}
	s.Put(t, "img/pictures/a.png.webp", "variant")
	const day, asked = "private, max-age=300", "private, no-cache"
	for path, want := range map[string][3]string{
		"img/content/a.png": {"image/png", day, "'none'"}, "img/content/a.png?thumbnail": {"image/webp", day, "'none'"},
		"img/replacing/a.png": {"image/png", asked, "'none'"}, "img/replacing/a.png?thumbnail": {"image/webp", asked, "'none'"},
		"img/hidden/a.png": {"image/png", day, "'none'"}, "img/hidden/a.png?thumbnail": {"image/webp", day, "'none'"},
		"img/elsewhere/a.png": {"image/png", day, "'none'"}, "img/elsewhere/a.png?thumbnail": {"image/webp", day, "'none'"},
		"img/pictures/a.png.webp":  {"image/webp", day, "'none'"},
		"file/one/a.png?thumbnail": {"image/webp", day, "'none'"},
		"file/web/a.html":          {"text/plain; charset=utf-8", day, "'none'"},
		"file/web/a.pdf":           {"application/pdf", day, "'self'"},
	} {
		h := preview(t, s, path, "", 200).Header()
		if got := [2]string{h.Get("Content-Type"), h.Get("Cache-Control")}; got != [2]string(want[:2]) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if h.Get("Content-Security-Policy") != sandbox+"; frame-ancestors "+want[2] || h.Get("Content-Disposition") != "" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
	}
	for path, status := range map[string]int{
		"file/web/a.zip": 404, "file/web/@uploads/a.txt": 404, "img/content/none.png": 404, "img/none/a.png": 404, "other/content/a.png": 404,
		"img/content": 404, "img/content/": 404, "img/content/../content/a.png": 404, "img/content/a%2Fb.png": 404,
		"img/pictures/a.png.webp?thumbnail": 404, "img/broken/a.png": 503, "img/broken/a.png?thumbnail": 503,
	} {
		preview(t, s, path, "", status)
	}
	s.Put(t, "img/pictures/a.jpg", jpegPicture)
	if w := preview(t, s, "img/pictures/a.jpg", "Accept: image/webp", 200); w.Body.String() != jpegPicture {
		t.Errorf("an image without a variant: %.20q", w.Body)
	}
	tag := preview(t, s, "file/web/a.mp4", "", 200).Header().Get("ETag")
	preview(t, s, "file/web/a.mp4", "If-None-Match: "+tag, 304)
	if w := preview(t, s, "file/web/a.mp4", "Range: bytes=3-4", 206); w.Body.String() != "34" {
		t.Errorf("a range: %q", w.Body)
	}
	if w := preview(t, s, "file/web/a.mp4", "Range: bytes=1-2,4-5", 200); w.Body.String() != "0123456789" {
		t.Errorf("ranges: %q", w.Body)
	}
}

// thumbnails returns the keys of the stored thumbnails.
func thumbnails(t *testing.T, s *site) (keys []string) {
	t.Helper()
	for key := range s.Objects(t) {
		if strings.Contains(key, "@renditions/") {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestThumbnail: a thumbnail is stored outside of the items, without a public address, and goes
// with its image.
func TestThumbnail(t *testing.T) {
	t.Parallel()
	s := withPreviews(t)
	first := preview(t, s, "img/replacing/a.png?thumbnail", "", 200)
	info, err := imaging.CheckImage(strings.NewReader(first.Body.String()), int64(first.Body.Len()), "webp", imaging.Options{})
	if err != nil || info.Width != 320 || info.Height != 160 {
		t.Errorf("%+v, %v", info, err)
	}
	stored := thumbnails(t, s)
	if len(stored) != 1 || !strings.HasPrefix(stored[0], "img/replacing@renditions/1/a.png/@thumbnail.") {
		t.Fatalf("stored are %q", stored)
	}
	tag := first.Header().Get("ETag")
	preview(t, s, "img/replacing/a.png?thumbnail", "If-None-Match: "+tag, 304)
	for _, target := range []string{
		"img/replacing@@thumbnail/a.png", "img/replacing@thumbnail/a.png", stored[0], strings.Replace(stored[0], "@renditions/", "@renditions%2F", 1),
	} {
		httpCase{Target: "/static/" + target, Status: 404}.Check(t, s)
	}
	changeImage(t, s, http.MethodPut, pngOf(400, 400))
	if left := thumbnails(t, s); len(left) > 0 {
		t.Errorf("after the replacement %q are left", left)
	}
	if w := preview(t, s, "img/replacing/a.png?thumbnail", "If-None-Match: "+tag, 200); w.Header().Get("ETag") == tag {
		t.Error("that of the replaced image is served")
	}
	changeImage(t, s, http.MethodDelete, "")
	if left := thumbnails(t, s); len(left) > 0 {
		t.Errorf("after the deletion %q are left", left)
	}
}

// changeImage replaces or deletes the image of the alias replacing.
func changeImage(t *testing.T, s *site, method, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	r := s.Request(t, method, "/panel", "If-Match: *\n", body)
	known := caller.Known{Account: access.Account{APIKey: "alice", Rights: access.Rights()}, Origin: item.OriginPanel}
	if err := items.Serve(s.Gate, w, r, item.Image, "replacing/a.png", known); err != nil || w.Code != 200 || strings.Contains(w.Body.String(), "humbnail") {
		t.Errorf("%d %s, %v", w.Code, w.Body, err)
	}
}

// TestThumbnailFails: an image that cannot be decoded has no thumbnail, and one that cannot be
// stored is made for each request.
func TestThumbnailFails(t *testing.T) {
	t.Parallel()
	s := withPreviews(t)
	s.Put(t, "img/content/bad.png", "no picture")
	preview(t, s, "img/content/bad.png?thumbnail", "", 415)
	preview(t, s, "img/content/none.png?thumbnail", "", 404)
	s.Driver.Fail = func(op, key string) error {
		if strings.Contains(key, "@renditions") && op != "stat" && op != "open" {
			return fmt.Errorf("read only: %w", fs.ErrPermission)
		}
		return nil
	}
	for range 2 {
		w := preview(t, s, "img/content/a.png?thumbnail", "", 200)
		if w.Header().Get("Content-Type") != "image/webp" || w.Body.Len() == 0 || w.Header().Get("ETag") != "" ||
			!strings.HasPrefix(w.Header().Get("Content-Security-Policy"), sandbox) {
			t.Errorf("read only: %d bytes, %v", w.Body.Len(), w.Header())
		}
	}
	if stored := thumbnails(t, s); len(stored) > 0 {
		t.Errorf("stored are %q", stored)
	}
}
