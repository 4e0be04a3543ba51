package adminapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/caddymedia/media/storagedrivers/options"
)

// shown returns the described options of an entry without any secret, and the paths of the secrets
// that are set.
func shown(opts []options.Option, entry object) (value object, secrets []string) {
	value = object{}
	for _, option := range opts {
		option = asGroup(option, entry)
		given, ok := entry[option.Name]
		switch {
		case !ok || given == nil:
		case option.Secret:
			if !empty(given) {
				secrets = append(secrets, option.Name)
			}
		case option.Type == options.Group:
			inner, below := shown(option.Options, group(entry, option.Name))
			value[option.Name] = inner
			for _, path := range below {
				secrets = append(secrets, option.Name+"."+path)
			}
		default:
			value[option.Name] = given
		}
	}
	return value, secrets
}

// merger merges the options that an administrator has sent into an entry.
type merger struct {
	secrets map[string]string // by their paths; an empty one is removed
	used    []string          // of the secrets
}

// merged returns the entry that replaces old, with the options in value. Secrets that are not
// listed keep their values.
func merged(opts []options.Option, old, value object, secrets map[string]string) (object, error) {
	m := merger{secrets: secrets}
	entry, err := m.merge("", opts, old, value)
	if err != nil {
		return nil, err
	}
	for path := range secrets {
		if !slices.Contains(m.used, path) {
			return nil, refused(path, "there is no secret option %q", path)
		}
	}
	return entry, nil
}

func (m *merger) merge(prefix string, opts []options.Option, old, value object) (object, error) {
	entry := object{}
	for name := range value {
		if !slices.ContainsFunc(opts, func(o options.Option) bool { return o.Name == name }) {
			return nil, refused(prefix+name, "there is no option %q", prefix+name)
		}
	}
	for _, declared := range opts {
		var err error
		var given any
		option := asGroup(declared, old, value)
		path := prefix + option.Name
		switch {
		case option.Secret && value[option.Name] != nil:
			return nil, refused(path, "%q is a secret and is sent as one", path)
		case option.Secret:
			given = old[option.Name]
			if text, named := m.secrets[path]; named {
				m.used = append(m.used, path)
				given = text
			}
		case option.Type == options.Group:
			given, err = m.group(path, option, group(old, option.Name), value[option.Name])
		case !empty(value[option.Name]):
			given = value[option.Name]
			if err := option.CheckJSON(path, given); err != nil {
				return nil, refused(path, "%v", err)
			}
		}
		if err != nil {
			return nil, err
		}
		if isSet(declared, given) {
			entry[option.Name] = given
		}
	}
	return entry, nil
}

// group returns the new value of a group, which has a meaning even if it is empty. Without a value
// the group is left out, and so are its secrets.
func (m *merger) group(path string, option options.Option, old object, value any) (any, error) {
	inner, isObject := value.(object)
	if value != nil && !isObject {
		return nil, refused(path, "%q holds further options", path)
	}
	named := false
	for secret := range m.secrets {
		named = named || strings.HasPrefix(secret, path+".")
	}
	if value == nil && !named {
		return nil, nil //nolint:nilnil // see above
	}
	return m.merge(path+".", option.Options, old, inner)
}

// isSet reports whether an option is written with a value. An empty group has a meaning.
func isSet(option options.Option, value any) bool {
	switch option.Type {
	case options.Group:
		return value != nil
	case options.Groups:
		named, _ := value.(object)
		return len(named) > 0
	default:
		return !empty(value)
	}
}

// asGroup turns an option of named groups into one group: it has an inner group for each name in
// the entries. It returns other options unchanged.
func asGroup(option options.Option, entries ...object) options.Option {
	if option.Type != options.Groups {
		return option
	}
	names := map[string]bool{}
	for _, entry := range entries {
		for name, named := range group(entry, option.Name) {
			if _, ok := named.(object); ok {
				names[name] = true
			}
		}
	}
	one := options.Option{Name: option.Name, Type: options.Group}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		one.Options = append(one.Options, options.Option{Name: name, Type: options.Group, Options: option.Options})
	}
	return one
}

// empty reports whether a value stands for an option that is not set.
func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case object:
		for _, inner := range value {
			if !empty(inner) {
				return false
			}
		}
		return true
	default:
		return false
	}
}
