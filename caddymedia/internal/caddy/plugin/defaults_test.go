package plugin_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// provisioned returns the provisioned app of a configuration. The app is not started.
func provisioned(t *testing.T, app string) *plugin.App {
	t.Helper()
	ctx, err := caddy.ProvisionContext(configOf(app))
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := ctx.App("media")
	if err != nil {
		t.Fatal(err)
	}
	media := loaded.(*plugin.App)
	t.Cleanup(func() {
		if err := media.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	return media
}

func alias(t *testing.T, app *plugin.App, kind item.Kind, name string) *item.Alias {
	t.Helper()
	a, ok := app.Service().Alias(kind, name)
	if !ok {
		t.Fatalf("there is no alias %q of %s", name, kind)
	}
	return a
}

// TestDefaults: an empty configuration has the documented defaults.
func TestDefaults(t *testing.T) { // not parallel: Caddy has globals
	for name, config := range map[string]string{
		"empty": `{}`,
		"zero": `{"cdn_base": "", "token_lifetime": 0, "accounts": {}, "storages": {}, "image_aliases": {}, "file_aliases": {},
			"limits": {"max_body": 0, "max_files": 0}}`,
		"null": `{"accounts": null, "storages": null, "limits": null}`,
	} {
		t.Run(name, func(t *testing.T) {
			app := provisioned(t, config)
			image, file := alias(t, app, item.Image, "content"), alias(t, app, item.File, "content")
			for _, a := range []*item.Alias{image, file} {
				if a.Storage.Name() != "default" || a.Prefix != string(a.Kind)+"/content" || a.BaseURL != "" {
					t.Errorf("%s: storage %q, prefix %q, address %q", a.Kind, a.Storage.Name(), a.Prefix, a.BaseURL)
				}
				if a.Overwrite || !a.Sanitize || a.SubFolder != (naming.Format{}) {
					t.Errorf("%s: overwrite %t, sanitize %t, sub folder %s", a.Kind, a.Overwrite, a.Sanitize, a.SubFolder)
				}
				if a.CacheControl != "public, max-age=31536000, immutable" {
					t.Errorf("%s: Cache-Control %q", a.Kind, a.CacheControl)
				}
			}
			if image.MaxSize != 32<<20 || file.MaxSize != 2<<30 || app.Service().Limits().MaxBody != 4<<30 {
				t.Errorf("sizes %d, %d, %d", image.MaxSize, file.MaxSize, app.Service().Limits().MaxBody)
			}
			if want := (imaging.Options{}); image.Imaging != want { // the defaults of imaging
				t.Errorf("pictures %+v, want %+v", image.Imaging, want)
			}
			if image.WebP != nil || image.Negotiate || image.RenameMismatched {
				t.Errorf("without being asked to: %+v", image)
			}
			if want := (upload.Limits{MaxFiles: 200, MaxFields: 100, MaxFieldSize: 8 << 10, MaxPartHeader: 16 << 10}); app.Service().Uploader().Limits != want {
				t.Errorf("limits %+v, want %+v", app.Service().Uploader().Limits, want)
			}
			if got := slices.Sorted(maps.Keys(image.Extensions)); !slices.Equal(got, []string{"gif", "jpeg", "jpg", "png", "svg"}) {
				t.Errorf("extensions of pictures %v", got)
			}
			for ext := range file.Extensions {
				if naming.RestrictedExtension(ext) || naming.Extension("x."+ext) != ext {
					t.Errorf("%q is among the extensions of files", ext)
				}
			}
			if path, err := app.ImagePath("content"); err != nil || path != "/static/img/content" {
				t.Errorf("path of pictures %q, %v", path, err)
			}
			if _, err := app.FilePath("nobody"); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
				t.Errorf("path of an unknown alias: %v", err)
			}
		})
	}
}

// TestDefaultStorage: the default storage is in Caddy's data folder and is created at its first
// use.
func TestDefaultStorage(t *testing.T) { // not parallel: Caddy has globals
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	storage := alias(t, provisioned(t, `{}`), item.Image, "content").Storage
	root := filepath.Join(caddy.AppDataDir(), "media", "storage")
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("%s is there before it is used: %v", root, err)
	}
	if _, err := storage.Put(t.Context(), "a.txt", strings.NewReader("text"), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(root, "a.txt")); err != nil || string(content) != "text" {
		t.Errorf("the file holds %q, %v", content, err)
	}
}

