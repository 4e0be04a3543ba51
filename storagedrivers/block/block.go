// Package block reads the blocks of a Caddyfile in which every line is an option with
// its arguments. It is for the modules of drivers and token stores and for the app, so
// that all of them refuse what they do not know, and in the same words.
package block

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Option reads the arguments of one option; the dispenser stands at its name.
type Option func(d *caddyfile.Dispenser) error

// Options are the options of a block by name.
type Options map[string]Option

// Parse reads the block that follows the current token, if there is one. what names its
// owner in errors ("a local storage"). An option that is unknown is an error, and so is
// one given twice, unless it is in repeatable.
func Parse(d *caddyfile.Dispenser, what string, options Options, repeatable ...string) error {
	seen := map[string]bool{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		option, ok := options[name]
		if !ok {
			return d.Errf("unknown option %q of %s%s", name, what, known(options))
		}
		if seen[name] && !slices.Contains(repeatable, name) {
			return d.Errf("option %q of %s is given twice", name, what)
		}
		seen[name] = true
		if err := option(d); err != nil {
			return err
		}
	}
	return nil
}

// known tells which options there are, behind the words about another.
func known(options Options) string {
	if len(options) == 0 {
		return ""
	}
	return "; there are " + strings.Join(slices.Sorted(maps.Keys(options)), ", ")
}

// Expander replaces placeholders such as {env.SECRET} in the texts of options. The zero
// value is usable.
type Expander struct {
	replacer *caddy.Replacer
	err      error
}

// Text gives what raw, the text of the option called name, stands for.
func (e *Expander) Text(name, raw string) string {
	if e.replacer == nil {
		e.replacer = caddy.NewReplacer()
	}
	value, err := e.replacer.ReplaceOrErr(raw, true, true)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("%s: %w", name, err)
	}
	return value
}

// Secret is Text for an option that nobody may see. Its error shows nothing of it but what
// names an environment variable or a file: braces may be a part of the secret itself.
func (e *Expander) Secret(name, raw string) string {
	own := Expander{replacer: e.replacer}
	value := own.Text(name, raw)
	e.replacer = own.replacer
	if own.err != nil && e.err == nil {
		e.err = own.err
		if !elsewhere.MatchString(raw) {
			e.err = fmt.Errorf(`%s: there is a placeholder in it that stands for nothing; a brace of its own is written \{ or \}`, name)
		}
	}
	return value
}

// elsewhere is a secret that is kept in another place.
var elsewhere = regexp.MustCompile(`^\{(env|file)\.[^{}]+\}$`)

// Err is the first thing that was wrong, with the name of its option: a placeholder that
// stands for nothing, as an environment variable does that is not set.
func (e *Expander) Err() error { return e.err }

// argument reads the one argument of an option.
func argument(d *caddyfile.Dispenser) (string, error) {
	var value string
	if !d.AllArgs(&value) {
		return "", d.ArgErr()
	}
	return value, nil
}

// Text is an option with one argument.
func Text(into *string) Option {
	return func(d *caddyfile.Dispenser) error {
		value, err := argument(d)
		*into = value
		return err
	}
}

// Texts is an option with one or more arguments.
func Texts(into *[]string) Option {
	return func(d *caddyfile.Dispenser) error {
		args := d.RemainingArgs()
		if len(args) == 0 {
			return d.ArgErr()
		}
		*into = append(*into, args...)
		return nil
	}
}

// Word is an option with one argument out of words.
func Word(into *string, words ...string) Option {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		value, err := argument(d)
		if err != nil {
			return err
		}
		if !slices.Contains(words, value) {
			return d.Errf("%s is one of %s, not %q", name, strings.Join(words, ", "), value)
		}
		*into = value
		return nil
	}
}

// OnOff is an option that is on or off. into stays nil where it is not given.
func OnOff(into **bool) Option {
	return func(d *caddyfile.Dispenser) error {
		on := new(bool)
		*into = on
		return Switch(on)(d)
	}
}

// Switch is an option that is on or off, and off where it is not given.
func Switch(into *bool) Option {
	return func(d *caddyfile.Dispenser) error {
		var word string
		err := Word(&word, "on", "off")(d)
		*into = word == "on"
		return err
	}
}

// Count is an option with a number above zero.
func Count[N int | int64](into *N) Option { return whole(into, 1, "a number above zero") }

// Number is an option with a number from zero on.
func Number[N int | int64](into *N) Option { return whole(into, 0, "a number") }

func whole[N int | int64](into *N, least int64, what string) Option {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		value, err := argument(d)
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(value, 10, strconv.IntSize)
		if err != nil || n < least {
			return d.Errf("%s is %s, not %q", name, what, value)
		}
		*into = N(n)
		return nil
	}
}

// Size is an option with a number of bytes above zero: "32MiB", "2GB", "65536".
func Size(into *int64) Option {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		value, err := argument(d)
		if err != nil {
			return err
		}
		n, err := humanize.ParseBytes(value)
		if err != nil || n == 0 || n > math.MaxInt64 {
			return d.Errf("%s is a size such as 32MiB, not %q", name, value)
		}
		*into = int64(n)
		return nil
	}
}

// Duration is an option with a time span above zero: "24h", "7d".
func Duration(into *caddy.Duration) Option {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		value, err := argument(d)
		if err != nil {
			return err
		}
		span, err := caddy.ParseDuration(value)
		if err != nil || span <= 0 {
			return d.Errf("%s is a duration such as %s, not %q", name, 24*time.Hour, value)
		}
		*into = caddy.Duration(span)
		return nil
	}
}
