package web_test

import (
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"strings"
	"testing"
	"text/template"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestEscapedNamesAreText: a name in a snippet is text, both in HTML and in a template of Caddy.
func TestEscapedNamesAreText(t *testing.T) {
	t.Parallel()
	names := []string{
		"{{env `HOME`}}.txt", `{{readFile "secrets.txt"}}.txt`, "${`x`}.txt", `<img src=x onerror=alert(1)>'".txt`,
		"a &amp; b &#123;.txt", "plain.txt", "Žofie (1).txt",
	}
	list, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	script := "import { escaped } from './lib/format.js'; console.log(JSON.stringify(" + string(list) + ".map(escaped)));"
	out, err := exec.CommandContext(t.Context(), servers.Program(t, "node"), "--input-type=module", "--eval", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	var escaped []string
	if err := json.Unmarshal(out, &escaped); err != nil || len(escaped) != len(names) {
		t.Fatalf("%v: %s", err, out)
	}
	for i, name := range names {
		if html.UnescapeString(escaped[i]) != name || strings.ContainsAny(escaped[i], "{}`<>\"'") {
			t.Errorf("%s became %s", name, escaped[i])
		}
		page, err := template.New("").Parse(escaped[i])
		var b strings.Builder
		if err != nil || page.Execute(&b, nil) != nil || b.String() != escaped[i] {
			t.Errorf("%s is a template: %v", escaped[i], err)
		}
	}
}

// TestNameRules: forms refuse the names that the service refuses.
func TestNameRules(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("lib/names.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{media.Names.Pattern, media.APIKeys.Pattern} {
		if !strings.Contains(string(source), pattern+"$/") {
			t.Errorf("names.js has no rule %s", pattern)
		}
	}
}
