package mediaapp

import "regexp"

// Rules about names, as regular expressions and in words.
const (
	NamePattern   = `[a-z0-9_-]{1,64}`
	NameRule      = "1 to 64 of a-z, 0-9, _ and -"
	APIKeyPattern = `[A-Za-z0-9._~-]{1,128}`
	APIKeyRule    = "1 to 128 of A-Z, a-z, 0-9, '.', '_', '~' and '-'"
)

var (
	validName   = regexp.MustCompile("^" + NamePattern + "$")
	validAPIKey = regexp.MustCompile("^" + APIKeyPattern + "$")
)

// ValidName reports whether a storage or an alias may have that name: it must fit an address and
// a path of the config API.
func ValidName(name string) bool { return validName.MatchString(name) }

// ValidAPIKey reports whether an account may have that API key: it must fit a header and a path
// of the config API.
func ValidAPIKey(key string) bool { return validAPIKey.MatchString(key) }
