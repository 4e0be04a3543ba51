package adminapi

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/uploads"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/mediahttp"
)

// TestItems: the admin endpoint serves items as clients get them, with addresses of no host, and
// changes them.
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

// TestOwners: a request shares the connections of a storage as its user, and not with the service
// itself.
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
		"image_aliases": {"photos": {"storage": "main"}, "away": {"storage": "down"}}}`)
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
}

// TestPreviewBusy: a preview that must be made waits for a worker for a bounded time.
func TestPreviewBusy(t *testing.T) {
	root := load(t, `{"storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}},
		"image_aliases": {"photos": {"storage": "main"}}, "limits": {"image_workers": 1, "image_wait": "100ms"}}`)
	panel, _ := zipSite(t)
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
	w := ask(t, panel, http.MethodGet, "/preview/img/photos/waiting.png?thumbnail=1", "")
	wantError(t, w, http.StatusServiceUnavailable, "Too many images")
}

// twoUploads is a configuration with a storage that works and one that fails.
const twoUploads = `{"storages": {
		"broken": {"driver": {"name": "foreign", "fault": "denied", "word": "hunter22"}},
		"main": {"driver": {"name": "local", "root": "$ROOT"}}
	}, "file_aliases": {"docs": {"storage": "main"}, "other": {"storage": "broken"}}}`

// startUpload creates an upload with three of ten bytes on the storage "main", and returns its
// name.
func startUpload(t *testing.T, account string) string {
	t.Helper()
	app, release, err := plugin.AcquireActive()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	metadata := ""
	for key, value := range map[string]string{"filename": account + ".txt", "alias": "docs", "sub_folder": "a"} {
		metadata += "," + key + " " + base64.StdEncoding.EncodeToString([]byte(value))
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("abc"))
	for key, value := range map[string]string{
		"Tus-Resumable": "1.0.0", "Upload-Length": "10", "Upload-Metadata": metadata[1:], "Content-Type": "application/offset+octet-stream",
	} {
		r.Header.Set(key, value)
	}
	w := httptest.NewRecorder()
	known := caller.Known{Account: access.Account{APIKey: account}, Origin: item.OriginPanel}
	if err := uploads.ServeResumable(caller.New(app, caller.Options{}), w, r, item.File, "/", "", known); err != nil || w.Code != http.StatusCreated {
		t.Fatalf("%v, %d %s", err, w.Code, w.Body)
	}
	for _, u := range get[uploadsAnswer](t, "/uploads").Uploads {
		if u.Account == account {
			return u.Name
		}
	}
	t.Fatal("the upload is not in the list")
	return ""
}

// TestUploads: unfinished uploads are listed page by page, also if another storage fails.
func TestUploads(t *testing.T) {
	load(t, twoUploads)
	accounts := []string{"one", "three", "two"}
	for _, account := range accounts {
		startUpload(t, account)
	}
	var found []string
	for cursor, pages := "", 0; ; pages++ {
		page := get[uploadsAnswer](t, "/uploads?limit=2&cursor="+cursor)
		if !page.On || len(page.Uploads) > 2 || pages > 5 {
			t.Fatalf("page %d: %+v", pages, page)
		}
		if first := pages == 0; (len(page.Problems) == 1) != first {
			t.Errorf("page %d has the problems %+v", pages, page.Problems)
		} else if first && (page.Problems[0].Storage != "broken" || page.Problems[0].Message == "") {
			t.Errorf("%+v", page.Problems)
		}
		for _, u := range page.Uploads {
			found = append(found, u.Account)
			if u.Storage != "main" || u.Origin != "panel" || u.Kind != "file" || u.Alias != "docs" || u.SubFolder != "a" ||
				u.Filename != u.Account+".txt" || u.Offset != 3 || u.Length == nil || *u.Length != 10 || u.Client != "192.0.2.1" ||
				u.Created == "" || u.LastByte == "" || u.Expires <= u.Created {
				t.Errorf("%+v", u)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if slices.Sort(found); !slices.Equal(found, accounts) {
		t.Errorf("found %v, want %v", found, accounts)
	}
	wantError(t, ask(t, New(), http.MethodGet, "/uploads?limit=0", ""), http.StatusBadRequest, "limit")
	wantError(t, ask(t, New(), http.MethodGet, "/uploads?cursor=x", ""), http.StatusBadRequest, "cursor")
}

// TestEndUpload: an upload is ended once, and others stay.
func TestEndUpload(t *testing.T) {
	load(t, twoUploads)
	ended, stays := startUpload(t, "one"), startUpload(t, "two")
	address := "/uploads/main/" + ended
	if w := ask(t, New(), http.MethodDelete, address, ""); w.Code != http.StatusNoContent {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	for _, none := range []string{address, "/uploads/none/" + stays, "/uploads/main/x", "/uploads/main/..%2f"} {
		if w := ask(t, New(), http.MethodDelete, none, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", none, w.Code)
		}
	}
	if w := ask(t, New(), http.MethodDelete, "/uploads/broken/"+stays, ""); w.Code < 500 || strings.Contains(w.Body.String(), "hunter22") {
		t.Errorf("on a storage that fails: %d %s", w.Code, w.Body)
	}
	if page := get[uploadsAnswer](t, "/uploads"); len(page.Uploads) != 1 || page.Uploads[0].Account != "two" {
		t.Errorf("%+v", page.Uploads)
	}
}

// TestUploadsOff: without resumable uploads there are none.
func TestUploadsOff(t *testing.T) {
	load(t, `{"resumable": {"off": true}}`)
	if page := get[uploadsAnswer](t, "/uploads"); page.On || len(page.Uploads) > 0 || page.Next != "" {
		t.Errorf("%+v", page)
	}
	wantError(t, ask(t, New(), http.MethodDelete, "/uploads/default/x", ""), http.StatusNotFound, "no such upload")
}
