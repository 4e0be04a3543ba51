package options

import "strings"

// Blamed returns the path of the option that an error is about; empty if there is none. One part of
// the error begins with the option, as in errors of [Schema.Expand]: for `webp: quality is a
// number` Blamed returns "webp.quality".
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
		path := prefix + option.Name
		if word == option.Name || word == path {
			return path, option.Options
		}
		if inner, below := find(word, path+".", option.Options); inner != "" {
			return inner, below
		}
	}
	return "", nil
}
