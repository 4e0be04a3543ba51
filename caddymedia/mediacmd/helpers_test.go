package mediacmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	_ "github.com/caddymedia/media/caddymedia/drivers/local"
	"github.com/caddymedia/media/caddymedia/internal/plugin"
)

// configured writes a configuration file with two storages in folders, main and broken, whose root
// is a file, and returns its name.
func configured(t *testing.T) (file string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "broken"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return configFile(t, folder, []string{"main", "broken"}, map[string]any{
		"image_aliases": map[string]any{"content": map[string]any{"storage": "main", "webp": map[string]any{}}},
		"file_aliases":  map[string]any{"docs": map[string]any{"storage": "main"}, "lost": map[string]any{"storage": "broken"}},
	})
}

// configFile writes a configuration file with storages in folders of their names, and with other
// options of the app. It returns the name of the file.
func configFile(t *testing.T, folder string, storages []string, app map[string]any) string {
	t.Helper()
	all := map[string]any{}
	for _, name := range storages {
		driver, err := json.Marshal(map[string]string{"name": "local", "root": filepath.Join(folder, name)})
		if err != nil {
			t.Fatal(err)
		}
		all[name] = &plugin.Storage{DriverRaw: driver}
	}
	app["storages"], app["tokens"] = all, map[string]string{"store": "memory"}
	config, err := json.Marshal(map[string]any{"apps": map[string]any{"media": app}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "caddy.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// stored creates objects of 1,536 bytes below root.
func stored(t *testing.T, root string, keys ...string) {
	t.Helper()
	for _, key := range keys {
		path := filepath.Join(root, key)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 1536), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a command and returns its output.
func run(t *testing.T, cmd *cobra.Command, args ...string) (out, messages string, err error) {
	t.Helper()
	var outs, errs bytes.Buffer
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&outs)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return outs.String(), errs.String(), err
}
