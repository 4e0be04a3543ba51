package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// conformance is the test of the driver in a module of its own.
const conformance = `package shelf

import (
	"log/slog"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

func TestConformance(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{
		New: func(t *testing.T) storagedrivers.Driver {
			d, err := new(Config).NewDriver(slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		MaxMemory: 512 << 20, // the objects are in it
	})
}

func TestRegistered(t *testing.T) {
	if _, err := caddy.GetModule("media.storages.shelf"); err != nil {
		t.Error(err)
	}
}
`

// service is the test of a program in a module of its own, without Caddy, whose driver and token
// store are its own too. The store is that of the example of tokentest.
const service = `package shelf_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/memory"
)

type driver struct{ *memory.Driver }

func TestDriver(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{
		New:       func(*testing.T) storagedrivers.Driver { return driver{memory.New()} },
		MaxMemory: 512 << 20,
	})
}

type observer chan media.Event

func (o observer) Observe(_ context.Context, event media.Event) { o <- event }

func TestService(t *testing.T) {
	seen := make(observer, 10)
	running, err := media.New(media.Config{
		Storages:    []media.Storage{{Name: "default", Driver: driver{memory.New()}, SubFolderFormat: "/"}},
		FileAliases: map[string]*media.FileAlias{"content": {Extensions: []string{"txt"}}},
		Accounts:    map[string]*media.Account{"site": {PasswordHash: "word"}},
		Comparer:    tokens.CompareFunc(func(hashed, password []byte) (bool, error) { return bytes.Equal(hashed, password), nil }),
		Tokens:      newDrawer(),
		Observer:    seen,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	running.Start()
	server := httptest.NewServer(mediahttp.New(running, mediahttp.Options{}))
	defer server.Close()

	var login struct{ Token string }
	ask(t, server, "/api/auth/generateToken", "", "application/x-www-form-urlencoded", strings.NewReader("api_key=site&password=word"), &login)
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("files[]", "a.txt")
	if err == nil {
		_, err = io.WriteString(part, "text")
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	var answer struct {
		Result []struct{ Filename string }
	}
	ask(t, server, "/api/upload/file", "Bearer "+login.Token, w.FormDataContentType(), &form, &answer)
	if len(answer.Result) != 1 || answer.Result[0].Filename != "a.txt" {
		t.Errorf("stored %+v", answer)
	}
	var events []media.EventName
	for len(seen) > 0 {
		events = append(events, (<-seen).Name)
	}
	if len(events) != 2 || events[0] != media.LoggedIn || events[1] != media.Stored {
		t.Errorf("seen %q", events)
	}
}

func ask(t *testing.T, server *httptest.Server, path, authorization, contentType string, body io.Reader, answer any) {
	r, err := http.NewRequest(http.MethodPost, server.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", authorization)
	r.Header.Set("Content-Type", contentType)
	got, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != http.StatusOK || json.Unmarshal(text, answer) != nil {
		t.Fatalf("%s: %s %s, %v", path, got.Status, text, err)
	}
}

func TestWithoutCaddy(t *testing.T) {
	list, err := exec.Command("go", "list", "-deps", "-test", ".").Output()
	if err != nil || strings.Contains(string(list), "caddyserver/caddy") {
		t.Errorf("Caddy is built in, %v", err)
	}
}
`

// inModule runs the tests of a module of its own, made by commands from this folder. FOLDER is its
// place.
func inModule(t *testing.T, file, test, commands string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds for another module")
	}
	folder := filepath.Join(t.TempDir(), "shelf")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, file), []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(servers.Program(t, "sh"), "-ec", strings.ReplaceAll(commands+`
cd ../../..
cp go.mod go.sum FOLDER
checkout=$PWD
cd FOLDER
go mod edit -module example.com/shelf \
	-require github.com/caddymedia/media@v0.0.0 -replace github.com/caddymedia/media="$checkout"
go test`, "FOLDER", folder))
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestModule: the driver passes the conformance suite in another module, where one call registers
// it.
func TestModule(t *testing.T) {
	t.Parallel()
	inModule(t, "shelf_test.go", conformance,
		`sed -e 's/^package guest_test/package shelf/' -e 's/driver_test\.go/driver.go/' driver_test.go >FOLDER/driver.go`)
}

// TestProgram: a program in another module runs the service without Caddy, with a driver, a token
// store and an observer of its own.
func TestProgram(t *testing.T) {
	t.Parallel()
	inModule(t, "service_test.go", service,
		`sed 's/^package tokentest_test/package shelf_test/' ../../tokens/tokentest/example_test.go >FOLDER/store_test.go`)
}
