package options

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Expand replaces placeholders in the texts of config, a pointer to the struct, and checks texts
// and numbers by the tags of their fields. It removes slashes at the end of addresses and around
// folders. Lists and groups are replaced by new ones, so that config may be a shallow copy of a
// struct that must not change. A null among named groups becomes an empty group. The error begins
// with the name of the option, after that of its group and a dot: `webp.quality`, or
// `renditions.thumb.width`.
func (s *Schema) Expand(config any) error {
	value := s.structOf(config)
	var expand Expander
	expandAll(&expand, s.fields, value, "")
	if err := expand.Err(); err != nil {
		return err
	}
	return checkAll(s.fields, value, "")
}

func expandAll(expand *Expander, fields []field, in reflect.Value, path string) {
	for _, f := range fields {
		value, name := in.FieldByIndex(f.index), path+f.option.Name
		expanded := expand.Text
		if f.option.Secret {
			expanded = expand.Secret
		}
		switch f.option.Type {
		case Text, Word:
			into := text(value)
			*into = expanded(name, *into)
		case Texts:
			texts := slices.Clone(value.Interface().([]string)) // that is what Texts are
			for i, raw := range texts {
				texts[i] = expanded(name, raw)
			}
			if len(texts) == 0 {
				texts = nil // however it is spelt
			}
			value.Set(reflect.ValueOf(texts))
		case Group:
			if value.IsNil() {
				continue
			}
			value.Set(copied(value))
			expandAll(expand, f.group, value.Elem(), name+".")
		case Groups:
			value.Set(copies(value))
			for key, group := range groups(value) {
				expandAll(expand, f.group, group, name+"."+key+".")
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

func checkAll(fields []field, in reflect.Value, path string) error {
	for _, f := range fields {
		value, name := in.FieldByIndex(f.index), path+f.option.Name
		var err error
		switch f.option.Type {
		case Text, Word:
			err = f.checkText(name, text(value))
		case Count:
			err = aboveZero(name, "number", value.Int(), value.Int())
		case Size:
			err = aboveZero(name, "size", value.Int(), value.Int())
		case Period:
			err = aboveZero(name, "duration", value.Int(), time.Duration(value.Int()))
		case Group:
			if !value.IsNil() {
				err = checkAll(f.group, value.Elem(), name+".")
			}
		case Groups:
			for key, group := range groups(value) {
				if err = checkAll(f.group, group, name+"."+key+"."); err != nil {
					break
				}
			}
		default: // cannot be wrong
		}
		if err != nil {
			return err
		}
	}
	return nil
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
	case f.option.Type == Word && !slices.Contains(f.option.Words, *value):
		return notAWord(name, *value, f.option.Words)
	case *value == "":
		return fmt.Errorf("%s is missing", name)
	case f.folder:
		if err := storagedrivers.ValidKey(*value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	case f.address:
		address, err := Address(name, *value, f.option.Example)
		if err != nil {
			return err
		}
		*value = address
	}
	return nil
}

// Address checks an option with the mark "address", and returns its canonical form, without a slash
// at its end. name is the name of the option. The error contains an example and no secret.
func Address(name, value, example string) (string, error) {
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
