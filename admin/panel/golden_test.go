package panel_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddymedia/media/admin/panel"
)

var update = flag.Bool("update", false, "write what the golden files hold now")

const (
	separator   = "----------\n"
	errorMarker = "ERROR: "
)

// TestGolden adapts every Caddyfile of testdata. Below its line of hyphens stands the JSON
// that it gives, or "ERROR: " and a part of the error.
func TestGolden(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.caddyfiletest")
	if err != nil || len(names) == 0 {
		t.Fatalf("golden files %q: %v", names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".caddyfiletest"), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			config, want, found := bytes.Cut(content, []byte(separator))
			if !found {
				t.Fatalf("no line %q", separator)
			}
			got := adapted(t, config)
			if bytes.HasPrefix(want, []byte(errorMarker)) {
				message := strings.TrimSpace(strings.TrimPrefix(string(want), errorMarker))
				if !bytes.HasPrefix(got, []byte(errorMarker)) || !bytes.Contains(got, []byte(message)) {
					t.Errorf("got %s, want an error with %q", got, message)
				}
				return
			}
			if bytes.HasPrefix(got, []byte(errorMarker)) {
				t.Fatalf("got %s", got)
			}
			if *update {
				if err := os.WriteFile(name, append(append(config, separator...), got...), 0o644); err != nil {
					t.Error(err)
				}
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			if !bytes.Equal(caddyfile.Format(config), config) {
				t.Errorf("not as `caddy fmt` has it; that is:\n%s", caddyfile.Format(config))
			}
		})
	}
}

// adapted gives the JSON of a Caddyfile, or its error.
func adapted(t *testing.T, config []byte) []byte {
	t.Helper()
	result, warnings, err := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}.Adapt(config, nil)
	if err != nil {
		return []byte(errorMarker + err.Error())
	}
	for _, warning := range warnings {
		t.Errorf("warning: %v", warning)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, result, "", "\t"); err != nil {
		t.Fatalf("%v in %q", err, result)
	}
	indented.WriteByte('\n')
	return indented.Bytes()
}
