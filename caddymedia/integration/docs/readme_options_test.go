package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/testcaddy"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// optionTable is a table of README.md, between the comments that name its module and end it.
var optionTable = regexp.MustCompile(`(?s)(<!-- options ([a-z0-9]+) -->\n)(.*?)(<!-- end of options -->)`)

// TestReadmeOptions: README.md has the options of every driver, of every token store and of
// downloads, as their code describes them.
func TestReadmeOptions(t *testing.T) {
	t.Parallel()
	name := "../../../README.md"
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]*options.Schema{"downloads": mediaapp.Schemas().Downloads}
	for _, info := range slices.Concat(caddy.GetModules("media.storages"), caddy.GetModules("media.tokens")) {
		if module, ok := info.New().(options.Described); ok {
			described[info.ID.Name()] = module.Schema()
		}
	}
	seen := map[string]bool{}
	want := optionTable.ReplaceAllStringFunc(string(content), func(table string) string {
		parts := optionTable.FindStringSubmatch(table)
		module := described[parts[2]]
		if module == nil || seen[parts[2]] {
			t.Errorf("table of %q, which does not describe itself or was there before", parts[2])
			return table
		}
		seen[parts[2]] = true
		return parts[1] + readmeTable(module) + parts[4]
	})
	for name := range described {
		if !seen[name] {
			t.Errorf("no table of the options of %s", name)
		}
	}
	switch {
	case want == string(content):
	case *testcaddy.Update:
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Error(err)
		}
	default:
		t.Error("README.md differs from what the modules say; this writes it:" +
			" go test -run ReadmeOptions ./caddymedia/integration/docs -update")
	}
}

// TestReadmeDrivers: README.md names all drivers in the order of the panel, and has a section with
// the title of each.
func TestReadmeDrivers(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	modules := caddy.GetModules("media.storages")
	describe := func(info caddy.ModuleInfo) storagedrivers.Description {
		return info.New().(storagedrivers.Module).Describe()
	}
	slices.SortFunc(modules, func(a, b caddy.ModuleInfo) int { return describe(b).Rank - describe(a).Rank })
	names := make([]string, len(modules))
	for i, info := range modules {
		names[i] = info.ID.Name()
		heading := regexp.MustCompile(`(?mi)^#+ (A )?` + regexp.QuoteMeta(describe(info).Title) + `$`)
		if !heading.Match(content) {
			t.Errorf("no section %q", describe(info).Title)
		}
	}
	if want := strings.Join(names, "|") + " ["; !strings.Contains(string(content), want) {
		t.Errorf("the drivers are not %q", want)
	}
}

func readmeTable(s *options.Schema) string {
	var table strings.Builder
	table.WriteString("| option | what it does |\n| --- | --- |\n")
	for _, o := range s.Options {
		fmt.Fprintf(&table, "| `%s` | %s |\n", o.Name, strings.ReplaceAll(readmeCell(o), "|", `\|`))
	}
	return table.String()
}

// readmeCell returns the full description of an option, in the words of a Caddyfile.
func readmeCell(o options.Option) string {
	cell := o.Help
	if o.Type == options.Word && slices.ContainsFunc(o.Words, func(w string) bool { return !strings.Contains(cell, "`"+w+"`") }) {
		cell += " One of `" + strings.Join(o.Words, "`, `") + "`."
	}
	if o.Required {
		cell += " Required."
	}
	if o.Default != "" {
		cell += " Default: " + o.Default + "."
	}
	if o.Type == options.Switch {
		cell = strings.NewReplacer("`true`", "`on`", "`false`", "`off`").Replace(cell)
	}
	return cell
}
