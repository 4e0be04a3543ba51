package docs_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/test/testcaddy"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
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
	if strings.Contains(text, "\n\tmedia\n") && !regexp.MustCompile(`\t(respond|file_server|reverse_proxy)\b`).MatchString(text) {
		t.Error("a misspelt address is answered with 200: respond 404, or the site, is missing")
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
		value := "YSBzZWNyZXQgb2YgYSB0ZXN0"
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

// TestDocsComparison: each word in backticks that the comparison says of this program is an option,
// a driver, a token store, a directive or an endpoint. The row of storages has all drivers.
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

// TestSecurityRights: the threat model names every right that an account can have.
func TestSecurityRights(t *testing.T) {
	t.Parallel()
	_, holder, _ := strings.Cut(pages.Text(t, ".github/SECURITY.md"), "### The holder of a token or of an account\n")
	holder, _, _ = strings.Cut(holder, "\n### ")
	for _, right := range access.Rights() {
		if !strings.Contains(holder, "`"+string(right)+"`") {
			t.Errorf("it lacks %s", right)
		}
	}
}

// optionTable is a table of a page, between the comments that name its module and end it.
var optionTable = regexp.MustCompile(`(?s)(<!-- options ([a-z0-9]+) -->\n)(.*?)(<!-- end of options -->)`)

// TestDocsOptions: the pages have the options of every driver, of every token store, of downloads
// and of resumable uploads, as their code describes them.
func TestDocsOptions(t *testing.T) {
	t.Parallel()
	described := map[string]*options.Schema{
		"downloads": media.Schemas.Downloads, "resumable": media.Schemas.Resumable,
	}
	for _, info := range slices.Concat(caddy.GetModules("media.storages"), caddy.GetModules("media.tokens")) {
		if module, ok := info.New().(options.Described); ok && len(module.Schema().Options) > 0 {
			described[info.ID.Name()] = module.Schema()
		}
	}
	seen := map[string]bool{}
	for _, page := range pages.All(t) {
		text := pages.Text(t, page)
		want := optionTable.ReplaceAllStringFunc(text, func(table string) string {
			parts := optionTable.FindStringSubmatch(table)
			module := described[parts[2]]
			if module == nil || seen[parts[2]] {
				t.Errorf("%s: a table of %q, which does not describe itself or was there before", page, parts[2])
				return table
			}
			seen[parts[2]] = true
			return parts[1] + optionRows(module) + parts[4]
		})
		switch {
		case want == text:
		case *testcaddy.Update:
			if err := os.WriteFile(filepath.Join(pages.Root(t), page), []byte(want), 0o600); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("%s differs from what the modules say; this writes it:"+
				" go test -run DocsOptions ./caddymedia/integration/docs -update", page)
		}
	}
	for name := range described {
		if !seen[name] {
			t.Errorf("no table of the options of %s", name)
		}
	}
}

// TestDocsDrivers: the grammar names all drivers in the order of the panel, and each driver has a
// page with its title, which the page about storages links.
func TestDocsDrivers(t *testing.T) {
	t.Parallel()
	drivers := caddy.GetModules("media.storages")
	describe := func(info caddy.ModuleInfo) storagedrivers.Description {
		return info.New().(*modules.Driver).Describe()
	}
	slices.SortFunc(drivers, func(a, b caddy.ModuleInfo) int { return describe(b).Rank - describe(a).Rank })
	names := make([]string, len(drivers))
	storages := pages.Text(t, "storages.md")
	for i, info := range drivers {
		names[i] = info.ID.Name()
		file := "storage-" + names[i] + ".md"
		title := regexp.MustCompile(`(?i)^# (A )?` + regexp.QuoteMeta(describe(info).Title) + `\n`)
		if !title.MatchString(pages.Text(t, file)) {
			t.Errorf("%s is not called %q", file, describe(info).Title)
		}
		if !strings.Contains(storages, "]("+file+")") {
			t.Errorf("storages.md does not link %s", file)
		}
	}
	want := strings.Join(names, "|") + " ["
	if !strings.Contains(pages.Text(t, "configuration.md"), want) {
		t.Errorf("the drivers are not %q", want)
	}
}

func optionRows(s *options.Schema) string {
	var table strings.Builder
	table.WriteString("| option | what it does |\n| --- | --- |\n")
	for _, o := range s.Documented().Options {
		fmt.Fprintf(&table, "| `%s` | %s |\n", o.Name, strings.ReplaceAll(optionCell(o), "|", `\|`))
	}
	return table.String()
}

// optionCell returns the full description of an option, in the words of a Caddyfile.
func optionCell(o options.Option) string {
	cell := o.Help
	if o.Type == "word" && slices.ContainsFunc(o.Words, func(w string) bool { return !strings.Contains(cell, "`"+w+"`") }) {
		cell += " One of `" + strings.Join(o.Words, "`, `") + "`."
	}
	if o.Required {
		cell += " Required."
	}
	if o.Default != "" {
		cell += " Default: " + o.Default + "."
	}
	if o.Type == "switch" {
		cell = strings.NewReplacer("`true`", "`on`", "`false`", "`off`").Replace(cell)
	}
	return cell
}

// TestDocsSettings: the grammar of all options names those of the app, its accounts, storages,
// aliases and limits, and no others. A table describes each.
func TestDocsSettings(t *testing.T) {
	t.Parallel()
	_, grammar, _ := strings.Cut(pages.Text(t, "configuration.md"), "## All options")
	_, grammar, _ = strings.Cut(grammar, "\tmedia {\n")
	grammar, _, _ = strings.Cut(grammar, "\n\t}\n")
	lines, described := grammarLines(grammar), firstCells(t)
	// Arguments have no lines, and lines that begin a part of the configuration are no options of a
	// struct.
	for _, word := range []string{
		"account password_hash", "image_alias renditions", "image_alias checks", "file_alias checks", "resumable off", "storage cache folder", "file_alias private public",
	} {
		lines[word], described[word[strings.LastIndexByte(word, ' ')+1:]] = true, true
	}
	options := map[string]bool{
		"tokens": true, "account": true, "storage": true, "storage driver": true, "image_alias": true, "image_alias rendition": true,
		"image_alias check": true, "file_alias check": true, "file_alias": true, "limits": true, "downloads": true, "resumable": true,
	}
	s := media.Schemas
	addOptions(options, lines, "", s.Settings.Options)
	addOptions(options, lines, "account ", s.Account.Options)
	addOptions(options, lines, "storage ", s.Storage.Options)
	addOptions(options, lines, "image_alias ", s.ImageAlias.Options)
	addOptions(options, lines, "image_alias rendition ", s.Rendition.Options)
	addOptions(options, lines, "image_alias check ", s.Check.Options)
	addOptions(options, lines, "file_alias ", s.FileAlias.Options)
	addOptions(options, lines, "file_alias check ", s.Check.Options)
	addOptions(options, lines, "limits ", s.Limits.Options)
	addOptions(options, lines, "downloads ", s.Downloads.Options)
	addOptions(options, lines, "resumable ", s.Resumable.Options)
	for option := range options {
		if !lines[option] {
			t.Errorf("the grammar lacks %s", option)
		}
		if name := option[strings.LastIndexByte(option, ' ')+1:]; !described[name] {
			t.Errorf("no table has %s", option)
		}
	}
	for line := range lines {
		if !options[line] {
			t.Errorf("the grammar has %s, which is no option", line)
		}
	}
}

// addOptions adds options, with those of their blocks if the grammar has the blocks.
func addOptions(all, lines map[string]bool, block string, some []options.Option) {
	for _, o := range some {
		all[block+o.Name] = true
		inner := block + o.Name + " "
		if slices.ContainsFunc(o.Options, func(in options.Option) bool { return lines[inner+in.Name] }) {
			addOptions(all, lines, inner, o.Options)
		}
	}
}

// firstCells returns the names in code in the first cells of all tables.
func firstCells(t *testing.T) map[string]bool {
	t.Helper()
	row, name, names := regexp.MustCompile(`(?m)^\|([^|]+)\|`), regexp.MustCompile("`([^` ]+)[^`]*`"), map[string]bool{}
	for _, page := range pages.All(t) {
		for _, cells := range row.FindAllStringSubmatch(pages.Text(t, page), -1) {
			for _, found := range name.FindAllStringSubmatch(cells[1], -1) {
				names[found[1]] = true
			}
		}
	}
	return names
}

// grammarLines returns the first words of the lines of a grammar, each behind the words of its
// blocks.
func grammarLines(grammar string) map[string]bool {
	lines, blocks := map[string]bool{}, []string{""}
	for line := range strings.Lines(grammar) {
		words := strings.Fields(line)
		block := blocks[len(blocks)-1]
		switch words[0] {
		case "}":
			blocks = blocks[:len(blocks)-1]
			continue
		case "...":
			continue
		}
		lines[block+words[0]] = true
		if words[len(words)-1] == "{" {
			blocks = append(blocks, block+words[0]+" ")
		}
	}
	return lines
}

// TestDocsSiteLimit: with the documented limit of a site, a body that is too long is refused in the
// form of the service, by Caddy or, if its length is not known before, by the service.
func TestDocsSiteLimit(t *testing.T) {
	limit := pages.Example(t, "troubleshooting.md", "caddyfile", "request_body")
	s := site.Start(t, site.Basic, strings.ReplaceAll(limit, "50MB", "1KB")+"media")
	header := site.Merged(s.Credentials(t), site.FormType)
	form := site.Form(site.File("a.txt", strings.Repeat("long ", 500)))
	for name, body := range map[string]io.Reader{"known": strings.NewReader(form), "chunked": io.MultiReader(strings.NewReader(form))} {
		r := s.Send(t, s.Client, s.Request(t, http.MethodPost, "/api/upload/file", header, body))
		failures := r.Failures(t, http.StatusRequestEntityTooLarge)
		if len(failures) != 1 || !strings.HasPrefix(failures[0].Message, "the request is larger than ") ||
			r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %+v, %v", name, failures, r.Header)
		}
	}
}
