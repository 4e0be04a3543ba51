package adminapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/plugin"
	"github.com/caddymedia/media/storagedrivers"
)

// TestCaches: a cache is shown and emptied. A reload keeps it, with its new size.
func TestCaches(t *testing.T) {
	const app = `{"storages": {
		"far": {"driver": {"name": "foreign"}, "cache": {"folder": "$ROOT", "max_size": %d}},
		"near": {"driver": {"name": "local", "root": "$ROOT/near"}}
	}, "image_aliases": {"content": {"storage": "far"}}}`
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
	read()
	caches := written()
	want("after a miss", caches["far"], cacheAnswer{Entries: 2, Bytes: 1, MaxSize: 1 << 30, Misses: 1, InUse: true})
	if len(caches) != 1 {
		t.Errorf("caches %v, want only that of far", caches)
	}
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
	wantError(t, ask(t, New(), http.MethodDelete, "/caches/near", ""), http.StatusNotFound, "no storage \"near\" with a cache")
}
