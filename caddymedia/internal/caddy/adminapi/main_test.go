package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddymedia/media/caddymedia/drivers/azblob"
	_ "github.com/caddymedia/media/caddymedia/drivers/ftp"
	_ "github.com/caddymedia/media/caddymedia/drivers/gcs"
	_ "github.com/caddymedia/media/caddymedia/drivers/local"
	_ "github.com/caddymedia/media/caddymedia/drivers/redis"
	_ "github.com/caddymedia/media/caddymedia/drivers/s3"
	_ "github.com/caddymedia/media/caddymedia/drivers/sftp"
	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	_ "github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/test/testcaddy"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestMain(m *testing.M) {
	modules.RegisterDriver[foreign]("foreign", "a foreign storage")
	os.Exit(testcaddy.Run(m))
}

// foreign is a driver of another module. It stores in memory. If Fault is set, every operation
// fails, and the text of the error contains Word.
type foreign struct {
	Word  string `json:"word,omitempty" option:"secret"`
	Fault string `json:"fault,omitempty"`
}

var foreignOptions = options.Of[foreign]()

func (*foreign) Schema() *options.Schema { return foreignOptions }

func (*foreign) Complete() error { return nil }

func (f *foreign) Location() storagedrivers.Location {
	return storagedrivers.Location{Backend: "foreign:" + f.Fault}
}

func (f *foreign) Describe() storagedrivers.Description {
	return storagedrivers.Description{Title: "Foreign", Noun: "place", Where: "somewhere"}
}

func (f *foreign) NewDriver(*slog.Logger) (storagedrivers.Driver, error) {
	driver := memory.New()
	driver.Fail = func(string, string) error {
		sentinel, ok := map[string]error{
			"unavailable": storagedrivers.ErrUnavailable, "full": storagedrivers.ErrNoSpace,
			"denied": fs.ErrPermission, "strange": errors.New("strange"),
		}[f.Fault]
		if !ok {
			return nil
		}
		return fmt.Errorf("%w: %s", sentinel, f.Word)
	}
	return ownedDriver{driver}, nil
}

// lastOwner is the owner of the last operation of any ownedDriver on an object.
var lastOwner atomic.Value

// ownedDriver records the owners of its operations.
type ownedDriver struct{ *memory.Driver }

func (d ownedDriver) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	lastOwner.Store(storagedrivers.Owner(ctx))
	return d.Driver.Stat(ctx, key)
}

func (d ownedDriver) Open(ctx context.Context, key string, r storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	lastOwner.Store(storagedrivers.Owner(ctx))
	return d.Driver.Open(ctx, key, r)
}

// hash is the hash of an unknown password.
const hash = "$argon2id$v=19$m=47104,t=1,p=1$A4jf1aqXBp1xxJ37lPh12A$WaFuBSrB5SmdEcA4byiDJ83t54g74DSO4UiWcMTjXHQ"

// load runs Caddy with a configuration of the media app until the test ends. $ROOT in it stands for
// a folder of the test.
func load(t testing.TB, app string) (root string) {
	t.Helper()
	root = t.TempDir()
	loadAdmin(t, strings.ReplaceAll(app, "$ROOT", root), `{"disabled": true, "config": {"persist": false}}`)
	return root
}

func loadAdmin(t testing.TB, app, admin string) {
	t.Helper()
	if !strings.Contains(app, `"tokens"`) {
		app = strings.Replace(app, "{", `{"tokens": {"store": "memory"}, `, 1)
		app = strings.Replace(app, ", }", "}", 1)
	}
	config := fmt.Sprintf(`{"admin": %s, "apps": {"media": %s},
		"logging": {"logs": {"default": {"writer": {"output": "discard"}}}}}`, admin, app)
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Errorf("stopping Caddy: %v", err)
		}
	})
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
}

// stop ends Caddy before the test ends.
func stop() error { return caddy.Stop() }

// ask sends a request to a handler and returns the answer.
func ask(t testing.TB, handler http.Handler, method, address, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, address, strings.NewReader(body)).WithContext(t.Context())
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// get returns the decoded answer to a successful GET.
func get[T any](t testing.TB, address string) T {
	t.Helper()
	return decoded[T](t, ask(t, New(), http.MethodGet, address, ""), http.StatusOK)
}

// decoded decodes the JSON of an answer; unknown fields fail the test.
func decoded[T any](t testing.TB, w *httptest.ResponseRecorder, status int) T {
	t.Helper()
	var v T
	if w.Code != status || w.Header().Get("Content-Type") != "application/json" ||
		w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Fatalf("status %d, want %d, headers %v: %s", w.Code, status, w.Header(), w.Body)
	}
	decoder := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return v
}

// wantError checks that an answer is an error whose text contains text.
func wantError(t testing.TB, w *httptest.ResponseRecorder, status int, text string) {
	t.Helper()
	got := decoded[struct {
		Error  string `json:"error"`
		Option string `json:"option"`
	}](t, w, status)
	if !strings.Contains(got.Error, text) || got.Error == "" {
		t.Errorf("error %q, want one with %q", got.Error, text)
	}
}

// files writes files of one byte into a folder.
func files(t testing.TB, folder string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
