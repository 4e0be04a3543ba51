package docs_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
)

// TestDocsPackages: the tree in CONTRIBUTING.md has the folder of each package, and no other.
func TestDocsPackages(t *testing.T) {
	t.Parallel()
	_, tree, _ := strings.Cut(pages.Text(t, ".github/CONTRIBUTING.md"), "```\n")
	tree, _, _ = strings.Cut(tree, "```\n")
	words := map[string]bool{}
	for word := range strings.FieldsFuncSeq(tree, func(r rune) bool { return strings.ContainsRune(" ,;()\n", r) }) {
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
	folders := folderNames(t)
	for word := range words {
		if name, isFolder := strings.CutSuffix(word, "/"); isFolder && !folders[name] {
			t.Errorf("the tree has %s, which is no folder", word)
		}
	}
}

// TestPackageComments: the comment of a package says in three sentences what the package is for, what it is
// not for, and where to begin. Programs, registrations of drivers and tests of whole programs need none.
func TestPackageComments(t *testing.T) {
	t.Parallel()
	sentence, begin := regexp.MustCompile(`[.?!](\s|$)`), regexp.MustCompile(`\b[Bb]egin\s+with\b`)
	for folderAndName, files := range goPackages(t, token.NewFileSet()) {
		folder, name := filepath.Split(folderAndName)
		folder = filepath.ToSlash(folder)
		if name == "main" || strings.HasSuffix(name, "_test") || strings.Contains(folder, "caddymedia/integration/") ||
			strings.Contains(folder, "caddymedia/drivers/") {
			continue
		}
		comment := packageComment(files)
		if len(sentence.FindAllString(comment, -1)) < 3 || !begin.MatchString(comment) {
			t.Errorf("%s: the comment of the package does not say in three sentences what it is for, what not, and what to begin with", folder)
		}
	}
}

// packageComment returns the comment of a package.
func packageComment(files []*ast.File) string {
	for _, file := range files {
		if file.Doc != nil && strings.HasPrefix(file.Doc.Text(), "Package ") {
			return file.Doc.Text()
		}
	}
	return ""
}

// folderNames returns the names of all folders of the repository, without those above them.
func folderNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(pages.Root(t), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			names[entry.Name()] = true
			if entry.Name() == ".git" || entry.Name() == "node_modules" {
				return fs.SkipDir
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
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

// TestDocsCommands: docs/README.md and the table of commands.md list the commands that there are.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(pages.Root(t), "caddymedia", "mediacmd", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range regexp.MustCompile(`\bUse: +"(\w+) [<[]`).FindAllStringSubmatch(string(b), -1) {
			want = append(want, use[1])
		}
	}
	slices.Sort(want)
	if len(want) < 5 {
		t.Errorf("only %q are found", want)
	}
	_, top, _ := strings.Cut(pages.Text(t, "caddymedia/docs/README.md"), "(commands.md) |")
	top, _, _ = strings.Cut(top, "\n")
	for page, list := range map[string][][]string{
		"docs/README.md": regexp.MustCompile("`(?:caddy media )?(\\w+)`").FindAllStringSubmatch(top, -1),
		"commands.md":    regexp.MustCompile("(?m)^\\| \\[`caddy media (\\w+)`\\]").FindAllStringSubmatch(pages.Text(t, "commands.md"), -1),
	} {
		var names []string
		for _, match := range list {
			names = append(names, match[1])
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("%s lists the commands %q, want %q", page, names, want)
		}
	}
}
