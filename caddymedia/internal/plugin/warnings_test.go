package plugin_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

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
