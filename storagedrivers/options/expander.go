package options

import (
	"fmt"
	"regexp"
	"strings"
)

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

// HasPlaceholder reports whether a text may have a placeholder, so that it can be checked only after
// it is replaced.
func HasPlaceholder(text string) bool { return strings.Contains(text, "{") }
