package api

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/storagedrivers"
)

// walk returns the folders and names of all pages.
func walk(t testing.TB, address string) (folders, names []string, pages int) {
	t.Helper()
	for cursor := ""; ; pages++ {
		page := get[itemsAnswer](t, address+"&cursor="+cursor)
		folders = append(folders, page.Folders...)
		for _, item := range page.Items {
			names = append(names, item.Filename)
		}
		if cursor = page.Next; cursor == "" {
			return folders, names, pages + 1
		}
		if pages > 1000 {
			t.Fatal("the pages have no end")
		}
	}
}

// TestItems: a listing has one level, in byte order, without variants. Pages of any size add up to
// the whole.
func TestItems(t *testing.T) {
	root := load(t, oneFolder)
	files(t, root+"/img/photos",
		"a.jpg", "a.jpg.webp", "a-b.png", "a/x.jpg", "a.b/x.jpg", "a/x.jpg.webp", "B.JPG", "B.JPG.webp", "c.svg",
		"c/d/e.gif", "z.webp", "c/d/e.gif.webp", "x.jpg", "x.jpg.webp", ".hidden/x.jpg", ".part")
	for _, c := range []struct {
		query          string
		folders, names []string
	}{
		{"folder=", []string{"a", "a.b", "c"}, []string{"B.JPG", "a-b.png", "a.jpg", "c.svg", "x.jpg", "z.webp"}},
		{"folder=a", nil, []string{"a/x.jpg"}},
		{"folder=c", []string{"d"}, nil},
		{"folder=c/d", nil, []string{"c/d/e.gif"}},
		{"folder=none", nil, nil},
		{"folder=a.jpg", nil, nil},
		{"search=X", nil, []string{"a.b/x.jpg", "a/x.jpg", "x.jpg"}},
		{"search=x.JPG&folder=a", nil, []string{"a/x.jpg"}},
		{"search=jpg", nil, []string{"B.JPG", "a.b/x.jpg", "a.jpg", "a/x.jpg", "x.jpg"}},
		{"search=d", nil, nil},
		{"search=nothing", nil, nil},
	} {
		for _, limit := range []int{1, 2, 3, 60, 200} {
			folders, names, _ := walk(t, fmt.Sprintf("/items/img/photos?%s&limit=%d", c.query, limit))
			slices.Sort(folders) // the byte order of folders is that of their keys, with the slash
			slices.Sort(names)
			want := slices.Sorted(slices.Values(c.names))
			if !slices.Equal(folders, c.folders) || !slices.Equal(names, want) {
				t.Errorf("%s, limit %d: folders %q, names %q, want %q, %q", c.query, limit, folders, names, c.folders, want)
			}
		}
	}
}

// TestSearch: a search finds an item by its submitted name and by its stored one, with and without
// accents.
func TestSearch(t *testing.T) {
	root := load(t, oneFolder)
	files(t, root+"/img/photos", "letni-dovolena-v1-2.jpg", "Letní dovolená v1.2.jpg", "zima.jpg")
	both := []string{"Letní dovolená v1.2.jpg", "letni-dovolena-v1-2.jpg"}
	for search, want := range map[string][]string{
		"Letní": both, "LETNI": both, "í dov": both, "Letní - dovolená": both, "v1.2": both, "dovolená v1.2.jpg": both,
		"letni-dov": both, "zíma": {"zima.jpg"}, ".jpg": {"Letní dovolená v1.2.jpg", "letni-dovolena-v1-2.jpg", "zima.jpg"},
		"jaro": nil, "🎉": nil, "---": nil,
	} {
		_, names, _ := walk(t, "/items/img/photos?search="+url.QueryEscape(search))
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("%s: found %q, want %q", search, names, want)
		}
	}
}

