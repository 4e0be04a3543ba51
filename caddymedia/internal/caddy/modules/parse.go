package modules

import (
	"maps"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/options"
)

// Parse reads the options of config, a pointer to the struct of the schema, from the block after
// the current token; see [ParseBlock]. custom has the readers of options with their own syntax,
// which all groups have. An error of a rule ([options.Checker]) has the position of its option.
func Parse(
	d *caddyfile.Dispenser, what string, schema *options.Schema, config any, custom Readers, repeated ...string,
) error {
	read, err := parseBlock(d, what, ReadersOf(schema, config, custom), append(repeatable(schema, config), repeated...))
	if err != nil {
		return err
	}
	if err = schema.CheckParsed(config); err == nil {
		return nil
	}
	option, _, _ := strings.Cut(err.Error(), ":")
	if at, ok := read[option]; ok {
		return at.WrapErr(err)
	}
	return d.WrapErr(err)
}

// parseModule reads a module, starting at its name: an argument, which is the first option and then
// must not be in the block, and the block as in [Parse]. A missing required option is an error.
func parseModule(d *caddyfile.Dispenser, what string, schema *options.Schema, config any, custom Readers) error {
	d.Next() // its name
	if err := parseArgument(d, what, schema, config, custom); err != nil {
		return err
	}
	for _, f := range schema.Fields(config) {
		if value, isText := f.Value.(*string); f.Required && isText && *value == "" {
			return d.Errf("%s: %w", what, f.CheckText(""))
		}
	}
	return nil
}

// parseArgument reads the first option as an argument if it is a text and there is one, and the
// others from the block.
func parseArgument(d *caddyfile.Dispenser, what string, schema *options.Schema, config any, custom Readers) error {
	readers := ReadersOf(schema, config, custom)
	if fields := schema.Fields(config); len(fields) > 0 {
		if into, isText := fields[0].Value.(*string); isText && d.NextArg() {
			*into = d.Val()
			if err := fields[0].CheckText(*into); err != nil && !options.HasPlaceholder(*into) {
				return d.WrapErr(err)
			}
			delete(readers, fields[0].Name)
		}
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	return ParseBlock(d, what, readers, repeatable(schema, config)...)
}

// ReadersOf returns the readers of the options of config, a pointer to the struct of the schema,
// and custom ones. A custom reader that is nil removes the option.
func ReadersOf(schema *options.Schema, config any, custom Readers) Readers {
	readers := Readers{}
	for _, f := range schema.Fields(config) {
		switch {
		case f.Block != nil:
			readers[f.Name] = func(d *caddyfile.Dispenser) error {
				return parseArgument(d, f.Name, f.Block, f.Make(), nil)
			}
		case f.Options == nil && !f.Argument:
			readers[f.Name] = readerOf(f)
		}
	}
	maps.Copy(readers, custom)
	maps.DeleteFunc(readers, func(_ string, r reader) bool { return r == nil })
	return readers
}

func repeatable(schema *options.Schema, config any) []string {
	var names []string
	for _, f := range schema.Fields(config) {
		switch {
		case f.Repeat:
			names = append(names, f.Name)
		case f.Type == options.Groups:
			names = append(names, f.Line)
		}
	}
	return names
}

// readerOf returns a reader that sets the value of an option.
func readerOf(f options.Field) reader {
	switch into := f.Value.(type) {
	case *[]string:
		if f.Joined {
			return readJoined(func(text string) { *into = append(*into, text) })
		}
		return ReadTexts(into)
	case *bool:
		return readSwitch(into)
	case **bool:
		return readOnOff(into)
	case *options.Duration:
		return readDuration(into, f.Zero)
	case *int:
		return countReader(f, into)
	case *int64:
		if f.Type == options.Size {
			return readSize(into)
		}
		return countReader(f, into)
	default:
		text := into.(*string) // there is no other type
		if f.Joined {
			return readJoined(func(joined string) { *text = joined })
		}
		return checked(text, func(string) error { return f.CheckText(*text) })
	}
}

func countReader[N int | int64](f options.Field, into *N) reader {
	if f.Zero {
		return readNumber(into)
	}
	return readCount(into)
}

// readJoined reads an option whose arguments are one text.
func readJoined(set func(text string)) reader {
	return func(d *caddyfile.Dispenser) error {
		name, args := d.Val(), d.RemainingArgs()
		if len(args) == 0 {
			return d.Errf("%s takes a value", name)
		}
		set(strings.Join(args, " "))
		return nil
	}
}

// checked returns a reader for an option with one argument, which check must accept. Nothing is
// checked if the argument is empty, or has a placeholder, which is replaced later.
func checked(into *string, check func(name string) error) reader {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		if err := ReadText(into)(d); err != nil {
			return err
		}
		if *into == "" || options.HasPlaceholder(*into) {
			return nil
		}
		if err := check(name); err != nil {
			return d.WrapErr(err)
		}
		return nil
	}
}
