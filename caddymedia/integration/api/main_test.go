package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"testing"
)

// packages imports those that were checked before.
type packages map[string]*types.Package

func (p packages) Import(path string) (*types.Package, error) {
	if found := p[path]; found != nil {
		return found, nil
	}
	return nil, errors.New("no package " + path)
}

func (p packages) check(t *testing.T, path, source string) *types.Package {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{Importer: p}
	if p[path], err = config.Check(path, set, []*ast.File{file}, nil); err != nil {
		t.Fatal(err)
	}
	return p[path]
}

// TestDescribe: what other modules can use is written, and marked if it has a type that they cannot
// name.
func TestDescribe(t *testing.T) {
	t.Parallel()
	p := packages{}
	p.check(t, module+"a/internal/hidden", `package hidden
type Secret struct{ Field int }
type Known struct{ Next *Known; Also Secret }
func (Known) Method(Secret) {}
type Text = string`)
	got := describe([]*types.Package{p.check(t, module+"a", `package a
import "github.com/caddymedia/media/a/internal/hidden"
type Known = hidden.Known
type T struct{ Public map[string][]hidden.Secret; private hidden.Secret }
func (*T) Plain(hidden.Known, hidden.Text) error { return nil }
func (T) hide() hidden.Secret { return hidden.Secret{} }
type I interface{ M(func(hidden.Secret)) }
type generic[V any] struct{}
func F[V interface{ hidden.Secret }](V) *generic[hidden.Secret] { return nil }
const C = 1
var V = hidden.Secret{}`)})
	const mark = " // internal: a/internal/hidden.Secret"
	want := []string{
		"a: const C untyped int",
		"a: func F[V interface{hidden.Secret}](V) *generic[hidden.Secret]" + mark,
		"a: method (I) M(func(hidden.Secret))" + mark,
		"a: method (Known) Method(hidden.Secret)" + mark,
		"a: method (T) Plain(hidden.Known, hidden.Text) error",
		"a: type I interface",
		"a: type Known struct",
		"a: type Known struct, field Also hidden.Secret" + mark,
		"a: type Known struct, field Next *hidden.Known",
		"a: type T struct",
		"a: type T struct, field Public map[string][]hidden.Secret" + mark,
		"a: var V hidden.Secret" + mark,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