// TestChangingLimits: a page continues after the previous one, even if the limit changes.
func TestChangingLimits(t *testing.T) {
	root := load(t, oneFolder)
	var got []string
	want := make([]string, 30)
	for i := range want {
		want[i] = fmt.Sprintf("%02d.jpg", i)
	}
	files(t, root+"/img/photos", want...)
	for round, cursor := 0, ""; ; round++ {
		page := get[itemsAnswer](t, fmt.Sprintf("/items/img/photos?limit=%d&cursor=%s", []int{5, 1, 2}[round%3], cursor))
		for _, item := range page.Items {
			got = append(got, item.Name)
		}
		if cursor = page.Next; cursor == "" || round > 100 {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestListings: a page of images with their variants takes one listing.
func TestListings(t *testing.T) {
	load(t, `{"storages": {"main": {"driver": {"name": "foreign"}}}, "image_aliases": {"photos": {"webp": {}}}}`)
	app, err := mediaapp.Active()
	if err != nil {
		t.Fatal(err)
	}
	storage, _ := app.Service().Storage("main")
	for i := range 100 {
		for _, suffix := range []string{"", media.VariantSuffix} {
			key := fmt.Sprintf("img/photos/%03d.jpg%s", i, suffix)
			if _, err := storage.Put(t.Context(), key, strings.NewReader("x"), storagedrivers.PutOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := listings.Load()
	page := get[itemsAnswer](t, "/items/img/photos")
	if n := listings.Load() - before; len(page.Items) != 60 || n != 1 || page.Next == "" {
		t.Errorf("%d items by %d listings, next %q", len(page.Items), n, page.Next)
	}
}

// TestRootPrefix: the items of an alias without a prefix are those of the storage.
func TestRootPrefix(t *testing.T) {
	root := load(t, `{"storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}}, "file_aliases": {"docs": {"prefix": "/"}}}`)
	files(t, root, "a.pdf", "b/c.pdf", "x.jpg.webp")
	page := get[itemsAnswer](t, "/items/file/docs")
	if !slices.Equal(page.Folders, []string{"b"}) || len(page.Items) != 2 || page.Items[0].Address != "/static/file/docs/a.pdf" ||
		page.Items[1].Name != "x.jpg.webp" || page.Kind != "file" || page.Alias != "docs" || page.Next != "" {
		t.Errorf("%+v", page)
	}
	if page = get[itemsAnswer](t, "/items/file/docs?folder=b"); len(page.Items) != 1 || page.Items[0].Filename != "b/c.pdf" ||
		page.Items[0].Name != "c.pdf" || page.Folder != "b" {
		t.Errorf("%+v", page)
	}
	if item := get[itemAnswer](t, "/items/file/docs/b/c.pdf"); item.Filename != "b/c.pdf" || item.Type != "application/pdf" || item.WebP != nil {
		t.Errorf("%+v", item)
	}
}

// TestUnfinishedUploads: no request reads or removes the bytes of an unfinished upload.
func TestUnfinishedUploads(t *testing.T) {
	root := load(t, `{"storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}}, "file_aliases": {"docs": {"prefix": "/"}}}`)
	files(t, root, "@uploads/a.pdf", "b/@Uploads/a.pdf")
	panel, _ := zipSite(t)
	for _, name := range []string{"@uploads/a.pdf", "b/@Uploads/a.pdf"} {
		wantError(t, ask(t, panel, http.MethodGet, "/items/file/docs/"+name, ""), http.StatusNotFound, "no such item")
		wantError(t, ask(t, panel, http.MethodGet, "/preview/file/docs/"+name, ""), http.StatusNotFound, "no such item")
		wantError(t, ask(t, panel, http.MethodDelete, "/items/file/docs/"+name, ""), http.StatusNotFound, "no such item")
		wantError(t, ask(t, panel, http.MethodPost, "/zip", zipBody(t, media.File, "docs", name)), http.StatusNotFound, "None of these items")
	}
}

func TestItem(t *testing.T) {
	root := load(t, oneFolder)
	files(t, root+"/img/photos", "26-11/a.jpg", "26-11/a.jpg.webp", "b.jpg", "c.svg")
	item := get[itemAnswer](t, "/items/img/photos/26-11/a.jpg")
	if item.Type != "image/jpeg" || item.Name != "a.jpg" || item.Modified == "" || item.WebP == nil ||
		item.WebP.Address != "/static/img/photos/26-11/a.jpg.webp" || item.WebP.Size != 1 {
		t.Errorf("%+v", item)
	}
	for _, name := range []string{"b.jpg", "c.svg"} {
		if item := get[itemAnswer](t, "/items/img/photos/"+name); item.WebP != nil {
			t.Errorf("%+v", item)
		}
	}
	wantError(t, ask(t, New(), http.MethodGet, "/items/img/photos/26-11/a.jpg.webp", ""), http.StatusNotFound, "no such item")
	wantError(t, ask(t, New(), http.MethodGet, "/items/img/photos/26-11", ""), http.StatusNotFound, "no such item")
}

// TestOwners: a request shares the connections of a storage as its user, and not with the service itself.
func TestOwners(t *testing.T) {
	load(t, `{"storages": {"main": {"driver": {"name": "foreign"}}}, "file_aliases": {"docs": {}}}`)
	panel, _ := zipSite(t)
	for _, request := range [][3]string{
		{http.MethodGet, "/items/file/docs/a.mp4", ""},
		{http.MethodGet, "/preview/file/docs/a.mp4", ""},
		{http.MethodPost, "/zip", zipBody(t, media.File, "docs", "a.mp4")},
	} {
		lastOwner.Store("")
		if w := ask(t, as("alice", panel), request[0], request[1], request[2]); w.Code != http.StatusNotFound || lastOwner.Load() != "panel alice" {
			t.Errorf("%s: status %d, owner %q", request[1], w.Code, lastOwner.Load())
		}
	}
}

// cutWriter calls cut before its first byte.
type cutWriter struct {
	*httptest.ResponseRecorder
	cut func()
}

func (w cutWriter) Write(p []byte) (int, error) {
	w.cut()
	return w.ResponseRecorder.Write(p)
}

// TestPreviewCut: the connection breaks if a preview cannot be read to its end. A shorter one would look
// complete if another handler compresses it.
func TestPreviewCut(t *testing.T) {
	root := load(t, oneFolder)
	file := root + "/file/docs/a.txt"
	write(t, file, strings.Repeat("x", 1<<20))
	panel, logs := zipSite(t)
	w := cutWriter{httptest.NewRecorder(), func() {
		if err := os.Truncate(file, 10); err != nil {
			t.Error(err)
		}
	}}
	defer func() {
		if got := recover(); got != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
			t.Errorf("panic %v", got)
		}
		if all := logs.FilterMessage("sending a preview").FilterLevelExact(zap.ErrorLevel).All(); len(all) != 1 {
			t.Errorf("logged %+v", logs.All())
		}
	}()
	panel.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/preview/file/docs/a.txt", nil))
}

// TestItemSizes: an item has its size in pixels, as shown, and those of its renditions, in
// ascending order. A damaged image has none.
func TestItemSizes(t *testing.T) {
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
	item := get[itemAnswer](t, "/items/img/photos/a%20b.png")
	want := []sizeAnswer{
		{"w9", address + "@w9/a%20b.png", 9, 6},
		{"tall", address + "@tall/a%20b.png", 30, 20},
		{"w30", address + "@w30/a%20b.png", 30, 20},
		{"", address + "/a%20b.png", 90, 60},
		{"huge", address + "@huge/a%20b.png", 90, 60},
	}
	if !slices.Equal(item.Sizes, want) {
		t.Errorf("sizes %v", item.Sizes)
	}
	if item.Srcset != address+"@w9/a%20b.png 9w, "+address+"@w30/a%20b.png 30w, "+address+"/a%20b.png 90w" {
		t.Errorf("srcset %s", item.Srcset)
	}
	if item := get[itemAnswer](t, "/items/img/photos/damaged.png"); item.Sizes != nil || item.Srcset != "" {
		t.Errorf("%+v", item)
	}
}

// TestPrivateItem: an item of a private alias has the query that makes its addresses valid.
func TestPrivateItem(t *testing.T) {
	root := load(t, `{"signing_key": ["a key of thirty-two bytes, or more"], "storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}},
		"file_aliases": {"papers": {"private": {}}, "docs": {}}}`)
	files(t, root+"/file/papers", "a.txt")
	files(t, root+"/file/docs", "a.txt")
	if item := get[itemAnswer](t, "/items/file/docs/a.txt"); item.Query != "" {
		t.Errorf("public: %+v", item)
	}
	item := get[itemAnswer](t, "/items/file/papers/a.txt")
	if !strings.HasPrefix(item.Query, "expires=") || item.Address != "/static/file/papers/a.txt" {
		t.Errorf("%+v", item)
	}
	app, err := mediaapp.Active()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	handler := mediahttp.New(app.Service(), mediahttp.Options{})
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, item.Address+"?"+item.Query, nil))
	if w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
}

// TestPrivateItemUnsigned: without the token store, which has the key, the item is shown without a query.
func TestPrivateItemUnsigned(t *testing.T) {
	root := load(t, `{"storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}},
		"tokens": {"store": "redis", "addresses": ["127.0.0.1:1"]}, "file_aliases": {"papers": {"private": {}}}}`)
	files(t, root+"/file/papers", "a.txt")
	if item := get[itemAnswer](t, "/items/file/papers/a.txt"); item.Query != "" || !item.Private || item.Size == 0 {
		t.Errorf("%+v", item)
	}
}

// noisy returns a PNG in random colours.
func noisy(t *testing.T, width, height int) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, width, height))
	_, _ = rand.NewChaCha8([32]byte{}).Read(img.Pix)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestThumbnail: a thumbnail has a tag of its own, which changes with the image. While too many images
// are worked on, the answer says when to try again.
func TestThumbnail(t *testing.T) {
	root := load(t, `{"storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}, "overwrite_strategy": "overwrite"}},
		"image_aliases": {"photos": {}}, "limits": {"image_workers": 1, "image_wait": "3s"}}`)
	store := func(filename string, width int) {
		t.Helper()
		files(t, root+"/img/photos", filename)
		if err := os.WriteFile(root+"/img/photos/"+filename, noisy(t, width, 800), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	handler, _ := zipSite(t)
	ask := func(address, known string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		r.Header.Set("If-None-Match", known)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	const address = "/preview/img/photos/a.png"
	store("a.png", 600)
	whole, first := ask(address, ""), ask(address+"?thumbnail=1", "")
	tag := first.Header().Get("ETag")
	img, err := png.DecodeConfig(first.Body)
	if err != nil || img.Width != 240 || img.Height != 320 || tag == "" || tag == whole.Header().Get("ETag") ||
		first.Header().Get("Content-Type") != "image/png" || first.Header().Get("Cache-Control") != "private, no-cache" ||
		!strings.Contains(first.Header().Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%d %v: %+v, %v", first.Code, first.Header(), img, err)
	}
	if w := ask(address+"?thumbnail=1", tag); w.Code != http.StatusNotModified {
		t.Errorf("again: %d %v", w.Code, w.Header())
	}
	store("a.png", 700)
	if w := ask(address+"?thumbnail=1", tag); w.Code != http.StatusOK || w.Header().Get("ETag") == tag {
		t.Errorf("replaced: %d %v", w.Code, w.Header())
	}
	app, err := mediaapp.Active()
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
	store("b.png", 600)
	w := ask("/preview/img/photos/b.png?thumbnail=1", "")
	if w.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	wantError(t, w, http.StatusServiceUnavailable, "Too many images")
}

func TestDeleteItem(t *testing.T) {
	root := load(t, oneFolder)
	files(t, root+"/img/photos", "26-11/a b.jpg", "26-11/a b.jpg.webp", "26-11/b.jpg", "26-11/b.jpg.webp")
	for _, c := range []struct {
		name   string
		status int
	}{
		{"26-11/b.jpg.webp", 404}, {"26-11/a%20b.jpg", 204}, {"26-11/a%20b.jpg", 404}, {"none.jpg", 404}, {"..%2fx", 404}, {"26-11", 404},
	} {
		w := ask(t, New(), http.MethodDelete, "/items/img/photos/"+c.name, "")
		if w.Code != c.status || w.Header().Get("Cache-Control") != "no-store" || c.status == 204 && w.Body.Len() > 0 {
			t.Errorf("%s: %d %v %s", c.name, w.Code, w.Header(), w.Body)
		}
	}
	if _, names, _ := walk(t, "/items/img/photos?search=jpg"); !slices.Equal(names, []string{"26-11/b.jpg"}) {
		t.Errorf("left are %q", names)
	}
	if _, err := os.Stat(filepath.Join(root, "img/photos/26-11/a b.jpg.webp")); !os.IsNotExist(err) {
		t.Errorf("the variant: %v", err)
	}
}

// TestStorageDown: a failing storage is reported as an error, not as empty.
func TestStorageDown(t *testing.T) {
	for fault, status := range map[string]int{"unavailable": 503, "denied": 502, "strange": 502} {
		load(t, `{"storages": {"main": {"driver": {"name": "foreign", "fault": "`+fault+`", "word": "hidden word"}}}, "file_aliases": {"docs": {}}}`)
		for _, address := range []string{"/items/file/docs", "/items/file/docs?search=x", "/items/file/docs/a.pdf"} {
			w := ask(t, New(), http.MethodGet, address, "")
			wantError(t, w, status, ". ")
			if strings.Contains(w.Body.String(), "hidden word") {
				t.Errorf("%s: %s", address, w.Body)
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// manyItems creates a folder of 10,000 items.
func manyItems(t testing.TB) (names []string) {
	t.Helper()
	root := load(t, oneFolder)
	names = make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("image-%05d.jpg", i)
	}
	files(t, root+"/img/photos", names...)
	return names
}

// TestManyItems: a page examines only as many objects as it needs, and all pages have each item
// once.
func TestManyItems(t *testing.T) {
	want := manyItems(t)
	first := get[itemsAnswer](t, "/items/img/photos")
	if len(first.Items) != 60 || first.Next == "" || first.LookedAt > 200 {
		t.Fatalf("%d items, next %q, looked at %d", len(first.Items), first.Next, first.LookedAt)
	}
	_, names, pages := walk(t, "/items/img/photos?limit=200")
	if !slices.Equal(names, want) {
		t.Errorf("%d pages have %d items, or in another order", pages, len(names))
	}
	found := get[itemsAnswer](t, "/items/img/photos?search=09999")
	if len(found.Items) != 0 || found.Next == "" || found.LookedAt != maxLooked {
		t.Errorf("the first half: %d items, next %q, looked at %d", len(found.Items), found.Next, found.LookedAt)
	}
	_, names, pages = walk(t, "/items/img/photos?search="+url.QueryEscape("E-0999"))
	if len(names) != 10 || pages > 4 {
		t.Errorf("found %q on %d pages", names, pages)
	}
}

// TestItemOrders: a list is in the order of the query, and its pages add up to the whole. With
// recursive=1 it has everything below the folder.
func TestItemOrders(t *testing.T) {
	root := load(t, oneFolder)
	modified := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	for i, name := range []string{"c.jpg", "a.jpg", "sub/b.jpg", "sub/deep/d.jpg", "e.jpg"} {
		files(t, root+"/img/photos", name, name+".webp")
		at := modified.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(filepath.Join(root, "img/photos", name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{
		"":                                  "a.jpg c.jpg e.jpg",
		"order=":                            "a.jpg c.jpg e.jpg",
		"order=name&recursive=0":            "a.jpg c.jpg e.jpg",
		"order=-name":                       "e.jpg c.jpg a.jpg",
		"order=modified":                    "c.jpg a.jpg e.jpg",
		"order=-modified":                   "e.jpg a.jpg c.jpg",
		"recursive=1":                       "a.jpg c.jpg e.jpg sub/b.jpg sub/deep/d.jpg",
		"recursive=1&order=-modified":       "e.jpg sub/deep/d.jpg sub/b.jpg a.jpg c.jpg",
		"recursive=1&folder=sub":            "sub/b.jpg sub/deep/d.jpg",
		"search=b.j&order=-modified":        "sub/b.jpg",
		"order=-name&folder=sub&recursive=": "sub/b.jpg",
	} {
		for _, limit := range []int{1, 2, 60} {
			_, names, _ := walk(t, fmt.Sprintf("/items/img/photos?%s&limit=%d", query, limit))
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s, limit %d: %s, want %s", query, limit, got, want)
			}
		}
	}
	for query, text := range map[string]string{
		"order=size": "-modified", "order=Name": "-modified", "recursive=yes": "recursive", "cursor=x": "cursor", "limit=201": "200",
	} {
		wantError(t, ask(t, New(), http.MethodGet, "/items/img/photos?"+query, ""), http.StatusBadRequest, text)
	}
	cursor := get[itemsAnswer](t, "/items/img/photos?limit=1&order=-name").Next
	wantError(t, ask(t, New(), http.MethodGet, "/items/img/photos?limit=1&order=name&cursor="+cursor, ""), http.StatusBadRequest, "cursor")
}

// TestItemTags: an item has the entity tag that a GET of it has, also in a list.
func TestItemTags(t *testing.T) {
	root := load(t, oneFolder)
	files(t, root+"/img/photos", "a.jpg", "b.jpg")
	app, err := mediaapp.Active()
	if err != nil {
		t.Fatal(err)
	}
	handler := mediahttp.New(app.Service(), mediahttp.Options{})
	for _, item := range get[itemsAnswer](t, "/items/img/photos").Items {
		tag := ask(t, handler, http.MethodGet, item.Address, "").Header().Get("ETag")
		if single := get[itemAnswer](t, "/items/img/photos/"+item.Filename); tag == "" || item.ETag != tag || single.ETag != tag {
			t.Errorf("%s: %q in a list, %q alone, want %q", item.Filename, item.ETag, single.ETag, tag)
		}
	}
}

// TestUnordered: a list of more than 10,000 items has the order of names only.
func TestUnordered(t *testing.T) {
	manyItems(t)
	const list = "/items/img/photos?limit=1&order="
	if page := get[itemsAnswer](t, list+"-name"); len(page.Items) != 1 || page.Items[0].Filename != "image-09999.jpg" {
		t.Errorf("%+v", page)
	}
	app, err := mediaapp.Active()
	if err != nil {
		t.Fatal(err)
	}
	alias, _ := app.Service().Alias(media.Image, "photos")
	if _, err := alias.Storage.Put(t.Context(), alias.Key("one-more.jpg"), strings.NewReader("x"), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, order := range []string{"-name", "modified", "-modified", "-modified&recursive=1"} {
		wantError(t, ask(t, New(), http.MethodGet, list+order, ""), http.StatusBadRequest, "10,000")
	}
	if page := get[itemsAnswer](t, list+"name&recursive=1"); len(page.Items) != 1 || page.Next == "" {
		t.Errorf("%+v", page)
	}
}