// TestSettings: configured values replace the defaults.
func TestSettings(t *testing.T) { // not parallel: Caddy has globals
	app := provisioned(t, `{
		"cdn_base": "https://cdn.example.com/",
		"storages": {"archive": {"driver": {"name": "local", "root": "/nowhere"}, "overwrite_strategy": "overwrite", "sanitize": false, "sub_folder_format": "/"}},
		"image_aliases": {"photos": {"prefix": "/pictures/", "max_size": 5, "max_pixels": 6, "svg": "off",
			"webp": {"quality": 70, "effort": "small"}, "negotiate": true, "strip_metadata": "on",
			"formats": ["webp"], "rename_mismatched": true,
			"renditions": {"thumb": {"width": 320, "height": 240, "fit": "cover", "format": "jpeg", "quality": 60, "eager": true},
				"b": {"width": 5, "format": "same", "fit": "contain"}, "a": {"height": 6, "format": "webp"}, "c": {"width": 7, "format": "png"}}}},
		"file_aliases": {"content": {"cdn_base": "https://files.example.com/base/", "cache_control": "no-store", "extensions": [".PDF", "csv"]}},
		"limits": {"max_body": 7, "max_files": 8, "max_fields": 9, "max_field_size": 10, "max_part_header": 11, "max_file_size": 12}
	}`)
	photos, content := alias(t, app, item.Image, "photos"), alias(t, app, item.File, "content")
	if photos.Storage.Name() != "archive" || photos.Prefix != "pictures" || !photos.Overwrite || photos.Sanitize ||
		photos.SubFolder.Folder(time.Now()) != "" || photos.CacheControl != "public, no-cache" {
		t.Errorf("photos %+v", photos)
	}
	if photos.MaxSize != 5 || photos.Imaging != (imaging.Options{MaxPixels: 6, SVG: imaging.SVGOff, Strip: imaging.StripOn}) {
		t.Errorf("photos %+v", photos)
	}
	if want := (render.Options{Quality: 70, Effort: webp.Small}); *photos.WebP != want || !photos.Negotiate {
		t.Errorf("photos %+v, variants %+v, want %+v", photos, photos.WebP, want)
	}
	if !photos.RenameMismatched || !photos.Extensions["webp"] || !photos.Extensions["jpg"] {
		t.Errorf("photos %+v", photos)
	}
	if want := []item.Rendition{
		{Name: "a", Box: scale.Box{Height: 6}, Format: imaging.WebP},
		{Name: "b", Box: scale.Box{Width: 5}},
		{Name: "c", Box: scale.Box{Width: 7}, Format: imaging.PNG},
		{Name: "thumb", Box: scale.Box{Width: 320, Height: 240, Cover: true}, Format: imaging.JPEG, Quality: 60, Eager: true},
	}; !slices.Equal(photos.Renditions, want) {
		t.Errorf("renditions %+v, want %+v", photos.Renditions, want)
	}
	if content.MaxSize != 12 || content.CacheControl != "no-store" || !maps.Equal(content.Extensions, map[string]bool{"pdf": true, "csv": true}) {
		t.Errorf("content %+v", content)
	}
	if want := (upload.Limits{MaxFiles: 8, MaxFields: 9, MaxFieldSize: 10, MaxPartHeader: 11}); app.Service().Uploader().Limits != want || app.Service().Limits().MaxBody != 7 {
		t.Errorf("limits %+v, want %+v", app.Service().Uploader().Limits, want)
	}
	for path, want := range map[string]string{
		must(app.ImagePath("photos")):                           "https://cdn.example.com/static/img/photos",
		must(app.FilePath("content")):                           "https://files.example.com/base/static/file/content",
		content.URL("http://request.example", "26-11/20/ä b.x"): "https://files.example.com/base/static/file/content/26-11/20/%C3%A4%20b.x",
	} {
		if path != want {
			t.Errorf("address %s, want %s", path, want)
		}
	}
	if _, ok := app.Service().Alias(item.File, "photos"); ok {
		t.Error("an alias for pictures is one for files too")
	}
}

