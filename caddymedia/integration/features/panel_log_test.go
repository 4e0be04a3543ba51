package features_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestPanelLogsChanges: each change is one line, with the user and without the body.
func TestPanelLogsChanges(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	p.Put(t, http.StatusCreated, "file_aliases/new", `{"value":{"prefix":"a-value-of-an-option"}}`)
	p.Must(t, http.StatusPreconditionFailed, http.MethodPut, "config/file_aliases/new", `{"value":{}}`, "If-Match", `"x"`)
	p.WaitForLog(t, `"result":412`)
	var lines []string
	for line := range strings.Lines(p.Logged(t)) {
		if strings.Contains(line, "change in the panel") {
			lines = append(lines, line)
		}
		if strings.Contains(line, "a-value-of-an-option") {
			t.Errorf("logged: %s", line)
		}
	}
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2: %q", len(lines), lines)
	}
	for _, want := range []string{`"user":"admin"`, `"what":"PUT"`, `"section":"file_aliases"`, `"name":"new"`, `"client":"127.0.0.1"`, `"result":201`} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("%s lacks %s", lines[0], want)
		}
	}
}
