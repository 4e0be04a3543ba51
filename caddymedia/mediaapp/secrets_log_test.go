package mediaapp_test

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

	_ "github.com/caddymedia/media/storagedrivers/s3"
)

// TestLogHidesSecrets: a secret that a server repeats in its error message is redacted in the log.
func TestLogHidesSecrets(t *testing.T) { // not parallel: Caddy has globals
	const token = "session-token-of-the-test"
	t.Setenv("TEST_TOKEN", token)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Error><Code>InvalidToken</Code><Message>bad token %s</Message></Error>", r.Header.Get("X-Amz-Security-Token"))
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "log")
	config, err := json.Marshal(map[string]any{
		"admin": map[string]any{"disabled": true, "config": map[string]any{"persist": false}},
		"logging": map[string]any{"logs": map[string]any{
			"default": map[string]any{"writer": map[string]any{"output": "file", "filename": path}},
		}},
		"apps": map[string]any{"media": map[string]any{"storages": map[string]any{"main": map[string]any{
			"driver": map[string]any{
				"name": "s3", "endpoint": server.URL, "path_style": true, "region": "test", "bucket": "media",
				"access_key_id": "key", "secret_access_key": "not sent", "session_token": "{env.TEST_TOKEN}",
			},
		}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	defer caddy.Stop()
	var log string
	for deadline := time.Now().Add(time.Minute); !strings.Contains(log, "InvalidToken"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no error of the server in the log: %s", log)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		log = string(raw)
	}
	if strings.Contains(log, token) || !strings.Contains(log, "bad token ***") {
		t.Error(log)
	}
}