func must(s string, err error) string {
	if err != nil {
		return err.Error()
	}
	return s
}

// TestSecretsStayPlaceholders: the configuration keeps its placeholders after they have been
// expanded for use.
func TestSecretsStayPlaceholders(t *testing.T) { // not parallel: Caddy has globals
	t.Setenv("MEDIA_TEST_HASH", hash)
	t.Setenv("MEDIA_TEST_SECRET", "expanded-secret")
	app := provisioned(t, `{
		"cdn_base": "https://{env.MEDIA_TEST_SECRET}.example",
		"accounts": {"shop": {"password_hash": "{env.MEDIA_TEST_HASH}"}},
		"storages": {"default": {"driver": {"name": "local", "root": "/nowhere/{env.MEDIA_TEST_SECRET}"}}},
		"tokens": {"store": "redis", "url": "redis://user:{env.MEDIA_TEST_SECRET}@127.0.0.1:1"}
	}`)
	written, err := json.Marshal(app)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"expanded-secret", "argon2id"} {
		if strings.Contains(string(written), secret) {
			t.Errorf("%q is in %s", secret, written)
		}
	}
	if path := must(app.ImagePath("content")); !strings.HasPrefix(path, "https://expanded-secret.example/") {
		t.Errorf("the address is %q", path)
	}
}

