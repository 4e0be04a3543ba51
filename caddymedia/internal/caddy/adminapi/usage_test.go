package adminapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/storagedrivers"
)

// patience bounds waits for work in the background.
const patience = 30 * time.Second

// awaitUsage returns the usage of the storages by their names as soon as it is as wanted.
func awaitUsage(t *testing.T, wanted func(map[string]storageUsage) bool) map[string]storageUsage {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		answer, byName := get[usageAnswer](t, "/usage"), map[string]storageUsage{}
		for _, storage := range answer.Storages {
			byName[storage.Name] = storage
		}
		if !answer.Counting && wanted(byName) {
			return byName
		}
		if time.Now().After(deadline) {
			t.Fatalf("the usage stays %+v", answer)
		}
	}
}

// TestUsage: items are counted, and a storage that fails says why without its secrets. A refresh in
// the background starts no count.
func TestUsage(t *testing.T) {
	const app = `{"storages": {
		"broken": {"driver": {"name": "foreign", "fault": "denied", "word": "hunter22"}},
		"main": {"driver": {"name": "local", "root": "$ROOT"}}
	}, "image_aliases": {"photos": {"storage": "main"}}, "file_aliases": {"docs": {"storage": "main"}, "other": {"storage": "broken"}}}`
	root := load(t, app)
	files(t, root, "img/photos/a/b.jpg", "img/photos/a/b.jpg.webp", "img/photos@renditions/2/a/b.jpg/t.1.2.jpg", "file/docs/a.txt", "file/docs/b.txt")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/usage", nil)
	r.Header.Set(BackgroundHeader, "1")
	w := httptest.NewRecorder()
	New().ServeHTTP(w, r)
	if answer := decoded[usageAnswer](t, w, http.StatusOK); answer.Counting || answer.Storages[1].Aliases[0].Counted != nil {
		t.Errorf("a refresh starts a count: %+v", answer)
	}
	byName := awaitUsage(t, func(s map[string]storageUsage) bool { return s["main"].Total != nil })
	one := countAnswer{1, 1}
	photos, docs := byName["main"].Aliases[0], byName["main"].Aliases[1]
	if photos.Name != "photos" || photos.Kind != "img" || photos.Items != one || photos.Variants != one || photos.Renditions != one ||
		photos.State != "idle" || photos.Counted == nil {
		t.Errorf("photos: %+v", photos)
	}
	if docs.Items != (countAnswer{2, 2}) || docs.AtLeast || docs.Message != "" {
		t.Errorf("docs: %+v", docs)
	}
	if main := byName["main"]; *main.Total < 1 || *main.Free > *main.Total || main.Driver != "local" {
		t.Errorf("main: %+v", main)
	}
	broken := byName["broken"]
	if other := broken.Aliases[0]; broken.Free != nil || other.Counted != nil || other.Message == "" || strings.Contains(other.Detail, "hunter22") {
		t.Errorf("broken: %+v", broken)
	}
	files(t, root, "file/docs/c.txt")
	if again := get[usageAnswer](t, "/usage"); again.Storages[1].Aliases[1].Items.Objects != 2 {
		t.Errorf("a recent count was made again: %+v", again)
	}
	decoded[usageAnswer](t, ask(t, New(), http.MethodPost, "/usage", ""), http.StatusOK)
	awaitUsage(t, func(s map[string]storageUsage) bool { return s["main"].Aliases[1].Items.Objects == 3 })
	wantError(t, ask(t, New(), http.MethodDelete, "/usage", ""), http.StatusMethodNotAllowed, "GET, HEAD, POST")
}

