package options

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Parse reads the options of config, a pointer to the struct, from the block after the current
// token; see [ParseBlock]. custom has the readers of options with their own syntax, which all
// groups have. An error of a rule ([Checker]) has the position of its option.
func (s *Schema) Parse(d *caddyfile.Dispenser, what string, config any, custom Readers, repeatable ...string) error {
	read, err := parseBlock(d, what, s.Readers(config, custom), append(s.repeatable(), repeatable...))
	if err != nil {
		return err
	}
	if err = s.CheckParsed(config); err == nil {
		return nil
	}
	option, _, _ := strings.Cut(err.Error(), ":")
	if at, ok := read[option]; ok {
		return at.WrapErr(err)
	}
	return d.WrapErr(err)
}

// ParseModule reads a module, starting at its name: an argument, which is the first option and then
// must not be in the block, and the block as in [Schema.Parse]. A missing required option is an
// error.
func (s *Schema) ParseModule(d *caddyfile.Dispenser, what string, config any, custom Readers) error {
	readers := s.Readers(config, custom)
	d.Next() // its name
	if d.NextArg() {
		first := s.fields[0]
		*text(s.structOf(config).FieldByIndex(first.index)) = d.Val()
		delete(readers, first.option.Name)
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	if err := ParseBlock(d, what, readers, s.repeatable()...); err != nil {
		return err
	}
	for _, f := range s.fields {
		if value := s.structOf(config).FieldByIndex(f.index); f.option.Required && value.IsZero() {
			return d.Errf("%s: %w", what, f.checkText(f.option.Name, text(value)))
		}
	}
	return nil
}

// Readers returns the readers of the options of config, a pointer to the struct, and custom ones. A
// custom reader that is nil removes the option.
func (s *Schema) Readers(config any, custom Readers) Readers {
	value := s.structOf(config)
	readers := Readers{}
	for _, f := range s.fields {
		if f.group == nil {
			readers[f.option.Name] = f.reader(value.FieldByIndex(f.index))
		}
	}
	maps.Copy(readers, custom)
	maps.DeleteFunc(readers, func(_ string, r Reader) bool { return r == nil })
	return readers
}

func (s *Schema) repeatable() []string {
	var names []string
	for _, f := range s.fields {
		switch {
		case f.repeat:
			names = append(names, f.option.Name)
		case f.option.Type == Groups:
			names = append(names, f.option.Line)
		}
	}
	return names
}

// reader returns a reader that sets the value of the option's field.
func (f field) reader(value reflect.Value) Reader {
	switch into := value.Addr().Interface().(type) {
	case *[]string:
		return ReadTexts(into)
	case *bool:
		return ReadSwitch(into)
	case **bool:
		return ReadOnOff(into)
	case *Duration:
		return ReadDuration(into)
	case *int:
		if f.option.Type == Count {
			return ReadCount(into)
		}
	case *int64:
		if f.option.Type == Size {
			return ReadSize(into)
		}
		return ReadCount(into)
	}
	into := text(value)
	return Checked(into, func(name string) error {
		expanded := *into
		return f.checkText(name, &expanded)
	})
}

// HasPlaceholder reports whether a text of a Caddyfile may have a placeholder, so that it can be checked
// only after it is replaced.
func HasPlaceholder(text string) bool { return strings.Contains(text, "{") }

// Checked returns a reader for an option with one argument, which check must accept. Nothing is
// checked if the argument is empty, or has a placeholder, which is replaced later.
func Checked(into *string, check func(name string) error) Reader {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		if err := ReadText(into)(d); err != nil {
			return err
		}
		if *into == "" || HasPlaceholder(*into) {
			return nil
		}
		if err := check(name); err != nil {
			return d.WrapErr(err)
		}
		return nil
	}
}

func notAWord(name, value string, words []string) error {
	return fmt.Errorf("%s is one of %s, not %q", name, strings.Join(words, ", "), value)
}
