package media

import (
	"fmt"
	"regexp"
)

// nameRule is a rule for names.
type nameRule struct {
	// Pattern is the regular expression of a whole name, and Words its description.
	Pattern, Words string

	what       string
	expression *regexp.Regexp
}

var (
	// Names is the rule for storages and aliases: their names must fit an address and a path of
	// the config API.
	Names = newNameRule("a name", `[a-z0-9_-]{1,64}`, "1 to 64 of a-z, 0-9, _ and -")
	// APIKeys is the rule for accounts: their keys must fit a header and a path of the config API.
	APIKeys = newNameRule("an API key", `[A-Za-z0-9._~-]{1,128}`, "1 to 128 of A-Z, a-z, 0-9, '.', '_', '~' and '-'")
)

func newNameRule(what, pattern, words string) nameRule {
	return nameRule{pattern, words, what, regexp.MustCompile("^" + pattern + "$")}
}

// Allows reports whether name conforms to the rule.
func (r nameRule) Allows(name string) bool { return r.expression.MatchString(name) }

// Check returns an error unless name conforms to the rule.
func (r nameRule) Check(name string) error {
	if !r.Allows(name) {
		return fmt.Errorf("%s is %s", r.what, r.Words)
	}
	return nil
}
