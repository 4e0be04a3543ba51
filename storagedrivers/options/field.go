package options

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is an option as a field of a struct.
type field struct {
	option Option // without documentation
	index  []int  // of the field in the struct

	// owner and name are the names of the struct and the field with the comment.
	owner, name string

	address, folder, repeat, joined, argument, zero, verbatim, block bool

	group []field
}

// fieldsOf returns the options of a struct, including those of embedded structs; index is the path
// to the struct.
func fieldsOf(of reflect.Type, index []int) []field {
	var fields []field
	for i := range of.NumField() {
		f := of.Field(i)
		at := append(slices.Clone(index), i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			fields = append(fields, fieldsOf(f.Type, at)...)
		case f.IsExported() && name != "" && name != "-" && f.Type != reflect.TypeFor[json.RawMessage]():
			fields = append(fields, newField(of, f, name, at))
		}
	}
	return fields
}

func newField(of reflect.Type, f reflect.StructField, name string, index []int) field {
	option := field{
		option: Option{Name: name, Example: f.Tag.Get("example")},
		index:  index, owner: of.Name(), name: f.Name,
	}
	switch {
	case f.Type == reflect.TypeFor[Duration]():
		option.option.Type = periodType
	case f.Type == reflect.TypeFor[[]string]():
		option.option.Type = textsType
	case f.Type == reflect.TypeFor[bool](), f.Type == reflect.TypeFor[*bool]():
		option.option.Type = switchType
	case f.Type == reflect.TypeFor[int](), f.Type == reflect.TypeFor[int64]():
		option.option.Type = countType
	case f.Type.Kind() == reflect.String:
		option.option.Type = Text
	case f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct:
		option.option.Type = Group
		option.group = fieldsOf(f.Type.Elem(), nil)
		option.option.Options = optionsOf(option.group)
	case f.Type.Kind() == reflect.Map && f.Type.Key().Kind() == reflect.String &&
		f.Type.Elem().Kind() == reflect.Pointer && f.Type.Elem().Elem().Kind() == reflect.Struct:
		option.option.Type, option.option.Line = Groups, name
		option.group = fieldsOf(f.Type.Elem().Elem(), nil)
		option.option.Options = optionsOf(option.group)
	default:
		panic(fmt.Sprintf("options: %s.%s: no option is a %s", of, f.Name, f.Type))
	}
	if tag := f.Tag.Get("option"); tag != "" {
		for word := range strings.SplitSeq(tag, ",") {
			if !option.mark(word, f.Type) {
				panic(fmt.Sprintf("options: %s.%s: %q is no mark of a %s", of, f.Name, word, option.option.Type))
			}
		}
	}
	return option
}

// mark applies a word of the tag, and reports whether it is valid for a field of that type.
func (f *field) mark(word string, of reflect.Type) bool {
	o := &f.option
	words, isWords := strings.CutPrefix(word, "words=")
	line, isLine := strings.CutPrefix(word, "line=")
	switch {
	case word == "required":
		o.Required = o.Type == Text || o.Type == wordType
		return o.Required
	case word == "secret":
		o.Secret = o.Type == Text || o.Type == textsType
		return o.Secret
	case word == "common":
		o.Common = true
		return true
	case isWords && o.Type == textsType:
		o.Words = strings.Split(words, "|")
		return true
	case isWords && o.Type == Text:
		o.Type, o.Words = wordType, strings.Split(words, "|")
		return true
	case word == "size":
		o.Type = Size
		return of.Kind() == reflect.Int64
	case word == "address":
		f.address = true
		return o.Type == Text
	case word == "folder":
		f.folder = true
		return o.Type == Text
	case word == "repeat":
		f.repeat = true
		return o.Type == textsType
	case word == "joined":
		f.joined = true
		return o.Type == textsType || o.Type == Text
	case word == "argument":
		f.argument = true
		return o.Type == Text
	case word == "zero":
		f.zero = true
		return o.Type == countType || o.Type == periodType
	case word == "verbatim":
		f.verbatim = true
		return o.Type == Text
	case word == "block":
		f.block = true
		return o.Type == Group
	case isLine:
		o.Line = line
		return o.Type == Groups
	}
	return false
}

// Field is an option with its value in a configuration.
type Field struct {
	Option
	// Value is a pointer to the field of the struct; a *string for every Text and Word.
	Value any
	// Repeat, Joined, Argument and Zero are marks of the option.
	Repeat, Joined, Argument, Zero bool
	// Block describes a group with that mark. It is otherwise nil.
	Block *Schema

	check func(name string, value *string) error
}

// Make sets a group to an empty one, and returns the pointer to its struct.
func (f Field) Make() any {
	value := reflect.ValueOf(f.Value).Elem()
	value.Set(reflect.New(value.Type().Elem()))
	return value.Interface()
}

// CheckText returns an error if the value of a Text or Word is invalid.
func (f Field) CheckText(value string) error { return f.check(f.Name, &value) }

// Fields returns the options with their values in config, a pointer to the struct.
func (s *Schema) Fields(config any) []Field {
	in := s.structOf(config)
	fields := make([]Field, len(s.fields))
	for i, f := range s.fields {
		value := in.FieldByIndex(f.index)
		fields[i] = Field{
			Option: f.option, Value: value.Addr().Interface(),
			Repeat: f.repeat, Joined: f.joined, Argument: f.argument, Zero: f.zero, check: f.checkText,
		}
		if value.Kind() == reflect.String {
			fields[i].Value = text(value)
		}
		if f.block {
			fields[i].Block = &Schema{of: value.Type().Elem(), fields: f.group, Options: f.option.Options}
		}
	}
	return fields
}

// text returns a string field as a *string, whatever the name of its type.
func text(value reflect.Value) *string {
	return value.Addr().Convert(reflect.TypeFor[*string]()).Interface().(*string) // its kind is string
}

// groups yields the structs of Groups by their names, in order, without those that are null.
func groups(value reflect.Value) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		keys := value.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			if group := value.MapIndex(key); !group.IsNil() && !yield(key.String(), group.Elem()) {
				return
			}
		}
	}
}

// structOf returns the struct of config, which is of the described type or a pointer to it.
func (s *Schema) structOf(config any) reflect.Value {
	value := reflect.Indirect(reflect.ValueOf(config))
	if !value.IsValid() || value.Type() != s.of {
		panic(fmt.Sprintf("options of %s: given a %T", s.of, config))
	}
	return value
}

// Duration is the Go type of an option with a duration. Its JSON is a text such as "90s", "1h30m"
// or "7d", or a number of nanoseconds; it is written as the latter.
type Duration time.Duration

// UnmarshalJSON reads a text or a number of nanoseconds.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if data[0] != '"' {
		return json.Unmarshal(data, (*time.Duration)(d))
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	parsed, err := ParseDuration(text)
	*d = Duration(parsed)
	return err
}

// maxDuration is the length of the longest text of a duration, in bytes.
const maxDuration = 1024

var days = regexp.MustCompile(`[-+.0-9]*d`)

// ParseDuration reads a text such as "90s", "1h30m" or "7d". It is [time.ParseDuration] with days
// of 24 hours.
func ParseDuration(text string) (time.Duration, error) {
	if len(text) > maxDuration {
		return 0, fmt.Errorf("a duration of %d characters", len(text))
	}
	hours := days.ReplaceAllStringFunc(text, func(part string) string {
		n, err := strconv.ParseFloat(part[:len(part)-1], 64)
		if err != nil {
			return part // time.ParseDuration has the error
		}
		return strconv.FormatFloat(24*n, 'f', -1, 64) + "h"
	})
	return time.ParseDuration(hours)
}
