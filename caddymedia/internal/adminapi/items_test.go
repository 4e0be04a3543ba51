package adminapi

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/plugin"
	"github.com/caddymedia/media/caddymedia/mediahttp"
)

// TestItems: the admin endpoint serves items as clients get them, with addresses of no host, and changes
// them.
func TestItems(t *testing.T) {
	root := load(t, oneFolder)
	files(t, root+"/img/photos", "26-11/a b.jpg", "26-11/a b.jpg.webp")
	const item = `{"success":true,"result":[{"full_path":"/static/img/photos/26-11/a%20b.jpg","filename":"26-11/a b.jpg","size":1,`
	for _, c := range []struct {
		method, path, body string
		status             int
		has                string
	}{
		{http.MethodGet, "img/photos", "", 200, `{"success":true,"result":[],"folders":["26-11"]}`},
		{http.MethodGet, "img/photos?folder=26-11", "", 200, item},
		{http.MethodGet, "img/photos/26-11/a%20b.jpg", "", 200, item},
		{http.MethodPost, "img/photos/26-11/a%20b.jpg", "to=c.jpg", 415, "form-urlencoded"},
		{http.MethodDelete, "img/photos/26-11/a%20b.jpg", "", 200, `{"success":true}`},
		{http.MethodDelete, "img/photos/26-11/a%20b.jpg", "", 404, "no such item"},
		{http.MethodGet, "sound/photos", "", 404, "unknown alias"},
		{http.MethodGet, "img/docs", "", 404, "unknown alias"},
		{http.MethodPatch, "img/photos", "", 405, "use GET, HEAD, POST"},
	} {
		w := ask(t, New(), c.method, "/items/"+c.path, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, w.Code, w.Body, c.status, c.has)
		}
	}
}

// TestOwners: a request shares the connections of a storage as its user, and not with the service itself.
func TestOwners(t *testing.T) {
	load(t, `{"storages": {"main": {"driver": {"name": "foreign"}}}, "file_aliases": {"docs": {}}}`)
	panel, _ := zipSite(t)
	for _, request := range [][3]string{
		{http.MethodGet, "/preview/file/docs/a.mp4", ""},
		{http.MethodPost, "/zip/file/docs", "filename=a.mp4"},
	} {
		lastOwner.Store("")
		if w := ask(t, as("alice", panel), request[0], request[1], request[2]); w.Code != http.StatusNotFound || lastOwner.Load() != "panel alice" {
			t.Errorf("%s: status %d, owner %q", request[1], w.Code, lastOwner.Load())
		}
	}
}

// TestFacts: an image has its size in pixels, as shown, and those of its renditions, in
// ascending order. A damaged image has none.
func TestFacts(t *testing.T) {
	root := load(t, `{"storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}}, "image_aliases": {"photos": {
		"renditions": {"huge": {"width": 500}, "w9": {"width": 9}, "tall": {"height": 20}, "w30": {"width": 30}}}}}`)
	files(t, root+"/img/photos", "damaged.png")
	var img bytes.Buffer
	if err := png.Encode(&img, image.NewGray(image.Rect(0, 0, 90, 60))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/img/photos/a b.png", img.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	const address = "/static/img/photos"
	facts := get[factsAnswer](t, "/facts/img/photos/a%20b.png")
	want := []sizeAnswer{
		{"w9", address + "@w9/a%20b.png", 9, 6},
		{"tall", address + "@tall/a%20b.png", 30, 20},
		{"w30", address + "@w30/a%20b.png", 30, 20},
		{"", address + "/a%20b.png", 90, 60},
		{"huge", address + "@huge/a%20b.png", 90, 60},
	}
	if !slices.Equal(facts.Sizes, want) {
		t.Errorf("sizes %v", facts.Sizes)
	}
	if facts.Srcset != address+"@w9/a%20b.png 9w, "+address+"@w30/a%20b.png 30w, "+address+"/a%20b.png 90w" {
		t.Errorf("srcset %s", facts.Srcset)
	}
	if facts := get[factsAnswer](t, "/facts/img/photos/damaged.png"); facts.Sizes != nil || facts.Srcset != "" {
		t.Errorf("%+v", facts)
	}
}

// TestFactsOfPrivate: an item of a private alias has the query that makes its addresses valid.
func TestFactsOfPrivate(t *testing.T) {
	root := load(t, `{"signing_key": ["a key of thirty-two bytes, or more"], "storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}},
		"file_aliases": {"papers": {"private": {}}, "docs": {}}}`)
	files(t, root+"/file/papers", "a.txt")
	files(t, root+"/file/docs", "a.txt")
	if facts := get[factsAnswer](t, "/facts/file/docs/a.txt"); facts.Query != "" {
		t.Errorf("public: %+v", facts)
	}
	facts := get[factsAnswer](t, "/facts/file/papers/a.txt")
	app, err := plugin.Active()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	handler := mediahttp.New(app, mediahttp.Options{})
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/static/file/papers/a.txt?"+facts.Query, nil))
	if w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
}

// TestFactsUnsigned: without the token store, which has the key, there is no query.
func TestFactsUnsigned(t *testing.T) {
	load(t, `{"storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}},
		"tokens": {"store": "redis", "addresses": ["127.0.0.1:1"]}, "file_aliases": {"papers": {"private": {}}}}`)
	if facts := get[factsAnswer](t, "/facts/file/papers/a.txt"); facts.Query != "" {
		t.Errorf("%+v", facts)
	}
}

// TestPreviewRefused: a preview that is not served is refused in words.
func TestPreviewRefused(t *testing.T) {
	root := load(t, `{"storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}, "down": {"driver": {"name": "foreign", "fault": "unavailable", "word": "hidden word"}}},
		"image_aliases": {"photos": {"storage": "main"}, "away": {"storage": "down"}}, "limits": {"image_workers": 1, "image_wait": "100ms"}}`)
	files(t, root+"/img/photos", "damaged.png")
	panel, _ := zipSite(t)
	refused := func(address string, status int, text string) {
		t.Helper()
		w := ask(t, panel, http.MethodGet, "/preview/img/"+address, "")
		wantError(t, w, status, text)
		if strings.Contains(w.Body.String(), "hidden word") {
			t.Error(w.Body)
		}
	}
	refused("photos/none.png", http.StatusNotFound, "no such item")
	refused("photos/damaged.png?thumbnail=1", http.StatusUnsupportedMediaType, "decoded")
	refused("away/a.png", http.StatusServiceUnavailable, ". ")
	app, err := plugin.Active()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // for each worker
		_, leave, err := app.Service().Uploader().Derived.Images.Admit(t.Context(), "other", false)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	files(t, root+"/img/photos", "waiting.png")
	refused("photos/waiting.png?thumbnail=1", http.StatusServiceUnavailable, "Too many images")
}
