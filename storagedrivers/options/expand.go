package options

import (
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Expand replaces placeholders in the texts of config, a pointer to the struct. It checks texts and
// numbers by the tags of their fields, and structs by their rules ([Checker]). It removes slashes
// at the end of addresses and around folders. Lists and groups are replaced by new ones, so that
// config may be a shallow copy of a struct that must not change. A null among named groups becomes
// an empty group. The error begins with the name of the option, after that of its group and a dot:
// `webp.quality`, or `renditions.thumb.width`.
func (s *Schema) Expand(config any, expand *Expander) error {
	value := s.structOf(config)
	replaceAll(s.fields, value, "", func(f field, name, raw string) (string, bool) {
		switch {
		case f.verbatim:
			return raw, true
		case f.option.Secret:
			return expand.Secret(name, raw), true
		}
		return expand.Text(name, raw), true
	})
	if err := expand.Err(); err != nil {
		return err
	}
	return checkAll(s.fields, value, "", true)
}

// Checker is a configuration, or a group in one, that has a rule beyond its tags.
type Checker interface {
	// Check returns an error that begins with the name of the wrong option, and a colon if no other
	// option is involved. It is called after the tags of the struct and its groups are checked.
	Check() error
}

// Check checks config, a pointer to the struct, like [Schema.Expand].
func (s *Schema) Check(config any) error {
	value := s.structOf(config)
	replaceAll(s.fields, value, "", func(_ field, _, raw string) (string, bool) { return raw, true })
	return checkAll(s.fields, value, "", true)
}

// CheckParsed checks the rules of config, a pointer to the struct that was read from a Caddyfile.
// Texts with a placeholder count as missing, because they can be checked only after it is replaced,
// unless they are verbatim.
func (s *Schema) CheckParsed(config any) error {
	value := reflect.New(s.of).Elem()
	value.Set(s.structOf(config))
	replaceAll(s.fields, value, "", func(f field, _, raw string) (string, bool) { return raw, f.verbatim || !HasPlaceholder(raw) })
	return checkAll(s.fields, value, "", false)
}

// replaceAll replaces the texts by those that text returns, and lists and groups by new ones. If it
// returns false, the text is removed.
func replaceAll(fields []field, in reflect.Value, path string, text func(f field, name, raw string) (string, bool)) {
	for _, f := range fields {
		value, name := in.FieldByIndex(f.index), path+f.option.Name
		switch f.option.Type {
		case Text, wordType:
			replaced, ok := text(f, name, value.String())
			if !ok {
				replaced = ""
			}
			value.SetString(replaced)
		case textsType:
			var texts []string                                 // nil for none, however it is spelt
			for _, raw := range value.Interface().([]string) { // that is what Texts are
				if replaced, ok := text(f, name, raw); ok {
					texts = append(texts, replaced)
				}
			}
			value.Set(reflect.ValueOf(texts))
		case Group:
			if value.IsNil() {
				continue
			}
			value.Set(copied(value))
			replaceAll(f.group, value.Elem(), name+".", text)
		case Groups:
			value.Set(copies(value))
			for key, group := range groups(value) {
				replaceAll(f.group, group, name+"."+key+".", text)
			}
		default: // holds no text
		}
	}
}

// copied returns a pointer to a copy of what group points to; to a zero struct if group is nil.
func copied(group reflect.Value) reflect.Value {
	into := reflect.New(group.Type().Elem())
	if !group.IsNil() {
		into.Elem().Set(group.Elem())
	}
	return into
}

// copies returns a copy of Groups, nil if there are none.
func copies(all reflect.Value) reflect.Value {
	if all.Len() == 0 {
		return reflect.Zero(all.Type())
	}
	into := reflect.MakeMap(all.Type())
	for key, group := range all.Seq2() {
		into.SetMapIndex(key, copied(group))
	}
	return into
}

// checkAll checks tags, if wanted, and rules.
func checkAll(fields []field, in reflect.Value, path string, tags bool) error {
	for _, f := range fields {
		value, name := in.FieldByIndex(f.index), path+f.option.Name
		var err error
		switch {
		case f.option.Type == Group && !value.IsNil():
			err = checkAll(f.group, value.Elem(), name+".", tags)
		case f.option.Type == Groups:
			for key, group := range groups(value) {
				if err = checkAll(f.group, group, name+"."+key+".", tags); err != nil {
					break
				}
			}
		case tags:
			err = f.checkValue(name, value)
		}
		if err != nil {
			return err
		}
	}
	checker, ok := reflect.TypeAssert[Checker](in.Addr())
	if !ok {
		return nil
	}
	err := checker.Check()
	if err != nil && path != "" {
		return fmt.Errorf("%s: %w", strings.TrimSuffix(path, "."), err)
	}
	return err
}

// checkValue checks a value by the tags of its field.
func (f field) checkValue(name string, value reflect.Value) error {
	switch f.option.Type {
	case Text, wordType:
		return f.checkText(name, text(value))
	case countType:
		return aboveZero(name, "number", value.Int(), value.Int())
	case Size:
		return aboveZero(name, "size", value.Int(), value.Int())
	case periodType:
		return aboveZero(name, "duration", value.Int(), time.Duration(value.Int()))
	default: // cannot be wrong
		return nil
	}
}

// aboveZero returns an error for a negative number. Zero is the default.
func aboveZero(name, what string, n int64, shown any) error {
	if n < 0 {
		return fmt.Errorf("%s is a %s above zero, not %v", name, what, shown)
	}
	return nil
}

func (f field) checkText(name string, value *string) error {
	if f.folder {
		*value = strings.Trim(*value, "/")
	}
	switch {
	case *value == "" && !f.option.Required:
		return nil
	case f.option.Type == wordType && !slices.Contains(f.option.Words, *value):
		return notAWord(name, *value, f.option.Words)
	case *value == "":
		return fmt.Errorf("%s is missing", name)
	case f.folder:
		if err := storagedrivers.ValidKey(*value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	case f.address:
		address, err := checkAddress(name, *value, f.option.Example)
		if err != nil {
			return err
		}
		*value = address
	}
	return nil
}

// checkAddress checks an option with the mark "address", and returns its canonical form, without a
// slash at its end. name is the name of the option. The error contains an example and no secret.
func checkAddress(name, value, example string) (string, error) {
	u, err := url.Parse(value)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
		u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" {
		return strings.TrimRight(u.String(), "/"), nil
	}
	return "", fmt.Errorf("%s is an address such as %s, not %q", name, example, harmless(value))
}

// harmless returns an invalid address without its secrets: a password, and a query, which may be a
// signature.
func harmless(address string) string {
	base, _, isQuery := strings.Cut(address, "?")
	if strings.Contains(base, "@") {
		u, err := url.Parse(base)
		if err != nil || u.User == nil {
			return "...@..."
		}
		base = u.Redacted()
	}
	if isQuery {
		return base + "?..."
	}
	return base
}

func notAWord(name, value string, words []string) error {
	return fmt.Errorf("%s is one of %s, not %q", name, strings.Join(words, ", "), value)
}

// Expander replaces placeholders such as {env.SECRET} in the texts of options, and keeps the first
// error.
type Expander struct {
	replace func(text string) (string, error)
	err     error
}

// NewExpander returns an Expander with a function that replaces all placeholders of a text.
func NewExpander(replace func(text string) (string, error)) *Expander {
	return &Expander{replace: replace}
}

// Text returns raw with placeholders replaced. name is the name of the option.
func (e *Expander) Text(name, raw string) string {
	value, err := e.replace(raw)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("%s: %w", name, err)
	}
	return value
}

// Secret is Text for a secret option. Its error contains at most the name of an environment
// variable or a file, because braces may be a part of the secret itself.
func (e *Expander) Secret(name, raw string) string {
	own := NewExpander(e.replace)
	value := own.Text(name, raw)
	if own.err != nil && e.err == nil {
		e.err = own.err
		if !elsewhere.MatchString(raw) {
			e.err = fmt.Errorf(`%s: there is a placeholder in it that stands for nothing; a brace of its own is written \{ or \}`, name)
		}
	}
	return value
}

// elsewhere matches a reference to a secret.
var elsewhere = regexp.MustCompile(`^\{(env|file)\.[^{}]+\}$`)

// Err returns the first error, which begins with the name of its option: a placeholder without a
// value, such as an environment variable that is not set.
func (e *Expander) Err() error { return e.err }

// HasPlaceholder reports whether a text may have a placeholder, so that it can be checked only
// after it is replaced.
func HasPlaceholder(text string) bool { return strings.Contains(text, "{") }
