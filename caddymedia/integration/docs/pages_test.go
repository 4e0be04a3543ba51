package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// TestDocsLinks: every relative link leads to a file or folder of the repository, and every #anchor
// to a heading. Every page is linked from another one.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	root, linked := pages.Root(t), map[string]bool{pages.Top: true}
	all := append(pages.All(t), githubPages(t)...)
	for _, page := range all {
		for _, match := range link.FindAllStringSubmatch(prose(t, page), -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(match[1], "#")
			target := page
			if file != "" {
				target = path.Join(path.Dir(page), file)
				linked[target] = true
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil || strings.HasPrefix(target, "..") {
				t.Errorf("%s: %s leads nowhere", page, match[1])
				continue
			}
			if anchor != "" && !anchors(t, target)[anchor] {
				t.Errorf("%s: there is no heading %s", page, match[1])
			}
		}
	}
	for _, page := range all {
		if !linked[page] {
			t.Errorf("no page links %s", page)
		}
	}
}

// githubPages returns the pages in .github.
func githubPages(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(pages.Root(t), ".github", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		names[i] = ".github/" + filepath.Base(name)
	}
	return names
}

// prose returns a page without its fenced blocks.
func prose(t *testing.T, page string) string {
	t.Helper()
	return fenced.ReplaceAllString(pages.Text(t, page), "")
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(t *testing.T, page string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(prose(t, page), -1) {
		found[strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, match[1])] = true
	}
	return found
}

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

// TestPackageComments: the comment of a package says in three sentences what the package is for,
// what it is not for, and where to begin. Programs, registrations of drivers and tests of whole
// programs need none.
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

// TestDocsFirstScreen: README.md begins with two commands that work in a checkout, each alone in
// its block so that .ci/run finds it. The lines for an existing site follow. Before them is the
// download of a published version.
func TestDocsFirstScreen(t *testing.T) {
	t.Parallel()
	blocks := pages.Blocks(t, pages.Top)
	if published(t) {
		blocks = blocks[1:]
	}
	for i, want := range []pages.Block{
		{Language: "sh", Text: "go run ./caddymedia/caddy run --config Caddyfile.example\n"},
		{Language: "sh", Text: "go test -short ./...\n"},
	} {
		if got := blocks[i]; got.Language != want.Language || got.Text != want.Text || got.Line > 50 {
			t.Errorf("block %d is in line %d: %s", i+1, got.Line, got.Text)
		}
	}
	if blocks[2].Language != "caddyfile" {
		t.Errorf("the configuration of a site does not follow, but %s", blocks[2].Text)
	}
}

// TestDocsMessages: the messages of the page about troubles are in the code, but for those of Caddy
// and the system. "..." stands for names.
func TestDocsMessages(t *testing.T) {
	t.Parallel()
	foreign := map[string]bool{
		"unrecognized global option: media": true, "address already in use": true, "evaluated placeholder ... is empty": true,
	}
	var code strings.Builder
	for _, files := range goPackages(t, token.NewFileSet()) {
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					code.WriteString(strings.Trim(text.Value, "\"`"))
				}
				return true
			})
		}
	}
	seen := 0
	for row := range strings.Lines(pages.Text(t, "troubleshooting.md")) {
		row, isRow := strings.CutPrefix(row, "| ")
		if !isRow {
			continue
		}
		first, _, _ := strings.Cut(row, " | ")
		for _, message := range regexp.MustCompile("`([^`]+ [^`]+)`").FindAllStringSubmatch(first, -1) {
			seen++
			for part := range strings.SplitSeq(message[1], "...") {
				if !strings.Contains(code.String(), part) && !foreign[message[1]] {
					t.Errorf("no message has %q", part)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("the page has %d messages", seen)
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
		for _, use := range regexp.MustCompile(`\bUse: +"(\w+)[ "]`).FindAllStringSubmatch(string(b), -1) {
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

// TestWorkflowsPinActions: a workflow names each action by the hash of a commit, because a tag can
// be moved, with its version as a comment, and all workflows name the same one.
func TestWorkflowsPinActions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(pages.Root(t), ".github", "workflows", "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	pinned := regexp.MustCompile(`^([\w/-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	versions := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			_, action, uses := strings.Cut(strings.TrimSpace(line), "uses: ")
			parts := pinned.FindStringSubmatch(action)
			switch {
			case !uses:
			case parts == nil:
				t.Errorf("%s: %s is not pinned", filepath.Base(file), action)
			case versions[parts[1]] != "" && versions[parts[1]] != parts[2]:
				t.Errorf("%s: %s differs from %s", filepath.Base(file), action, versions[parts[1]])
			default:
				versions[parts[1]] = parts[2]
			}
		}
	}
}

// TestProgramsAreOptional: Go code starts by a fixed name no program but go. Tests ask
// servers.Program for others, which skips a test without its program, or servers.Installed, and
// CONTRIBUTING.md names them. .ci/run shows it in an environment with nothing but Go.
func TestProgramsAreOptional(t *testing.T) {
	t.Parallel()
	set, started := token.NewFileSet(), 0
	page := pages.Text(t, ".github/CONTRIBUTING.md")
	for _, files := range goPackages(t, set) {
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				problem := ""
				switch n := n.(type) {
				case *ast.CallExpr:
					argument, starts := map[string]int{"exec.Command": 0, "exec.CommandContext": 1}[qualified(n.Fun)]
					if starts {
						started++
						if name := literal(n.Args[argument]); name != "" && name != "go" && name != "/usr/bin/python3" { // a second choice
							problem = "starts " + name
						}
					}
					switch qualified(n.Fun) {
					case "servers.Program", "servers.Installed", "Program", "Installed":
						if name := strings.Trim(literal(n.Args[len(n.Args)-1]), "*"); !strings.Contains(page, "`"+name+"`") && name != "" {
							problem = "starts " + name + ", which CONTRIBUTING.md does not name"
						}
					}
				case *ast.SelectorExpr:
					switch qualified(n) {
					case "os.StartProcess":
						problem = "starts a program"
					case "exec.LookPath":
						if file.Name.Name != "servers" {
							problem = "looks for a program"
						}
					}
				case *ast.CompositeLit:
					if qualified(n.Type) == "exec.Cmd" {
						problem = "starts a program"
					}
				}
				if problem != "" {
					t.Errorf("%s %s without servers.Program", set.Position(n.Pos()), problem)
				}
				return true
			})
		}
	}
	if started < 40 {
		t.Errorf("only %d programs are started: the test does not see them", started)
	}
}

