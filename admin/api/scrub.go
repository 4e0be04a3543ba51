package api

import (
	"cmp"
	"slices"
	"strings"
)

const (
	hidden     = "***"
	hiddenText = "(not shown: it may have a secret in it)"
	// A secret shorter than this stands in many words by chance.
	minSecret = 4
)

// Scrub removes secrets from a text, however they are quoted or escaped in it. A text with a
// very short secret in it is not shown at all.
func Scrub(text string, secrets []string) string {
	all := make([]string, 0, 2*len(secrets)) // most are one line
	for _, secret := range secrets {
		all = append(all, parts(secret)...)
	}
	text = hide(text, stands(text, all, func(secret string) bool { return len(secret) >= minSecret }))
	if len(stands(text, all, func(secret string) bool { return len(secret) < minSecret })) > 0 {
		return hiddenText
	}
	return text
}

// stands gives the parts of a text in which those secrets stand that are meant.
func stands(text string, secrets []string, meant func(string) bool) []span {
	var found []span
	asItIs, bare := plain(text), unescaped(text)
	for _, secret := range secrets {
		if meant(secret) {
			found = append(found, asItIs.find([]byte(secret))...)
			found = append(found, bare.find(unescaped(secret).bytes)...)
		}
	}
	return found
}

// hide replaces parts of a text, which may overlap.
func hide(text string, found []span) string {
	slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	var shown strings.Builder
	end := 0 // of what is written or hidden
	for _, part := range found {
		if part.start >= end {
			shown.WriteString(text[end:part.start] + hidden)
		}
		end = max(end, part.end)
	}
	return shown.String() + text[end:]
}

// parts gives what is secret in a secret: the whole, each line of a key, the keys and
// signatures of a connection string, and the password of an address.
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
	if _, address, ok := strings.Cut(secret, "://"); ok {
		_, password, _ := strings.Cut(address[:max(strings.LastIndex(address, "@"), 0)], ":")
		all = append(all, password)
	}
	return slices.DeleteFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" })
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
