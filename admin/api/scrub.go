package api

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	hidden     = "***"
	hiddenText = "(not shown: it may have a secret in it)"
	// A secret shorter than this stands in many words by chance.
	minSecret = 4
)

// Scrub removes secrets from a text, in the ways in which an error may write them: plain,
// quoted, or escaped in an address. A text with a very short secret in it is not shown at
// all.
func Scrub(text string, secrets []string) string {
	var forms []string
	for _, secret := range secrets {
		for _, part := range parts(secret) {
			forms = append(forms, written(part)...)
		}
	}
	// A secret may have another one in it.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for _, form := range slices.Compact(forms) {
		if !strings.Contains(text, form) {
			continue
		}
		if len(form) < minSecret {
			return hiddenText
		}
		text = strings.ReplaceAll(text, form, hidden)
	}
	return text
}

// parts gives what is secret in a secret: the whole, each line of a key, and the keys and
// signatures of a connection string.
func parts(secret string) []string {
	const long = 16 // shorter ones say nothing by themselves
	all := []string{secret, strings.TrimSpace(secret)}
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); len(line) >= long && !strings.HasPrefix(line, "-----") {
			all = append(all, line)
		}
	}
	for _, pair := range strings.FieldsFunc(secret, func(r rune) bool { return strings.ContainsRune(";&?", r) }) {
		name, value, _ := strings.Cut(strings.ToLower(pair), "=")
		if len(value) >= long && (strings.HasSuffix(name, "key") || strings.HasPrefix(name, "sig")) {
			all = append(all, pair[len(name)+1:])
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// written gives the ways in which a text is written.
func written(s string) []string {
	quoted := strconv.Quote(s)
	forms := []string{s, quoted[1 : len(quoted)-1], url.QueryEscape(s), url.PathEscape(s)}
	if inJSON, err := json.Marshal(s); err == nil {
		forms = append(forms, string(inJSON[1:len(inJSON)-1]))
	}
	return forms
}

// scrub removes the secrets of the app, and those that were hidden, from a text.
func (c *call) scrub(text string) string {
	c.hide(nil)
	return Scrub(text, c.secrets)
}

// hide adds secrets that are not the app's.
func (c *call) hide(secrets []string) {
	if c.secrets == nil {
		c.secrets = append([]string{}, c.app.Secrets()...)
	}
	c.secrets = append(c.secrets, secrets...)
}
