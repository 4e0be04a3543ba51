// Package options describes the options of a configuration by the struct that holds them. From this
// one description the Caddyfile is read, options are checked, documentation is written and forms
// are made. It knows neither Caddy nor which options there are. Begin with [Of].
//
// The `json` tag of a field is the name of its option, and its Go type determines the values:
// string, []string, bool or *bool, int or int64, [Duration], a pointer to the struct of a
// group, or a map of names to such pointers. Fields of embedded structs count as fields of the
// struct. Fields of other modules ([json.RawMessage]) are not options. The tag `option` adds marks
// that a type cannot express, separated by commas:
//
//	required    it must be set
//	secret      its value must not be shown
//	common      most administrators look for it; a form always shows it
//	words=a|b   it is one of these words. A form shows those of a list; a Checker refuses others
//	size        its number is one of bytes
//	address     it is a URL of http or https, with a host, and no user, query or fragment
//	folder      it is the path of a folder, as in a key; slashes around it do not count
//	verbatim    it has no placeholders
//	zero        its number may be zero
//	repeat      it may be repeated in a Caddyfile
//	joined      its arguments in a Caddyfile are one text
//	argument    a Caddyfile has it as the argument of its module only
//	block       a Caddyfile has the first option of the group as an argument if it is a text, and the
//	            others in a block
//	line=a      a Caddyfile has a line for each of its named groups, with this name
//
// The tag `example` is the text that a form shows in an empty field. The comment of a field is its
// help, in sentences; "Required." and "Default: `30s`." may end it.
//
// [Of], the tags and the methods of a [Schema] are stable.
package options

import (
	"reflect"
	"sync"
)

// Type is the type of an option.
type Type string

// The types of options, with their JSON.
const (
	Text       Type = "text"     // string
	textsType  Type = "texts"    // array of strings
	wordType   Type = "word"     // string, one of Words
	switchType Type = "switch"   // true or false
	countType  Type = "count"    // whole number above zero
	Size       Type = "size"     // number of bytes above zero
	periodType Type = "duration" // string such as "30s", or nanoseconds
	Group      Type = "group"    // object with Options
	Groups     Type = "groups"   // object of objects with Options, by names
)

// Option describes one option.
type Option struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	// Help is for the administrator, in sentences with `code` in backticks, without the
	// default.
	Help string `json:"help,omitempty"`
	// Default in words or as `code`.
	Default  string   `json:"default,omitempty"`
	Required bool     `json:"required,omitempty"`
	Secret   bool     `json:"secret,omitempty"`
	Common   bool     `json:"common,omitempty"`
	Words    []string `json:"words,omitempty"`
	Example  string   `json:"example,omitempty"`
	Options  []Option `json:"options,omitempty"`
	// Line is the name of one of Groups in a Caddyfile.
	Line string `json:"line,omitempty"`
}

// Schema describes the options of one kind of configuration.
type Schema struct {
	Help    string   `json:"help,omitempty"`
	Options []Option `json:"options"`

	of         reflect.Type
	fields     []field
	documented func() *Schema
	wrong      error // in the comments
}

// Described is a configuration that knows its options, with their documentation.
type Described interface{ Schema() *Schema }

// Of returns the schema of the struct T. sources are the Go files with the comments of the struct
// and of the structs in it. They are only read for [Schema.Documented]; without it no option has
// Help or a Default. Of panics if a field of T cannot be an option.
func Of[T any](sources ...string) *Schema {
	s := &Schema{of: reflect.TypeFor[T]()}
	s.fields = fieldsOf(s.of, nil)
	s.Options = optionsOf(s.fields)
	s.documented = sync.OnceValue(func() *Schema { return s.read(sources) })
	return s
}

// Documented returns the schema with the help and the defaults of all options. The first call reads
// the sources.
func (s *Schema) Documented() *Schema { return s.documented() }

// Err returns the errors in the documentation: an option without help, help that is not a sentence,
// comments that contradict the tags. It is for tests.
func (s *Schema) Err() error { return s.documented().wrong }

func optionsOf(fields []field) []Option {
	options := make([]Option, len(fields))
	for i, f := range fields {
		options[i] = f.option
	}
	return options
}
