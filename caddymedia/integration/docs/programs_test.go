package docs_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
)

// TestProgramsAreOptional: tests start only programs that servers.Program has found, which skips a
// test without its program, or servers.Installed. They also start themselves, their builds, and go.
func TestProgramsAreOptional(t *testing.T) {
	t.Parallel()
	set, started := token.NewFileSet(), 0
	page := pages.Text(t, ".github/CONTRIBUTING.md")
	for _, files := range goPackages(t, set) {
		p := programsOf(set, files)
		for _, position := range p.unknown {
			t.Errorf("%s: the program is not found by servers.Program", position)
		}
		for name := range p.names {
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("CONTRIBUTING.md does not name %s", name)
			}
		}
		started += p.started
	}
	if started < 50 {
		t.Errorf("only %d programs are started: the test does not see them", started)
	}
}

// TestUnknownPrograms: TestProgramsAreOptional would find programs that are started in other ways.
func TestUnknownPrograms(t *testing.T) {
	t.Parallel()
	unknown := []string{
		`exec.Command("php")`,
		`exec.CommandContext(t.Context(), "php")`,
		`p, _ := exec.LookPath("php"); exec.Command(p)`,
		`p := servers.Program(t, "php"); p = "php"; exec.Command(p)`,
		`f := func(name string) { exec.Command(name) }; f("php")`,
		`f := exec.Command; f("php")`,
		`for _, p := range []string{"php"} { exec.Command(p) }`,
		`r := runner{name: "php"}; exec.Command(r.name)`,
		`var r runner; r.name = "php"; exec.Command(r.name)`,
		`start(t, "php")`,
		`exec.Command(named())`,
		`_ = &exec.Cmd{Path: "php"}`,
		`os.StartProcess("php", nil, nil)`,
	}
	known := []string{
		`exec.CommandContext(t.Context(), "go", "list")`,
		`exec.Command(os.Args[0])`,
		`p, _ := os.Executable(); exec.Command(p)`,
		`exec.Command(servers.Program(t, "php"))`,
		`p := servers.Installed("php"); func() { exec.Command(p) }()`,
		`for _, p := range []string{servers.Program(t, "php"), "go"} { exec.Command(p) }`,
		`r := runner{name: servers.Program(t, "php")}; exec.Command(r.name)`,
		`start(t, servers.Program(t, "php"))`,
		`exec.Command(built())`,
		`var err error; _, ended := errors.AsType[*exec.ExitError](err); exec.Command("go")`,
	}
	for i, code := range slices.Concat(unknown, known) {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "a_test.go", `package p
import ("os"; "os/exec"; "path/filepath"; "testing"; "github.com/caddymedia/media/storagedrivers/drivertest/servers")
type runner struct{ name string }
func start(t *testing.T, name string) { exec.Command(name) }
func built() string { return filepath.Join("folder", "program") }
func named() string { return "php" }
func TestBuilt(t *testing.T) { start(t, built()) }
func TestCode(t *testing.T) {`+code+"}", parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		if p := programsOf(set, []*ast.File{file}); (len(p.unknown) == 0) != (i >= len(unknown)) {
			t.Errorf("%s: unknown programs at %v", code, p.unknown)
		}
	}
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

// programs are the programs that a package starts.
type programs struct {
	set     *token.FileSet
	info    types.Info
	started int
	unknown []token.Position
	// names are those of the programs that tests look for.
	names map[string]bool
	// sources are the values of variables, parameters and fields, and the results of functions.
	sources map[types.Object][]ast.Expr
}

func programsOf(set *token.FileSet, files []*ast.File) *programs {
	p := &programs{set: set, names: map[string]bool{}, sources: map[types.Object][]ast.Expr{}}
	p.info = types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	// Types of other packages are not needed, so they are not imported.
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	_, _ = config.Check("p", set, files, &p.info)
	parameters := map[types.Object][]types.Object{}
	for _, file := range files {
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Body != nil {
				parameters[p.info.Defs[f.Name]] = p.function(f)
			}
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			p.collect(n, parameters)
			return true
		})
	}
	called := map[ast.Expr]bool{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			p.check(n, called, file.Name.Name)
			return true
		})
	}
	return p
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.ErrUnsupported }

// function collects the first results of a function, and returns its parameters.
func (p *programs) function(f *ast.FuncDecl) (parameters []types.Object) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			p.add(f.Name, r.Results[0])
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			parameters = append(parameters, p.info.Defs[name])
		}
	}
	return parameters
}

