package testcaddy

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
)

// Update is the flag to rewrite golden files and the generated parts of documents.
var Update = flag.Bool("update", false, "rewrite golden files and the tables of the documentation")

const (
	separator   = "----------\n"
	errorMarker = "ERROR: "
)

// Golden adapts every Caddyfile in testdata. The text below its line of hyphens is the expected
// result. This is the whole JSON if it contains "apps", and otherwise the JSON of the media app.
// "ERROR: " and a part of the message stand for an error. With -update the JSON is rewritten.
func Golden(t *testing.T) {
	t.Helper()
	eachGolden(t, golden)
}

// GoldenApps calls check with the JSON of the media app of every Caddyfile in testdata that has
// one.
func GoldenApps(t *testing.T, check func(t *testing.T, app []byte)) {
	t.Helper()
	eachGolden(t, func(t *testing.T, _ string, config, want []byte) {
		t.Helper()
		if bytes.HasPrefix(want, []byte(errorMarker)) {
			return
		}
		if app := AdaptApp(t, string(config)); app != nil {
			check(t, app)
		}
	})
}

// AdaptApp returns the JSON of the media app of a Caddyfile, nil if it has none.
func AdaptApp(t *testing.T, config string) []byte {
	t.Helper()
	return adapted(t, []byte(config), false)
}

func eachGolden(t *testing.T, check func(t *testing.T, name string, config, want []byte)) {
	t.Helper()
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
			check(t, name, config, want)
		})
	}
}

func golden(t *testing.T, name string, config, want []byte) {
	t.Helper()
	got := adapted(t, config, bytes.Contains(want, []byte(`"apps": {`)))
	if bytes.HasPrefix(want, []byte(errorMarker)) {
		message := strings.TrimSpace(strings.TrimPrefix(string(want), errorMarker))
		if !bytes.HasPrefix(got, []byte(errorMarker)) || !bytes.Contains(got, []byte(message)) {
			t.Errorf("got %s, want an error with %q", got, message)
		}
		if bytes.Count(got, []byte(", at Caddyfile:")) > 1 {
			t.Errorf("%s names its line twice", got)
		}
		return
	}
	if bytes.HasPrefix(got, []byte(errorMarker)) {
		t.Fatalf("got %s", got)
	}
	if *Update {
		if err := os.WriteFile(name, append(append(config, separator...), got...), 0o600); err != nil {
			t.Error(err)
		}
		return
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if !bytes.Equal(caddyfile.Format(config), config) {
		t.Errorf("not formatted by `caddy fmt`; formatted:\n%s", caddyfile.Format(config))
	}
}

// adapted returns the JSON of a Caddyfile, or its error.
func adapted(t *testing.T, config []byte, whole bool) []byte {
	t.Helper()
	result, warnings, err := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}.Adapt(config, nil)
	if err != nil {
		return []byte(errorMarker + err.Error())
	}
	for _, warning := range warnings {
		t.Errorf("warning: %v", warning)
	}
	if !whole {
		var parsed struct {
			Apps struct {
				Media json.RawMessage `json:"media"`
			} `json:"apps"`
		}
		if err := json.Unmarshal(result, &parsed); err != nil {
			t.Fatal(err)
		}
		if result = parsed.Apps.Media; result == nil {
			return nil
		}
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, result, "", "\t"); err != nil {
		t.Fatalf("%v in %q", err, result)
	}
	indented.WriteByte('\n')
	return indented.Bytes()
}
