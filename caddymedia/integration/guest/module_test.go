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

// TestModule: the driver passes the conformance suite in another module, where one call registers it.
func TestModule(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the suite for another module")
	}
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "shelf")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "shelf_test.go"), []byte(conformance), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(servers.Program(t, "sh"), "-ec", strings.ReplaceAll(`
sed -e 's/^package guest_test/package shelf/' -e 's/driver_test\.go/driver.go/' driver_test.go >FOLDER/driver.go
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
