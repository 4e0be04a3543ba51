package options

import (
	"reflect"
	"strings"
	"time"
)

// Values of secrets in the result of [Schema.Values].
const (
	Set    = "set"
	NotSet = "not set"
)

// Values returns the set options of config, the struct or a pointer to it, by name as in JSON:
// groups as maps, durations as strings. A secret is only [Set] or [NotSet].
func (s *Schema) Values(config any) map[string]any {
	return valuesOf(s.fields, s.structOf(config))
}

func valuesOf(fields []field, in reflect.Value) map[string]any {
	values := map[string]any{}
	for _, f := range fields {
		value := in.FieldByIndex(f.index)
		switch {
		case f.option.Secret && len(textsOf(value)) == 0:
			values[f.option.Name] = NotSet
		case f.option.Secret:
			values[f.option.Name] = Set
		case value.IsZero() || (f.option.Type == Texts || f.option.Type == Groups) && value.Len() == 0:
			// The option is not set.
		case f.option.Type == Group:
			values[f.option.Name] = valuesOf(f.group, value.Elem())
		case f.option.Type == Groups:
			named := map[string]any{}
			for name, group := range groups(value) {
				named[name] = valuesOf(f.group, group)
			}
			values[f.option.Name] = named
		case f.option.Type == Period:
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
