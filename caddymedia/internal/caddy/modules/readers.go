package modules

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/options"
)

// reader reads the arguments of one option. The current token of the dispenser is the option's
// name.
type reader func(d *caddyfile.Dispenser) error

// Readers are the readers of the options of a block, by name.
type Readers map[string]reader

// ParseBlock reads the block after the current token, if there is one. what names its owner in
// errors ("a local storage"). An unknown option is an error, and so is a repeated one, unless it is
// in repeatable.
func ParseBlock(d *caddyfile.Dispenser, what string, readers Readers, repeatable ...string) error {
	_, err := parseBlock(d, what, readers, repeatable)
	return err
}

// parseBlock is ParseBlock. It returns the position of each option.
func parseBlock(d *caddyfile.Dispenser, what string, readers Readers, repeatable []string) (map[string]*caddyfile.Dispenser, error) {
	positions := map[string]*caddyfile.Dispenser{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		read, ok := readers[name]
		if !ok {
			return nil, d.Errf("unknown option %q of %s%s", name, what, known(readers))
		}
		if positions[name] != nil && !slices.Contains(repeatable, name) {
			return nil, d.Errf("option %q of %s is given twice", name, what)
		}
		positions[name] = new(*d)
		if err := read(d); err != nil {
			return nil, err
		}
	}
	return positions, nil
}

// known returns the list of all options, for an error about an unknown one.
func known(readers Readers) string {
	if len(readers) == 0 {
		return ""
	}
	return "; there are " + strings.Join(slices.Sorted(maps.Keys(readers)), ", ")
}

// argument reads the one argument of an option. example is a value for the error.
func argument(d *caddyfile.Dispenser, example string) (string, error) {
	name := d.Val()
	args := d.RemainingArgs()
	if len(args) == 1 {
		return args[0], nil
	}
	if example == "" {
		return "", d.Errf("%s takes one value, not %d", name, len(args))
	}
	return "", d.Errf("%s takes one value such as %s, not %d", name, example, len(args))
}

// ReadText reads an option with one argument.
func ReadText(into *string) reader {
	return func(d *caddyfile.Dispenser) error {
		value, err := argument(d, "")
		*into = value
		return err
	}
}

// ReadTexts reads an option with one or more arguments.
func ReadTexts(into *[]string) reader {
	return func(d *caddyfile.Dispenser) error {
		args := d.RemainingArgs()
		if len(args) == 0 {
			return d.ArgErr()
		}
		*into = append(*into, args...)
		return nil
	}
}

// readWord reads an option with one argument out of words.
func readWord(into *string, words ...string) reader {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		value, err := argument(d, words[0])
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

// readOnOff reads an option that is on or off. into stays nil if the option is missing.
func readOnOff(into **bool) reader {
	return func(d *caddyfile.Dispenser) error {
		on := new(bool)
		*into = on
		return readSwitch(on)(d)
	}
}

// readSwitch reads an option that is on or off, and off if it is missing.
func readSwitch(into *bool) reader {
	return func(d *caddyfile.Dispenser) error {
		var word string
		err := readWord(&word, "on", "off")(d)
		*into = word == "on"
		return err
	}
}

// readCount reads an option with a number above zero.
func readCount[N int | int64](into *N) reader { return whole(into, 1, "a number above zero") }

// readNumber reads an option with a number of zero or more.
func readNumber[N int | int64](into *N) reader { return whole(into, 0, "a number") }

func whole[N int | int64](into *N, least int64, what string) reader {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		value, err := argument(d, "10")
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

// readSize reads an option with a number of bytes above zero: "32MiB", "2GB", "65536".
func readSize(into *int64) reader {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		value, err := argument(d, "10MB")
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

// readDuration reads an option with a time span above zero, or of zero if allowed: "24h", "7d".
func readDuration(into *options.Duration, zero bool) reader {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		value, err := argument(d, "24h")
		if err != nil {
			return err
		}
		span, err := caddy.ParseDuration(value)
		if err != nil || span < 0 || span == 0 && !zero {
			return d.Errf("%s is a duration such as 24h, not %q", name, value)
		}
		*into = options.Duration(span)
		return nil
	}
}