// TestChanges: the last changes are there after a reload, too, the newest first.
func TestChanges(t *testing.T) {
	const app = `{"storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}}, "file_aliases": {"docs": {}}}`
	root := load(t, app)
	files(t, root, "file/docs/a.txt", "file/docs/b.txt")
	remove := func(name string) {
		t.Helper()
		if w := ask(t, New(), http.MethodDelete, "/items/file/docs/"+name, ""); w.Code >= http.StatusBadRequest {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	remove("a.txt")
	config := strings.ReplaceAll(strings.Replace(app, "{", `{"tokens": {"store": "memory"}, `, 1), "$ROOT", root)
	config = strings.Replace(config, `"docs": {`, `"docs": {"max_size": 1048576`, 1)
	if err := caddy.Load(fmt.Appendf(nil, `{"admin": {"disabled": true, "config": {"persist": false}}, "apps": {"media": %s}}`, config), true); err != nil {
		t.Fatal(err)
	}
	remove("b.txt")
	answer := get[struct {
		Since   string         `json:"since"`
		Changes []changeAnswer `json:"changes"`
	}](t, "/changes")
	if _, err := time.Parse(time.RFC3339, answer.Since); err != nil || len(answer.Changes) < 2 {
		t.Fatalf("%+v", answer)
	}
	for i, name := range []string{"b.txt", "a.txt"} {
		got := answer.Changes[i]
		if _, err := time.Parse(time.RFC3339, got.Time); err != nil || got.Size == nil {
			t.Errorf("change %d: %+v", i, got)
		}
		got.Time, got.Size = "", nil
		if want := (changeAnswer{Action: "delete", Kind: "file", Alias: "docs", Filename: name, Origin: "admin", Result: "ok"}); got != want {
			t.Errorf("change %d: %+v, want %+v", i, got, want)
		}
	}
}

// TestCaches: a cache is shown and emptied. A reload keeps it, with its new size.
func TestCaches(t *testing.T) {
	const app = `{"storages": {
		"far": {"driver": {"name": "foreign"}, "cache": {"folder": "$ROOT", "max_size": %d}},
		"near": {"driver": {"name": "local", "root": "$ROOT/near"}}
	}, "image_aliases": {"content": {"storage": "far"}}}`
	loaded := time.Now()
	root := load(t, fmt.Sprintf(app, 1<<30))
	running := func() *plugin.App {
		a, err := plugin.Active()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	storage, _ := running().Service().Storage("far")
	if _, err := storage.Put(t.Context(), "a", strings.NewReader("text"), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	read := func() {
		storage, _ := running().Service().Storage("far")
		object, err := storage.OpenSeeker(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := object.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		if err := object.Close(); err != nil {
			t.Error(err)
		}
	}
	want := func(what string, got, want cacheAnswer) {
		t.Helper()
		got.Bytes = min(got.Bytes, 1)
		if got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	written := func() map[string]cacheAnswer { // the block is written beside the reader
		caches := get[map[string]cacheAnswer](t, "/caches")
		for n := 0; n < 1000 && caches["far"].Entries < 2; n++ {
			time.Sleep(10 * time.Millisecond)
			caches = get[map[string]cacheAnswer](t, "/caches")
		}
		return caches
	}
	checked := func() { // a check writes to the folder of a storage too
		t.Helper()
		for _, name := range []string{"far", "near"} {
			for !running().Service().Health()[name].Checked.After(loaded) {
				time.Sleep(time.Millisecond)
			}
		}
	}
	read()
	caches := written()
	want("after a miss", caches["far"], cacheAnswer{Entries: 2, Bytes: 1, MaxSize: 1 << 30, Misses: 1, InUse: true})
	if len(caches) != 1 {
		t.Errorf("caches %v, want only that of far", caches)
	}
	checked()
	loaded = time.Now()
	config := strings.ReplaceAll(fmt.Sprintf(app, 1<<29), "$ROOT", root)
	config = strings.Replace(config, "{", `{"tokens": {"store": "memory"}, `, 1)
	if err := caddy.Load([]byte(`{"admin": {"disabled": true, "config": {"persist": false}}, "apps": {"media": `+config+`}}`), true); err != nil {
		t.Fatal(err)
	}
	read()
	want("after a reload", get[map[string]cacheAnswer](t, "/caches")["far"], cacheAnswer{Entries: 2, Bytes: 1, MaxSize: 1 << 29, Hits: 1, Misses: 1, InUse: true})
	emptied := decoded[cacheAnswer](t, ask(t, New(), http.MethodDelete, "/caches/far", ""), http.StatusOK)
	want("emptied", emptied, cacheAnswer{MaxSize: 1 << 29, Hits: 1, Misses: 1, InUse: true})
	read()
	written() // nothing is written while the test ends
	checked()
	wantError(t, ask(t, New(), http.MethodDelete, "/caches/near", ""), http.StatusNotFound, "no storage \"near\" with a cache")
}
