package site

import (
	"os"
	"strconv"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddymedia/media/caddymedia"
	"github.com/caddymedia/media/caddymedia/internal/test/testcaddy"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// RunCaddy is the environment variable that makes the test binary a Caddy with the plug-in, so that
// tests of a whole process need no separate build:
//
//	cmd := exec.Command(os.Args[0], "run", "--config", caddyfile)
//	cmd.Env = append(os.Environ(), site.RunCaddy+"=1")
const RunCaddy = "MEDIA_TEST_RUN_CADDY"

// Main runs the tests of a package, or a Caddy if RunCaddy is set.
func Main(m *testing.M) {
	if os.Getenv(RunCaddy) == "1" {
		caddycmd.Main()
		return
	}
	drivertest.Waiting()
	os.Exit(testcaddy.Run(m))
}

// Number returns few, or the number in an environment variable that makes a run longer.
func Number(t testing.TB, variable string, few int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Skip skips a test because something is missing on this machine, unless MEDIA_TEST_MUST_RUN
// requires every test.
func Skip(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("MEDIA_TEST_MUST_RUN") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
