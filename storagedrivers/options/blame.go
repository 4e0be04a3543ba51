package options

import "strings"

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

// namedIn returns the group that word, a path, has below that of Groups; none if it is no such path.
func namedIn(word, path string, options []Option) []Option {
	below, ok := strings.CutPrefix(word, path+".")
	if !ok {
		return nil
	}
	name, _, _ := strings.Cut(below, ".")
	return []Option{{Name: name, Type: Group, Options: options}}
}