// object returns the variable, field or function that an expression names.
func (p *programs) object(e ast.Expr) types.Object {
	if s, ok := e.(*ast.SelectorExpr); ok {
		e = s.Sel
	}
	name, _ := e.(*ast.Ident)
	return p.info.ObjectOf(name)
}

func (p *programs) add(to ast.Expr, values ...ast.Expr) {
	if o := p.object(to); o != nil {
		p.sources[o] = append(p.sources[o], values...)
	}
}

// collect adds the values that a node assigns.
func (p *programs) collect(n ast.Node, parameters map[types.Object][]types.Object) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, value := range n.Rhs {
			p.add(n.Lhs[i], value)
		}
	case *ast.ValueSpec:
		for i, value := range n.Values {
			p.add(n.Names[i], value)
		}
	case *ast.KeyValueExpr:
		p.add(n.Key, n.Value)
	case *ast.RangeStmt:
		if list, ok := n.X.(*ast.CompositeLit); ok && n.Value != nil {
			p.add(n.Value, list.Elts...)
		}
	case *ast.CallExpr:
		for i, parameter := range parameters[p.object(n.Fun)] {
			if i < len(n.Args) && parameter != nil {
				p.sources[parameter] = append(p.sources[parameter], n.Args[i])
			}
		}
	}
}

// check adds a node to unknown that starts an unknown program. called are the functions of calls.
func (p *programs) check(n ast.Node, called map[ast.Expr]bool, name string) {
	switch n := n.(type) {
	case *ast.CallExpr:
		switch p.qualified(n.Fun) {
		case "servers.Program", "servers.Installed", "Program", "Installed":
			if literal, ok := n.Args[len(n.Args)-1].(*ast.BasicLit); ok {
				p.names[strings.Trim(literal.Value, "\"*")] = true
			}
		}
		argument := map[string]int{"exec.Command": 0, "exec.CommandContext": 1}
		if i, ok := argument[p.qualified(n.Fun)]; ok {
			called[n.Fun] = true
			p.started++
			if !p.known(n.Args[i], nil) {
				p.refuse(n)
			}
		}
	case *ast.CompositeLit:
		if p.qualified(n.Type) == "exec.Cmd" {
			p.refuse(n)
		}
	case *ast.SelectorExpr:
		switch p.qualified(n) {
		case "exec.Command", "exec.CommandContext", "os.StartProcess":
			if !called[n] {
				p.refuse(n)
			}
		case "exec.LookPath":
			if name != "servers" {
				p.refuse(n)
			}
		}
	}
}

func (p *programs) refuse(n ast.Node) { p.unknown = append(p.unknown, p.set.Position(n.Pos())) }

// qualified returns the name of a function or type. That of another package has the package's name
// before it.
func (p *programs) qualified(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			if other, ok := p.info.Uses[x].(*types.PkgName); ok {
				return filepath.Base(other.Imported().Path()) + "." + s.Sel.Name
			}
		}
	}
	if name, ok := e.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// known reports whether all values of an expression are paths of programs that the test has found
// or built. seen are the objects that it depends on.
func (p *programs) known(e ast.Expr, seen []types.Object) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Value == `"go"` || e.Value == `""` || e.Value == `"/usr/bin/python3"` // a second choice
	case *ast.IndexExpr:
		return p.qualified(e.X) == "os.Args"
	case *ast.CallExpr:
		switch p.qualified(e.Fun) {
		case "servers.Program", "servers.Installed", "Program", "os.Executable", "os.Getenv", "filepath.Join":
			return true
		}
		return p.knownObject(p.object(e.Fun), seen)
	case *ast.SelectorExpr:
		running, _ := e.X.(*ast.SelectorExpr)
		return running != nil && running.Sel.Name == "Cmd" && e.Sel.Name == "Path" || p.knownObject(p.object(e), seen)
	case *ast.Ident:
		return p.knownObject(p.object(e), seen)
	}
	return false
}

func (p *programs) knownObject(o types.Object, seen []types.Object) bool {
	if slices.Contains(seen, o) {
		return true
	}
	sources := p.sources[o]
	return o != nil && len(sources) > 0 &&
		!slices.ContainsFunc(sources, func(e ast.Expr) bool { return !p.known(e, append(seen, o)) })
}
