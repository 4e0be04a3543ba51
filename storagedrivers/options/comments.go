package options

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// comments contains the comments of structs by name, and of fields by "Struct.Field".
type comments map[string]string

// read returns the schema with the comments in sources.
func (s *Schema) read(sources []string) *Schema {
	full := *s
	full.documented = func() *Schema { return &full }
	found := comments{}
	for _, source := range sources {
		if err := found.add(source); err != nil {
			full.wrong = fmt.Errorf("reading the comments of %s: %w", s.of, err)
			return &full
		}
	}
	full.Help = opening(s.of.Name(), found[s.of.Name()])
	full.Options, full.wrong = found.document(s.fields)
	return &full
}

// add adds the comments of a Go file.
func (c comments) add(source string) error {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			named, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			doc := named.Doc
			if doc == nil {
				doc = general.Doc
			}
			c[named.Name.Name] = doc.Text()
			c.addFields(named)
		}
	}
	return nil
}

func (c comments) addFields(named *ast.TypeSpec) {
	structure, ok := named.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range structure.Fields.List {
		for _, name := range f.Names {
			c[named.Name.Name+"."+name.Name] = oneLine(f.Doc.Text())
		}
	}
}

// document returns the options of fields with their help, and an error for invalid help.
func (c comments) document(fields []field) ([]Option, error) {
	var wrong error
	options := optionsOf(fields)
	for i, f := range fields {
		o := &options[i]
		var required bool
		o.Help, o.Default, required = split(c[f.owner+"."+f.name])
		var err error
		switch {
		case o.Help == "":
			err = errors.New("it has no help")
		case !strings.HasSuffix(o.Help, "."):
			err = errors.New("its help does not end in a full stop")
		case required != o.Required:
			err = errors.New("comment and tag disagree about whether it is required")
		case strings.Contains(o.Help, "Default:") || strings.Contains(o.Default, ". "):
			err = errors.New("the default does not end the comment")
		}
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s.%s: %w", f.owner, f.name, err))
		}
		if f.group != nil {
			o.Options, err = c.document(f.group)
			wrong = errors.Join(wrong, err)
		}
	}
	return options, wrong
}

var (
	requiredEnd = regexp.MustCompile(`(^| )Required\.$`)
	defaultEnd  = regexp.MustCompile(`(^| )Default: (.+)\.$`)
)

// split splits the closing words off a comment: the default, and whether the option is required.
func split(comment string) (help, standard string, required bool) {
	help = requiredEnd.ReplaceAllString(comment, "")
	required = help != comment
	if at := defaultEnd.FindStringSubmatchIndex(help); at != nil {
		help, standard = help[:at[0]], help[at[4]:at[5]]
	}
	return help, standard, required
}

// opening returns the first paragraph of a type's comment, without the type's name at its start.
func opening(name, comment string) string {
	paragraph, _, _ := strings.Cut(comment, "\n\n")
	help := oneLine(paragraph)
	for _, start := range []string{name + " is ", name + " "} {
		if rest, found := strings.CutPrefix(help, start); found {
			first, size := utf8.DecodeRuneInString(rest)
			return string(unicode.ToUpper(first)) + rest[size:]
		}
	}
	return help
}

func oneLine(comment string) string {
	return strings.Join(slices.Collect(strings.FieldsSeq(comment)), " ")
}