// TestProvisionTouchesNothing: Provision uses no disk and no network, starts no goroutine and
// leaves nothing open.
func TestProvisionTouchesNothing(t *testing.T) { // not parallel: Caddy has globals
	dir := t.TempDir()
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, filepath.Join(dir, name))
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	root := `"storages": {"one": {"driver": {"name": "local", "root": "` + dir + `/root"}}}`
	for name, config := range map[string]string{
		"defaults": `{}`,
		"bolt":     `{` + root + `, "tokens": {"store": "bolt", "path": "` + dir + `/deep/tokens.db"}}`,
		"memory":   `{` + root + `, "tokens": {"store": "memory"}, "accounts": {"shop": {"password_hash": "` + hash + `"}}}`,
		"redis":    `{"tokens": {"store": "redis", "addresses": ["` + listener.Addr().String() + `"]}}`,
		"error":    `{` + root + `, "accounts": {"shop": {}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			ctx, err := caddy.ProvisionContext(configOf(config))
			if (err != nil) != (name == "error") {
				t.Fatal(err)
			}
			if name != "error" {
				if plugin.Pooled() == 0 {
					t.Error("nothing is in use")
				}
				if err := goleak.Find(before); err != nil {
					t.Errorf("before the start: %v", err)
				}
				app, err := ctx.App("media")
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if err := app.(*plugin.App).Cleanup(); err != nil {
						t.Error(err)
					}
				}
			}
			if n := plugin.Pooled(); n != 0 {
				t.Errorf("%d entries stay in the pool", n)
			}
			if err := goleak.Find(before); err != nil {
				t.Errorf("after the clean-up: %v", err)
			}
		})
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			t.Errorf("%s was made", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if conn, err := listener.Accept(); !os.IsTimeout(err) {
		t.Errorf("somebody connected: %v, %v", conn, err)
	}
}

// TestNoDataFolderIsLogged: without HOME, the log says at the start what is kept in the folder that
// Caddy was started in, unless the configuration names the folder.
func TestNoDataFolderIsLogged(t *testing.T) { // not parallel: the environment is the process's
	for name, tt := range map[string]struct {
		data           string
		app            string
		storage, store int
	}{
		"defaults":    {"", `{}`, 1, 1},
		"bolt":        {"", `{"tokens": {"store": "bolt"}}`, 1, 1},
		"other store": {"", `{"tokens": {"store": "memory"}}`, 1, 0},
		"named": {"", `{
			"tokens": {"store": "bolt", "path": "tokens.db"},
			"storages": {"main": {"driver": {"name": "local", "root": "media"}}}
		}`, 0, 0},
		"relative": {"data", `{}`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", "")
			t.Setenv("XDG_DATA_HOME", tt.data)
			var buffer bytes.Buffer
			provisioned(t, tt.app).Warn(slog.New(slog.NewTextHandler(&buffer, nil)))
			log := buffer.String()
			for text, want := range map[string]int{"storage default { driver local <path> }": tt.storage, "tokens bolt <path>": tt.store} {
				if got := strings.Count(log, text); got != want {
					t.Errorf("%q is logged %d times, want %d: %s", text, got, want, log)
				}
			}
			if n := strings.Count(log, "neither HOME nor XDG_DATA_HOME is set"); n != tt.storage+tt.store {
				t.Errorf("%d warnings: %s", n, log)
			}
		})
	}
}

// TestHEICIsLogged: the log says at the start which aliases accept images that most browsers do not
// show.
func TestHEICIsLogged(t *testing.T) { // not parallel: Caddy provisions one configuration at a time
	var buffer bytes.Buffer
	provisioned(t, `{"image_aliases": {"phone": {"formats": ["webp", "HEIC"]}, "web": {"formats": ["avif"]}, "plain": {}}}`).
		Warn(slog.New(slog.NewTextHandler(&buffer, nil)))
	if log := buffer.String(); strings.Count(log, "Safari") != 1 || !strings.Contains(log, "image_alias=phone") {
		t.Errorf("log: %s", log)
	}
}

// TestTrustedHeaderIsLogged: the log says at each start that a header names users.
func TestTrustedHeaderIsLogged(t *testing.T) { // not parallel: Caddy provisions one configuration at a time
	for app, want := range map[string]int{
		`{"accounts": {"members": {"trust_header": "Remote-User"}}}`:  1,
		`{"accounts": {"members": {"trust": "{http.auth.user.id}"}}}`: 0,
		`{}`: 0,
	} {
		var buffer bytes.Buffer
		provisioned(t, app).Warn(slog.New(slog.NewTextHandler(&buffer, nil)))
		if log := buffer.String(); strings.Count(log, "trust_header=Remote-User") != want {
			t.Errorf("%s: %s", app, log)
		}
	}
}

// TestPublicPasswordIsLogged: the log of a start names the accounts and users with the password of
// Caddyfile.example, whose hash is in the configuration or in the environment.
func TestPublicPasswordIsLogged(t *testing.T) { // not parallel: Caddy provisions one configuration at a time
	t.Setenv("MEDIA_TEST_HASH", hash)
	other := hash[:len(hash)-1] + "A"
	for _, tt := range []struct {
		accounts string
		users    []map[string]string // of the panels
		want     string
	}{
		{`"new": {"password_hash": "` + other + `"}, "sso": {"trust": "{http.auth.user.id}"}`, []map[string]string{{"eva": other}}, ""},
		{`"try-out": {"password_hash": "` + hash + `"}`, nil, "accounts=[try-out] panel_users=[]"},
		{
			`"b": {"password_hash": "{env.MEDIA_TEST_HASH}"}, "a": {"password_hash": "` + hash + `"}, "c": {"password_hash": "` + other + `"}`,
			[]map[string]string{{"eva": other, "admin": hash}, {"bob": hash}},
			`accounts="[a b]" panel_users="[admin bob]"`,
		},
		{``, []map[string]string{{"admin": hash}}, "accounts=[] panel_users=[admin]"},
	} {
		var buffer bytes.Buffer
		app := provisioned(t, `{"tokens": {"store": "memory"}, "accounts": {`+tt.accounts+`}}`)
		for _, users := range tt.users {
			if _, err := app.Passwords("panel", users); err != nil {
				t.Fatal(err)
			}
		}
		app.Warn(slog.New(slog.NewTextHandler(&buffer, nil)))
		n := strings.Count(buffer.String(), "caddy media account")
		if log := buffer.String(); tt.want == "" && n != 0 || tt.want != "" && (n != 1 || !strings.Contains(log, tt.want)) {
			t.Errorf("%s: %s, want %s", tt.accounts, log, tt.want)
		}
	}
}
