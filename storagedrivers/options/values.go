package options

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Values of secrets in the result of [Schema.Values].
const (
	isSet  = "set"
	notSet = "not set"
)

// Values returns the set options of config, the struct or a pointer to it, by name as in JSON:
// groups as maps, durations as strings. A secret is only "set" or "not set".
func (s *Schema) Values(config any) map[string]any {
	return valuesOf(s.fields, s.structOf(config))
}

func valuesOf(fields []field, in reflect.Value) map[string]any {
	values := map[string]any{}
	for _, f := range fields {
		value := in.FieldByIndex(f.index)
		switch {
		case f.option.Secret && len(textsOf(value)) == 0:
			values[f.option.Name] = notSet
		case f.option.Secret:
			values[f.option.Name] = isSet
		case value.IsZero() || (f.option.Type == textsType || f.option.Type == Groups) && value.Len() == 0:
			// The option is not set.
		case f.option.Type == Group:
			values[f.option.Name] = valuesOf(f.group, value.Elem())
		case f.option.Type == Groups:
			named := map[string]any{}
			for name, group := range groups(value) {
				named[name] = valuesOf(f.group, group)
			}
			values[f.option.Name] = named
		case f.option.Type == periodType:
			values[f.option.Name] = shortly(time.Duration(value.Int()))
		case value.Kind() == reflect.String:
			values[f.option.Name] = value.String()
		default:
			values[f.option.Name] = reflect.Indirect(value).Interface()
		}
	}
	return values
}

// shortly returns a duration in a short form: "1h" instead of Go's "1h0m0s".
func shortly(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Secrets returns the values of the secret options of config, the struct or a pointer to it, that
// are not empty.
func (s *Schema) Secrets(config any) []string {
	return secretsOf(s.fields, s.structOf(config))
}

func secretsOf(fields []field, in reflect.Value) []string {
	var secrets []string
	for _, f := range fields {
		value := in.FieldByIndex(f.index)
		switch {
		case f.option.Secret:
			secrets = append(secrets, textsOf(value)...)
		case f.option.Type == Group && !value.IsNil():
			secrets = append(secrets, secretsOf(f.group, value.Elem())...)
		case f.option.Type == Groups:
			for _, group := range groups(value) {
				secrets = append(secrets, secretsOf(f.group, group)...)
			}
		}
	}
	return secrets
}

// textsOf returns the non-empty strings in a string or a list.
func textsOf(value reflect.Value) []string {
	all, isList := reflect.TypeAssert[[]string](value)
	if !isList {
		all = []string{value.String()}
	}
	var texts []string
	for _, s := range all {
		if s != "" {
			texts = append(texts, s)
		}
	}
	return texts
}

// CheckJSON returns an error if value is invalid for the option, which is no Group or Groups.
// Numbers in value must be [json.Number]. The error begins with name and contains nothing of the
// value.
func (o Option) CheckJSON(name string, value any) error {
	var what string
	var ok bool
	switch o.Type {
	case textsType:
		what, ok = "a list of texts", areTexts(value)
	case switchType:
		what = "true or false"
		_, ok = value.(bool)
	case countType:
		what, ok = "a whole number", isWhole(value)
	case Size:
		what, ok = "a whole number of bytes", isWhole(value)
	case periodType:
		what, ok = "a duration such as 30s, 5m or 1h30m", isDuration(value)
	default:
		what = "a text"
		_, ok = value.(string)
	}
	if !ok {
		return fmt.Errorf("%s is %s", name, what)
	}
	return nil
}

func areTexts(value any) bool {
	list, ok := value.([]any)
	for _, element := range list {
		if _, isText := element.(string); !isText {
			return false
		}
	}
	return ok
}

func isWhole(value any) bool {
	number, ok := value.(json.Number)
	if !ok {
		return false
	}
	_, err := number.Int64()
	return err == nil
}

// isDuration also accepts nanoseconds, as in Caddy's own JSON.
func isDuration(value any) bool {
	text, ok := value.(string)
	if !ok {
		return isWhole(value)
	}
	_, err := ParseDuration(text)
	return err == nil
}

// Blamed returns the path of the option that an error is about; empty if there is none. One part of
// the error begins with the option, as in errors of [Schema.Expand]: for `webp: quality is a
// number` Blamed returns "webp.quality", and for `renditions.thumb: width is missing`
// "renditions.thumb.width".
func Blamed(message string, options []Option) string {
	for message != "" {
		part, rest, _ := strings.Cut(message, ": ")
		word, _, _ := strings.Cut(part, " ")
		if path, inner := find(word, "", options); path != "" {
			if below := Blamed(rest, inner); below != "" {
				return path + "." + below
			}
			return path
		}
		message = rest
	}
	return ""
}

// find returns the path of an option, searched by its name or path, and the options in it.
func find(word, prefix string, options []Option) (string, []Option) {
	for _, option := range options {
		path, inside := prefix+option.Name, option.Options
		if option.Type == Groups {
			inside = namedIn(word, path, inside)
		}
		if word == option.Name || word == path {
			return path, inside
		}
		if inner, below := find(word, path+".", inside); inner != "" {
			return inner, below
		}
	}
	return "", nil
}

// namedIn returns the group that word, a path, has below that of Groups; none if it is no such
// path.
func namedIn(word, path string, options []Option) []Option {
	below, ok := strings.CutPrefix(word, path+".")
	if !ok {
		return nil
	}
	name, _, _ := strings.Cut(below, ".")
	return []Option{{Name: name, Type: Group, Options: options}}
}
