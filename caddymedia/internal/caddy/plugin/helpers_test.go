package plugin_test

import (
	"bytes"
	"context"
	"errors"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	_ "github.com/caddymedia/media/storagedrivers/local" // the default driver
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

// functions returns the template functions of a configuration with only the media app.
func functions(t *testing.T, app string) template.FuncMap {
	t.Helper()
	ctx, err := caddy.ProvisionContext(configOf(app))
	if err != nil {
		t.Fatal(err)
	}
	media, err := ctx.App("media")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := media.(*plugin.App).Cleanup(); err != nil {
			t.Error(err)
		}
	})
	module, err := ctx.LoadModuleByID("http.handlers.templates.functions.media", nil)
	if err != nil {
		t.Fatal(err)
	}
	return module.(*plugin.Functions).CustomTemplateFunctions()
}

func TestFunctions(t *testing.T) { // not parallel: Caddy has globals
	const photos = `"image_aliases": {"photos": {}}, "file_aliases": {"docs": {"cdn_base": "https://files.example.com"}}`
	const private = `"signing_key": ["a key of thirty-two bytes, or more"], "file_aliases": {"papers": {"private": {}}},
		"image_aliases": {"photos": {"private": {}, "renditions": {"thumb": {"width": 320}}}}`
	const sized = `"image_aliases": {"sized": {"renditions": {"thumb": {"width": 320}}}}`
	for _, c := range []struct {
		name, app, page string
		want            string
		fails           string
	}{
		{"default alias", `{}`, `{{image_path "content"}}/{{"a.jpg"}} {{file_path "content"}}`, "/static/img/content/a.jpg /static/file/content", ""},
		{"cdn_base", `{"cdn_base": "https://cdn.example.com/", ` + photos + `}`, `{{image_path "photos"}}`, "https://cdn.example.com/static/img/photos", ""},
		{"cdn_base of an alias", `{"cdn_base": "https://cdn.example.com", ` + photos + `}`, `{{file_path "docs"}}`, "https://files.example.com/static/file/docs", ""},
		{"unknown alias", `{}`, `{{image_path "nobody"}}`, "", `unknown alias "nobody"`},
		{"alias of the other kind", `{` + photos + `}`, `{{file_path "photos"}}`, "", `unknown alias "photos"`},
		{"alias of the other kind", `{` + photos + `}`, `{{image_path "docs"}}`, "", `unknown alias "docs"`},
		{"rendition", `{` + sized + `}`, `{{image_path "sized@thumb"}}/a.jpg`, "/static/img/sized@thumb/a.jpg", ""},
		{"unknown rendition", `{` + sized + `}`, `{{image_path "sized@other"}}`, "", `unknown rendition "other" of the alias "sized"`},
		{"rendition of files", `{}`, `{{file_path "content@thumb"}}`, "", `unknown rendition "thumb"`},
		{"srcset without an image", `{` + sized + `}`, `<{{image_srcset "sized" "none.jpg"}}>`, "<>", ""},
		{"size without an image", `{` + sized + `}`, `<{{with image_size "sized@thumb" "none.jpg"}}{{.Width}}{{end}}>`, "<>", ""},
		{"size of an unknown rendition", `{` + sized + `}`, `{{image_size "sized@other" "a.jpg"}}`, "", `unknown rendition "other"`},
		{"srcset of an unknown alias", `{}`, `{{image_srcset "nobody" "a.jpg"}}`, "", `unknown alias "nobody"`},
		{"signed image", `{` + private + `}`, `{{image_url "photos" "a b.jpg" "1h"}}`, "/static/img/photos/a%20b.jpg?expires=", ""},
		{"signed rendition", `{` + private + `}`, `{{image_url "photos@thumb" "a.jpg"}}`, "/static/img/photos@thumb/a.jpg?expires=", ""},
		{"signed file", `{"cdn_base": "https://cdn.example.com", ` + private + `}`, `{{file_url "papers" "a.pdf" "7d"}}`, "https://cdn.example.com/static/file/papers/a.pdf?expires=", ""},
		{"signed for too long", `{` + private + `}`, `{{file_url "papers" "a.pdf" "8d"}}`, "", "valid for 1 to 604800 seconds"},
		{"signed for no time", `{` + private + `}`, `{{file_url "papers" "a.pdf" "soon"}}`, "", "the lifetime is a duration such as 1h"},
		{"signed twice as long", `{` + private + `}`, `{{file_url "papers" "a.pdf" "1h" "1h"}}`, "", "one lifetime at most"},
		{"signed in a public alias", `{` + photos + `}`, `{{image_url "photos" "a.jpg" "1h"}}`, "", `the alias "photos" is not private`},
		{"signed in an unknown alias", `{}`, `{{file_url "papers" "a.pdf" "1h"}}`, "", `unknown alias "papers"`},
		{"no alias", `{}`, `{{image_path ""}}`, "", `unknown alias ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			page, err := template.New("page").Funcs(functions(t, c.app)).Parse(c.page)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			err = page.Execute(&got, nil)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("error %v, want %q", err, c.fails)
				}
				return
			}
			start, _, isSigned := strings.Cut(got.String(), "expires=")
			if isSigned {
				got.Reset()
				got.WriteString(start + "expires=")
			}
			if err != nil || got.String() != c.want {
				t.Errorf("got %q (%v), want %q", got.String(), err, c.want)
			}
		})
	}
}

func TestFunctionsCaddyfile(t *testing.T) {
	t.Parallel()
	for input, fails := range map[string]bool{
		"media": false, "media {\n}": false, "media content": true, "media {\n alias content\n}": true,
	} {
		if err := new(plugin.Functions).UnmarshalCaddyfile(caddyfile.NewTestDispenser(input)); (err != nil) != fails {
			t.Errorf("%q: error %v", input, err)
		}
	}
}

// TestSecrets: the secrets of storages and accounts are returned as configured and expanded.
func TestSecrets(t *testing.T) { // not parallel: Caddy has globals
	t.Setenv("MEDIA_TEST_SECRET", "expanded secret")
	t.Setenv("MEDIA_TEST_KEY", "expanded key of 32 bytes or more")
	app := provisioned(t, `{"signing_key": ["{env.MEDIA_TEST_KEY}", "literal key of 32 bytes, or more"], "storages": {
		"a": {"driver": {"name": "ftp", "address": "host", "user": "somebody", "password": "{env.MEDIA_TEST_SECRET}"}},
		"b": {"driver": {"name": "s3", "bucket": "b", "region": "r", "access_key_id": "id", "secret_access_key": "literal secret"}}},
		"image_aliases": {"one": {"storage": "a"}}, "accounts": {"shop": {"password_hash": "`+hash+`", "s3_secret": "secret of the S3 front"}}}`)
	got := app.Secrets()
	for _, want := range []string{"{env.MEDIA_TEST_SECRET}", "expanded secret", "literal secret", hash, "secret of the S3 front", "expanded key of 32 bytes or more", "literal key of 32 bytes, or more"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among the secrets", want)
		}
	}
	for _, plain := range []string{"host", "somebody", "b", "r"} {
		if slices.Contains(got, plain) {
			t.Errorf("%q is among the secrets", plain)
		}
	}
}

// TestNamedBy: accounts that may use all aliases are not returned.
func TestNamedBy(t *testing.T) {
	app := provisioned(t, `{"image_aliases": {"one": {}, "two": {}}, "accounts": {
		"c": {"password_hash": "`+hash+`", "aliases": ["one"]}, "a": {"password_hash": "`+hash+`", "aliases": ["two", "one"]},
		"b": {"password_hash": "`+hash+`"}}}`)
	if got := app.NamedBy("one"); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("one is named by %q", got)
	}
	if got := app.NamedBy("three"); len(got) != 0 {
		t.Errorf("three is named by %q", got)
	}
}

// TestTokenStore: the name is that of the configuration.
func TestTokenStore(t *testing.T) {
	for _, store := range []string{"memory", "bolt", "redis"} {
		app := provisioned(t, `{"tokens": {"store": "`+store+`"}}`)
		if got := app.TokenStore(); got != store {
			t.Errorf("%q is called %q", store, got)
		}
	}
}

// TestTryStorage: a trial uses its own driver and leaves nothing behind.
func TestTryStorage(t *testing.T) {
	root := filepath.Join(t.TempDir(), "new")
	driver := `{"name": "local", "root": "` + root + `"}`
	if err := caddy.Run(configOf(`{"storages": {"main": {"driver": ` + driver + `}}}`)); err != nil {
		t.Fatal(err)
	}
	defer caddy.Stop()
	app, err := plugin.Active()
	if err != nil {
		t.Fatal(err)
	}
	before := plugin.Pooled()
	raw := []byte(driver)
	trial, err := app.TryStorage(t.Context(), raw)
	if err != nil || !trial.Report.OK() || !trial.Driver.Local || trial.Features.Together.String() != "atomic" {
		t.Errorf("%+v, error %v", trial, err)
	}
	if string(raw) != driver || plugin.Pooled() != before {
		t.Errorf("%s, %d drivers and the like are open, want %d", raw, plugin.Pooled(), before)
	}
	if storage, _ := app.Service().Storage("main"); !storage.Probe(t.Context()).OK() {
		t.Error("the storage of the same place does not work any more")
	}
	left, err := os.ReadDir(root)
	if err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") }) {
		t.Errorf("left are %v, error %v", left, err)
	}
	for _, wrong := range []string{`{}`, `{"name": "floppy"}`, `{"name": "local"}`, `{"name": "ftp", "password": "a secret", "tls": "x", "address": "h", "user": "u"}`} {
		_, err := app.TryStorage(t.Context(), []byte(wrong))
		refused, ok := errors.AsType[*plugin.ConfigError](err)
		if !ok || strings.Contains(wrong, "a secret") != slices.Contains(refused.Secrets, "a secret") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
