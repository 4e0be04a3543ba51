package mediacmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/mediaapp"
)

// configured writes a configuration file with two storages in folders, main and broken, whose root
// is a file, and returns its name and the folder of main.
func configured(t *testing.T) (file, root string) {
	t.Helper()
	folder := t.TempDir()
	root = filepath.Join(folder, "main")
	if err := os.WriteFile(filepath.Join(folder, "broken"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	storage := func(name string) *mediaapp.Storage {
		driver, err := json.Marshal(map[string]string{"name": "local", "root": filepath.Join(folder, name)})
		if err != nil {
			t.Fatal(err)
		}
		return &mediaapp.Storage{DriverRaw: driver}
	}
	config, err := json.Marshal(map[string]any{"apps": map[string]any{"media": map[string]any{
		"storages":      map[string]any{"main": storage("main"), "broken": storage("broken")},
		"image_aliases": map[string]any{"content": map[string]any{"storage": "main", "webp": map[string]any{}}},
		"file_aliases":  map[string]any{"docs": map[string]any{"storage": "main"}, "lost": map[string]any{"storage": "broken"}},
		"tokens":        map[string]string{"store": "memory"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(folder, "caddy.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, root
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
