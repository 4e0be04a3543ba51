package docs_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

var (
	variable = regexp.MustCompile(`\{env\.([A-Z0-9_]+)\}`)
	// grammar is a placeholder such as <name> or [<name>].
	grammar = regexp.MustCompile(`<[a-z_]+(\.\.\.)?>`)
	// siteLine is the first line of a site block.
	siteLine = regexp.MustCompile(`^(https?://)?[a-z0-9.]*[.:][a-z0-9]+ \{`)
)

// The first words of blocks that belong inside the global option media, and of global options.
const (
	mediaWords  = " storage image_alias file_alias tokens account limits downloads resumable cors signing_key "
	globalWords = " log servers "
)

// TestDocsCaddyfiles adapts every Caddyfile in the documentation. Whole ones are validated as by
// `caddy validate`: their modules are provisioned, without a connection to any server. The examples
// of storages run on real servers in another test.
func TestDocsCaddyfiles(t *testing.T) {
	for _, page := range append(pages.All(t), githubPages(t)...) {
		for _, block := range pages.Blocks(t, page) {
			if block.Language != "caddyfile" || grammar.MatchString(block.Text) {
				continue
			}
			t.Run(fmt.Sprintf("%s:%d", filepath.Base(page), block.Line), func(t *testing.T) {
				adaptAndValidate(t, block.Text)
			})
		}
	}
}

func adaptAndValidate(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "\n\tmedia\n") && !strings.Contains(text, "\trespond ") {
		t.Error("a misspelt address is answered with 200: respond 404 is missing")
	}
	config, whole := text, strings.HasPrefix(text, "{") || siteLine.MatchString(text)
	if first, _, _ := strings.Cut(text, " "); !whole {
		config = wrap(first, text)
	}
	if strings.Contains(text, "\n\tpeople\n") {
		t.Skip("its directive is that of the program that another test builds")
	}
	folder := t.TempDir()
	config = strings.ReplaceAll(config, "/var/log/caddy", folder)
	for _, match := range variable.FindAllStringSubmatch(text, -1) {
		value := "c2VjcmV0"
		if strings.HasSuffix(match[1], "_HASH") || strings.HasPrefix(match[1], "PANEL_") {
			value = site.CheapHash
		}
		t.Setenv(match[1], value)
	}
	result, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(config), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatalf("%v in\n%s", err, config)
	}
	for _, warning := range warnings {
		if whole {
			t.Errorf("%v in\n%s", warning, config)
		}
	}
	if !whole || strings.Contains(text, "/etc/caddy/") { // it names a file that is not there
		return
	}
	var parsed caddy.Config
	if err := json.Unmarshal(result, &parsed); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&parsed); err != nil {
		t.Errorf("%v in\n%s", err, config)
	}
}

// wrap returns a Caddyfile with a block where it belongs, by its first word.
func wrap(first, text string) string {
	switch first = " " + first + " "; {
	case strings.Contains(mediaWords, first):
		return "{\nmedia {\n" + text + "}\n}\n:80 {\nmedia\n}\n"
	case strings.Contains(globalWords, first), strings.HasPrefix(text, "log audit"):
		return "{\n" + text + "}\n:80 {\nmedia\n}\n"
	default:
		return ":80 {\n" + text + "}\n"
	}
}
