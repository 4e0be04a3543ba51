package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddymedia/media/caddymedia"
)

// runCaddy is the variable that makes the test binary a Caddy with the plug-in, so that
// tests of a whole process need no build of their own:
//
//	cmd := exec.Command(os.Args[0], "run", "--config", caddyfile)
//	cmd.Env = append(os.Environ(), runCaddy+"=1")
const runCaddy = "MEDIA_TEST_RUN_CADDY"

func TestMain(m *testing.M) {
	if os.Getenv(runCaddy) == "1" {
		caddycmd.Main()
		return
	}
	os.Exit(runTests(m))
}

// runTests keeps Caddy away from the folders of whoever runs the tests.
func runTests(m *testing.M) int {
	home, err := os.MkdirTemp("", "media-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(home)
	for name, folder := range map[string]string{"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config"} {
		if err := os.Setenv(name, filepath.Join(home, folder)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	// Caddy has computed these two before the variables were set.
	caddy.ConfigAutosavePath = filepath.Join(home, "config", "autosave.json")
	caddy.DefaultStorage.Path = caddy.AppDataDir()
	return m.Run()
}

// skip ends a test for which this machine has not what it takes, unless
// MEDIA_TEST_MUST_RUN demands that every test runs.
func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("MEDIA_TEST_MUST_RUN") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
