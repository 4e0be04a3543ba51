package docs_test

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
)

// TestDocsPackages: the tree in CONTRIBUTING.md has the folder of each package.
func TestDocsPackages(t *testing.T) {
	t.Parallel()
	_, tree, _ := strings.Cut(pages.Text(t, ".github/CONTRIBUTING.md"), "```\n")
	tree, _, _ = strings.Cut(tree, "```\n")
	words := map[string]bool{}
	for word := range strings.FieldsFuncSeq(tree, func(r rune) bool { return strings.ContainsRune(" ,;\n", r) }) {
		words[word] = true
	}
	// Their packages are alike, or helpers.
	whole := map[string]bool{"caddymedia/drivers": true, "caddymedia/integration": true, "storagedrivers/drivertest": true, "storagedrivers/internal": true}
	set := token.NewFileSet()
	for name, files := range goPackages(t, set) {
		folder, err := filepath.Rel(pages.Root(t), filepath.Dir(name))
		if err != nil {
			t.Fatal(err)
		}
		isTest := strings.HasSuffix(folder, "test") || !slices.ContainsFunc(files, func(file *ast.File) bool {
			return !strings.HasSuffix(set.File(file.Pos()).Name(), "_test.go")
		})
		for at := ""; !isTest && at != folder && !whole[at]; {
			segment, _, _ := strings.Cut(strings.TrimPrefix(folder, at+"/"), "/")
			at = path.Join(at, segment)
			if !words[segment+"/"] {
				t.Errorf("the tree lacks %s", at)
			}
		}
	}
}

// TestDocsPages: docs/README.md and README.md list each page. README.md leaves the pages of drivers
// to that of storages.
func TestDocsPages(t *testing.T) {
	t.Parallel()
	list := pages.Text(t, "caddymedia/docs/README.md")
	_, top, _ := strings.Cut(pages.Text(t, pages.Top), "\n## Documentation\n")
	for _, page := range pages.All(t) {
		name := path.Base(page)
		if name == "README.md" {
			continue
		}
		if !strings.Contains(list, "("+name+")") {
			t.Errorf("docs/README.md lacks %s", name)
		}
		if !strings.HasPrefix(name, "storage-") && !strings.Contains(top, "("+page+")") {
			t.Errorf("the table of README.md lacks %s", name)
		}
	}
}

// TestDocsFirstCommand: README.md has a command on its first screen.
func TestDocsFirstCommand(t *testing.T) {
	t.Parallel()
	if block := pages.Blocks(t, pages.Top)[0]; block.Language != "sh" || block.Line > 25 {
		t.Errorf("the first block is in line %d: %s", block.Line, block.Text)
	}
}

// TestDocsCommands: the list of commands in docs/README.md has each one.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(pages.Root(t), "caddymedia", "mediacmd", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(pages.Text(t, "caddymedia/docs/README.md"), "(commands.md) |")
	list, _, _ = strings.Cut(list, "\n")
	found := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range regexp.MustCompile(`\bUse: +"(\w+) [<[]`).FindAllStringSubmatch(string(b), -1) {
			found++
			if !strings.Contains(list, "`"+use[1]+"`") && !strings.Contains(list, "`caddy media "+use[1]+"`") {
				t.Errorf("docs/README.md lacks the command %s", use[1])
			}
		}
	}
	if found < 6 {
		t.Errorf("only %d commands are found", found)
	}
}
