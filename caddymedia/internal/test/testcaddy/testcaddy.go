// Package testcaddy holds helpers for tests that use Caddy in their own process: golden files of
// Caddyfiles, and one home for what Caddy stores. Tests that start a whole Caddy use
// integration/site. Begin with [Run].
package testcaddy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"

	_ "github.com/caddymedia/media/caddymedia/drivers/local" // the driver of the default storage
)

// Run runs the tests of a package with temporary data and configuration folders for Caddy.
func Run(m *testing.M) int {
	home, err := os.MkdirTemp("", "media-test-")
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
	// Caddy computed these two before the variables were set.
	caddy.ConfigAutosavePath = filepath.Join(home, "config", "autosave.json")
	caddy.DefaultStorage.Path = caddy.AppDataDir()
	return m.Run()
}
