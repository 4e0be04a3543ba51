package docs_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestDocsComparison: each word in backticks that the comparison says of this program is an option, a
// driver, a token store, a directive or an endpoint. The row of storages has all drivers.
func TestDocsComparison(t *testing.T) {
	t.Parallel()
	known := map[string]bool{
		// What a Config has beside the options of its schemas.
		"account": true, "rendition": true, "resumable": true, "media_admin": true,
	}
	for _, schema := range []*options.Schema{
		media.Schemas.Settings, media.Schemas.Account, media.Schemas.Storage, media.Schemas.ImageAlias, media.Schemas.FileAlias,
	} {
		for _, option := range schema.Documented().Options {
			known[option.Name] = true
		}
	}
	for _, info := range slices.Concat(caddy.GetModules("media.storages"), caddy.GetModules("media.tokens")) {
		known[info.ID.Name()] = true
	}
	var api struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(mediahttp.OpenAPI, &api); err != nil {
		t.Fatal(err)
	}
	for path, methods := range api.Paths {
		for method := range methods {
			known[strings.ToUpper(method)+" "+path] = true
		}
	}
	storages := ""
	for row := range strings.Lines(pages.Text(t, "comparison.md")) {
		cells := strings.Split(row, " | ")
		if len(cells) != 3 || !strings.HasPrefix(row, "| ") {
			continue
		}
		for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			if !known[word[1]] {
				t.Errorf("%s: there is no %s", strings.Trim(cells[0], "| "), word[1])
			}
		}
		if cells[0] == "| storages" {
			storages = cells[1]
		}
	}
	for _, info := range caddy.GetModules("media.storages") {
		if !strings.Contains(storages, "`"+info.ID.Name()+"`") {
			t.Errorf("the row of storages lacks %s", info.ID.Name())
		}
	}
}
