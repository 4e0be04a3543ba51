package media

import (
	"fmt"
	"regexp"
)

// NameRule is a rule for names.
type NameRule struct {
	// Pattern is the regular expression of a whole name, and Words its description.
	Pattern, Words string

	expression *regexp.Regexp
}

var (
	// Names is the rule for storages and aliases: their names must fit an address and a path of
	// the config API.
	Names = newNameRule(`[a-z0-9_-]{1,64}`, "1 to 64 of a-z, 0-9, _ and -")
	// APIKeys is the rule for accounts: their keys must fit a header and a path of the config API.
	APIKeys = newNameRule(`[A-Za-z0-9._~-]{1,128}`, "1 to 128 of A-Z, a-z, 0-9, '.', '_', '~' and '-'")
)

func newNameRule(pattern, words string) NameRule {
	return NameRule{pattern, words, regexp.MustCompile("^" + pattern + "$")}
}

// Allows reports whether name conforms to the rule.
func (r NameRule) Allows(name string) bool { return r.expression.MatchString(name) }

// CheckName returns an error unless name conforms to [Names]. The noun is "storage" or "alias".
func CheckName(noun, name string) error {
	if !Names.Allows(name) {
		return fmt.Errorf("%s %q: a name is %s", noun, name, Names.Words)
	}
	return nil
}

// CheckAPIKey returns an error unless key conforms to [APIKeys].
func CheckAPIKey(key string) error {
	if !APIKeys.Allows(key) {
		return fmt.Errorf("account %q: an API key is %s", key, APIKeys.Words)
	}
	return nil
}
