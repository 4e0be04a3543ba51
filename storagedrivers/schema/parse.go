package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/block"
)

// Parse reads the options of config, a pointer to the struct, from the block that follows the
// current token; see [block.Parse]. custom has options that are written in ways of their own;
// groups are always such.
func (s *Schema) Parse(d *caddyfile.Dispenser, what string, config any, custom block.Options) error {
	return block.Parse(d, what, s.readers(config, custom), s.repeatable()...)
}

// ParseModule reads a module from its name on: an argument, which is the first option and then
// is none of the block, and the block as [Schema.Parse] does.
func (s *Schema) ParseModule(d *caddyfile.Dispenser, what string, config any, custom block.Options) error {
	options := s.readers(config, custom)
	d.Next() // its name
	if d.NextArg() {
		first := s.fields[0]
		*text(s.structOf(config).FieldByIndex(first.index)) = d.Val()
		delete(options, first.option.Name)
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	return block.Parse(d, what, options, s.repeatable()...)
}

func (s *Schema) readers(config any, custom block.Options) block.Options {
	value := s.structOf(config)
	options := block.Options{}
	for _, f := range s.fields {
		if f.group == nil {
			options[f.option.Name] = f.reader(value.FieldByIndex(f.index))
		}
	}
	maps.Copy(options, custom)
	return options
}

func (s *Schema) repeatable() []string {
	var names []string
	for _, f := range s.fields {
		if f.repeat {
			names = append(names, f.option.Name)
		}
	}
	return names
}

// reader gives what reads the option into the value of its field.
func (f field) reader(value reflect.Value) block.Option {
	switch into := value.Addr().Interface().(type) {
	case *[]string:
		return block.Texts(into)
	case *bool:
		return block.Switch(into)
	case **bool:
		return block.OnOff(into)
	case *caddy.Duration:
		return block.Duration(into)
	case *int:
		if f.option.Type == Count {
			return block.Count(into)
		}
	case *int64:
		if f.option.Type == Size {
			return block.Size(into)
		}
		return block.Count(into)
	}
	if f.option.Type == Word {
		return word(text(value), f.option.Words)
	}
	return block.Text(text(value))
}

// word is one of words, or has a placeholder, so that it is known later; empty is not given.
func word(into *string, words []string) block.Option {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		if err := block.Text(into)(d); err != nil {
			return err
		}
		if *into == "" || strings.Contains(*into, "{") || slices.Contains(words, *into) {
			return nil
		}
		return d.WrapErr(notAWord(name, *into, words))
	}
}

func notAWord(name, value string, words []string) error {
	return fmt.Errorf("%s is one of %s, not %q", name, strings.Join(words, ", "), value)
}