// qualified returns the name of a function or type. That of another package has the package's name
// before it.
func qualified(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// literal returns the text of an expression that is a literal.
func literal(e ast.Expr) string {
	if text, ok := e.(*ast.BasicLit); ok {
		return strings.Trim(text.Value, "\"`")
	}
	return ""
}

// goPackages returns the files of all packages of the module.
func goPackages(t *testing.T, set *token.FileSet) map[string][]*ast.File {
	t.Helper()
	packages := map[string][]*ast.File{}
	root := pages.Root(t)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != root && (entry.Name()[0] == '.' || entry.Name() == "node_modules") {
			return fs.SkipDir // others may have Go files there
		}
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil {
			name := filepath.Join(filepath.Dir(path), file.Name.Name)
			packages[name] = append(packages[name], file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// action is an action of a template in a line of prose or of a comment.
var action = regexp.MustCompile("`([^`\n]*\\{\\{(?:[^`\n])*\\}\\}[^`\n]*)`")

// TestDocsTemplates: Caddy renders each template of the documentation, and each one of the comment
// that Caddy's own documentation shows. The aliases and items that they name exist.
func TestDocsTemplates(t *testing.T) { // not parallel: Caddy has globals
	const source = "caddymedia/internal/caddy/plugin/functions.go"
	templates := map[string]string{}
	for _, page := range append(append(pages.All(t), githubPages(t)...), source) {
		text := pages.Text(t, page)
		if page != source {
			for _, block := range pages.Blocks(t, page) {
				if block.Language == "html" && strings.Contains(block.Text, "{{") {
					templates[fmt.Sprintf("%s:%d", page, block.Line)] = block.Text
				}
			}
			text = prose(t, page)
		}
		for i, match := range action.FindAllStringSubmatch(text, -1) {
			templates[fmt.Sprintf("%s, template %d of its prose", page, i+1)] = match[1]
		}
	}
	if len(templates) < 12 {
		t.Errorf("only %d templates are found", len(templates))
	}
	folder := site.TempFolder(t)
	s := site.Start(t, site.LocalDefault+`
		image_alias content {
			rendition thumb 320x320 cover
		}
		image_alias photos {
			private
			rendition thumb 320x320 cover
			rendition preview 320x320
		}
		file_alias content
		file_alias invoices {
			private
		}
	`, "media\nroot * "+folder+"\ntemplates {\nextensions {\nmedia\n}\n}\nfile_server")
	for _, alias := range []string{"content", "photos"} {
		site.PutFile(t, filepath.Join(s.Root, "img", alias, "26-11", "20", "photo.jpg"), sample.PhotoJPEG(640, 480))
	}
	for name, text := range templates {
		site.PutFile(t, filepath.Join(folder, "index.html"), text)
		got := s.Get(t, "/")
		if got.Status != http.StatusOK || strings.Contains(got.Body, "{{") || strings.Contains(got.Body, "no value") {
			t.Errorf("%s: %d, %s of\n%s", name, got.Status, got.Body, text)
		}
		for function, has := range map[string]string{"image_size": `width="`, "image_srcset": " 640w", "_url": "signature="} {
			if strings.Contains(text, function+" ") && !strings.Contains(got.Body, has) {
				t.Errorf("%s: %s has no %s", name, got.Body, has)
			}
		}
	}
}
