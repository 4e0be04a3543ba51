package plugin_test

import (
	"bytes"
	"context"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/plugin"
	"github.com/caddymedia/media/caddymedia/internal/upload"
)

// helped returns the configuration of an app with a storage in root. Its items are in no sub
// folder. more holds further options.
func helped(root, more string) string {
	return `{"tokens": {"store": "memory"},
		"storages": {"default": {"driver": {"name": "local", "root": "` + root + `"}, "sub_folder_format": "/"}},
		"image_aliases": {"content": {}, "webp": {"webp": {}, "cdn_base": "https://cdn.example.com"}},
		"file_aliases": {"content": {"max_size": 2097152}}` + more + `}`
}

// formRequest returns a request with a text file in the input "a".
func formRequest(t *testing.T) *http.Request {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("a", "a.txt")
	if err == nil {
		_, err = part.Write([]byte("text"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", &body)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return r
}

func wantStored(t *testing.T, root, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
		t.Errorf("%s holds %.40q, %v, want %.40q", name, got, err, want)
	}
}

// actors records the actors of changes.
type actors struct {
	upload.NopObserver
	all []item.Actor
}

func (a *actors) Changed(_ context.Context, c upload.Change) { a.all = append(a.all, c.Actor) }

// TestActorOfGoCode: an item is ascribed to the client of the request, as Caddy knows it.
func TestActorOfGoCode(t *testing.T) { // not parallel: Caddy has globals
	root, observer := t.TempDir(), new(actors)
	app := provisioned(t, helped(root, ""))
	app.Service().Uploader().Observer = observer
	r := formRequest(t)
	r = r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, map[string]any{caddyhttp.ClientIPVarKey: "192.0.2.1"}))
	service, release, err := app.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if got := service.FormFile(r, "a", "", "sub"); !got.Success || got.FullPath != "/static/file/content/sub/a.txt" {
		t.Errorf("got %+v", got)
	}
	wantStored(t, root, "file/content/sub/a.txt", "text")
	if want := (item.Actor{Origin: item.OriginGo, Client: "192.0.2.1"}); len(observer.all) != 1 || observer.all[0] != want {
		t.Errorf("on behalf of %v, want %v", observer.all, want)
	}
}

// TestKeptApp: an app of an earlier configuration uses the service of the running one, and none
// after Caddy has stopped.
func TestKeptApp(t *testing.T) { // not parallel: Caddy has globals
	root := t.TempDir()
	run := func(root string) *plugin.App {
		t.Helper()
		if err := caddy.Run(configOf(helped(root, ""))); err != nil {
			t.Fatal(err)
		}
		app, err := plugin.Active()
		if err != nil {
			t.Fatal(err)
		}
		return app
	}
	kept := run(t.TempDir())
	run(root)
	service, release, err := kept.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	if got := service.FormFile(formRequest(t), "a", "", ""); !got.Success {
		t.Errorf("got %+v", got)
	}
	release()
	wantStored(t, root, "file/content/a.txt", "text")
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := kept.Acquire(); err == nil {
		t.Error("there is a service")
	}
	if got := service.FormFile(formRequest(t), "a", "", ""); got.Success || got.Message != "the media service does not run" {
		t.Errorf("got %+v", got)
	}
}
