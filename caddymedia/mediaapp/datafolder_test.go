package mediaapp_test

import (
	"strings"
	"testing"
)

// TestNoDataFolderIsLogged: without HOME, the log says at the start what is kept in the folder that
// Caddy was started in, unless the configuration names the folder.
func TestNoDataFolderIsLogged(t *testing.T) { // not parallel: Caddy has globals
	for name, tt := range map[string]struct {
		data           string
		app            map[string]any
		storage, store int
	}{
		"defaults":    {"", map[string]any{}, 1, 1},
		"bolt":        {"", map[string]any{"tokens": map[string]any{"store": "bolt"}}, 1, 1},
		"other store": {"", map[string]any{"tokens": map[string]any{"store": "memory"}}, 1, 0},
		"named": {"", map[string]any{
			"tokens":   map[string]any{"store": "bolt", "path": "tokens.db"},
			"storages": map[string]any{"main": map[string]any{"driver": map[string]any{"name": "local", "root": "media"}}},
		}, 0, 0},
		"relative": {"data", map[string]any{}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("HOME", "")
			t.Setenv("XDG_DATA_HOME", tt.data)
			log := waitForLog(t, loadLogged(t, tt.app), "") // it is written before the start has ended
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
