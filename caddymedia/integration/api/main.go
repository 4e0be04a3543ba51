// Command api writes what other modules can use of this one: a line for each exported name, method
// and field of the packages outside of internal, in the manner of the api files of Go itself. It is
// run by .ci/api.
//
// A line with a type that other modules cannot name, for its package is internal, ends with a mark.
package main

import (
	"bytes"
	"context"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/caddymedia/media/"

// notPublic are packages that no other module imports: internal ones, programs and tests.
var notPublic = regexp.MustCompile(`(^|/)(internal|integration)(/|$)`)

func main() {
	packages, err := load()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, strings.Join(describe(packages), "\n"))
}

// describe returns the sorted lines of packages.
func describe(packages []*types.Package) []string {
	a := api{nameable: map[types.Object]bool{}}
	for _, p := range packages {
		a.aliases(p)
	}
	for _, p := range packages {
		for _, name := range p.Scope().Names() {
			if object := p.Scope().Lookup(name); object.Exported() {
				a.object(object)
			}
		}
	}
	slices.Sort(a.lines)
	return slices.Compact(a.lines)
}

// load returns the public packages, as the compiler exports them.
func load() ([]*types.Package, error) {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-deps", "-export", "-f", "{{.Name}}\t{{.ImportPath}}\t{{.Export}}", "./...")
	cmd.Stderr = os.Stderr
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	exports, public := map[string]string{}, []string(nil)
	for line := range strings.Lines(string(list)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "\t")
		path, export, _ := strings.Cut(rest, "\t")
		exports[path] = export
		if strings.HasPrefix(path+"/", module) && name != "main" && !notPublic.MatchString(path) {
			public = append(public, path)
		}
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		b, err := os.ReadFile(exports[path])
		return io.NopCloser(bytes.NewReader(b)), err
	})
	packages := make([]*types.Package, len(public))
	for i, path := range public {
		if packages[i], err = from.Import(path); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return packages, nil
}

type api struct {
	lines []string
	// nameable are the internal types that a public package has an alias of.
	nameable map[types.Object]bool
}

// aliases remembers the internal types that a package has aliases of.
func (a *api) aliases(p *types.Package) {
	for _, name := range p.Scope().Names() {
		object, _ := p.Scope().Lookup(name).(*types.TypeName)
		if object == nil || !object.Exported() || !object.IsAlias() {
			continue
		}
		if named, isNamed := types.Unalias(object.Type()).(*types.Named); isNamed {
			a.nameable[named.Origin().Obj()] = true
		}
	}
}

// add adds a line of a package with the types that it has.
func (a *api) add(p *types.Package, what string, has ...types.Type) {
	line := strings.TrimSuffix(strings.TrimPrefix(p.Path(), module), "/") + ": " + what
	seen := map[string]bool{}
	for _, t := range has {
		a.visit(t, seen)
	}
	if len(seen) > 0 {
		line += " // internal: " + strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
	}
	a.lines = append(a.lines, line)
}

// object adds a name of the scope of a package.
func (a *api) object(object types.Object) {
	p := object.Pkg()
	text := types.ObjectString(object, qualifier(p))
	declared, isType := object.(*types.TypeName)
	if !isType {
		a.add(p, text, object.Type())
		return
	}
	of := types.Unalias(declared.Type())
	named, isNamed := of.(*types.Named)
	if declared.IsAlias() && (!isNamed || !internal(named.Obj().Pkg())) {
		a.add(p, text, of) // its methods are those of another public type
		return
	}
	prefix := "type " + declared.Name()
	switch under := of.Underlying().(type) {
	case *types.Struct:
		a.add(p, prefix+" struct")
		for field := range under.Fields() {
			if field.Exported() {
				a.add(p, prefix+" struct, "+types.ObjectString(field, qualifier(p)), field.Type())
			}
		}
	case *types.Interface:
		a.add(p, prefix+" interface")
	default:
		a.add(p, prefix+" "+types.TypeString(under, qualifier(p)), under)
	}
	methods := types.NewMethodSet(of)
	if !types.IsInterface(of) {
		methods = types.NewMethodSet(types.NewPointer(of))
	}
	for method := range methods.Methods() {
		if method.Obj().Exported() {
			signature := strings.TrimPrefix(types.TypeString(method.Type(), qualifier(p)), "func")
			a.add(p, "method ("+declared.Name()+") "+method.Obj().Name()+signature, method.Type())
		}
	}
}

// visit adds to seen the types of a type that other modules cannot name.
func (a *api) visit(t types.Type, seen map[string]bool) {
	switch t := t.(type) {
	case *types.Alias:
		if internal(t.Obj().Pkg()) {
			a.visit(types.Unalias(t), seen)
			return
		}
		a.name(t.Obj(), t.TypeArgs(), seen)
	case *types.Named:
		a.name(t.Origin().Obj(), t.TypeArgs(), seen)
	case interface{ Elem() types.Type }:
		if m, isMap := t.(*types.Map); isMap {
			a.visit(m.Key(), seen)
		}
		a.visit(t.Elem(), seen)
	case *types.Tuple:
		for v := range t.Variables() {
			a.visit(v.Type(), seen)
		}
	case *types.Signature:
		a.visit(t.Params(), seen)
		a.visit(t.Results(), seen)
		for p := range t.TypeParams().TypeParams() {
			a.visit(p.Constraint(), seen)
		}
	case *types.Struct:
		for field := range t.Fields() {
			if field.Exported() {
				a.visit(field.Type(), seen)
			}
		}
	case *types.Interface:
		for method := range t.Methods() {
			a.visit(method.Type(), seen)
		}
		for embedded := range t.EmbeddedTypes() {
			a.visit(embedded, seen)
		}
	case *types.Union:
		for term := range t.Terms() {
			a.visit(term.Type(), seen)
		}
	}
}

// name adds a named type to seen, if other modules cannot name it.
func (a *api) name(object *types.TypeName, arguments *types.TypeList, seen map[string]bool) {
	if internal(object.Pkg()) && !a.nameable[object] {
		seen[strings.TrimPrefix(object.Pkg().Path(), module)+"."+object.Name()] = true
	}
	for argument := range arguments.Types() {
		a.visit(argument, seen)
	}
}

// internal reports whether p is an internal package of this module.
func internal(p *types.Package) bool {
	return p != nil && strings.HasPrefix(p.Path(), module) && notPublic.MatchString(p.Path())
}

// qualifier writes the names of other packages than p before their types.
func qualifier(p *types.Package) types.Qualifier {
	return func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}
}
