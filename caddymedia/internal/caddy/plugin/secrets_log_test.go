package plugin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/logging"

	_ "github.com/caddymedia/media/caddymedia/drivers/s3"
	"github.com/caddymedia/media/caddymedia/internal/test/testcaddy"
)

// loadLogged runs a configuration of the app until the end of the test, and returns the path of its
// log.
func loadLogged(t *testing.T, app map[string]any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	config, err := json.Marshal(map[string]any{
		"admin": map[string]any{"disabled": true, "config": map[string]any{"persist": false}},
		"logging": map[string]any{"logs": map[string]any{
			"default": map[string]any{"writer": map[string]any{"output": "file", "filename": path}},
		}},
		"apps": map[string]any{"media": app},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return path
}

// waitForLog returns the log as soon as it contains text.
func waitForLog(t *testing.T, path, text string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		log, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(log), text) {
			return string(log)
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %q in the log: %s", text, log)
		}
	}
}

// TestLogHidesSecrets: a secret that a server repeats in its error message is redacted in the log.
func TestLogHidesSecrets(t *testing.T) { // not parallel: Caddy has globals
	const token = "session-token-of-the-test"
	t.Setenv("TEST_TOKEN", token)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Error><Code>InvalidToken</Code><Message>bad token %s</Message></Error>", r.Header.Get("X-Amz-Security-Token"))
	}))
	defer server.Close()
	path := loadLogged(t, map[string]any{"storages": map[string]any{"main": map[string]any{
		"driver": map[string]any{
			"name": "s3", "endpoint": server.URL, "path_style": true, "region": "test", "bucket": "media",
			"access_key_id": "key", "secret_access_key": "not sent", "session_token": "{env.TEST_TOKEN}",
		},
	}}})
	log := waitForLog(t, path, "InvalidToken")
	if strings.Contains(log, token) || !strings.Contains(log, "bad token ***") {
		t.Error(log)
	}
}

// TestMain keeps Caddy's files out of the user's home folder.
func TestMain(m *testing.M) { os.Exit(testcaddy.Run(m)) }
