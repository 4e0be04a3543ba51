// Package redact hides secrets in texts that people read: errors, answers, log messages. It does
// not find secrets by their form: they are given to it. Begin with [New].
package redact

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// Hidden replaces a secret.
	Hidden = "***"

	minSecret = 4  // bytes; shorter secrets occur in words by chance
	minPart   = 16 // bytes; shorter lines and values say nothing by themselves
)

// Redactor hides secrets and their parts in every spelling: plain, or quoted or escaped as in Go,
// JSON, XML and URLs, also repeatedly. The zero value hides nothing. It is safe for concurrent use.
type Redactor struct{ long, short []string }

// New returns a redactor of secrets. It ignores empty ones.
func New(secrets ...string) Redactor {
	var r Redactor
	for _, whole := range secrets {
		for _, part := range parts(whole) {
			if len(part) < minSecret {
				r.short = append(r.short, part)
				continue
			}
			for _, level := range unescaped(part) { // a secret may look escaped
				if len(level.text) >= minSecret {
					r.long = append(r.long, level.text)
				}
			}
		}
	}
	return r
}

// Text returns text with its secrets hidden. Secrets of less than four bytes stay, because they
// occur in words by chance.
func (r Redactor) Text(text string) string { return hide(text, find(text, r.long)) }

// Strict is Text, but it also hides shorter secrets that are a whole word.
func (r Redactor) Strict(text string) string {
	text = r.Text(text)
	return hide(text, slices.DeleteFunc(find(text, r.short), func(found span) bool {
		before, _ := utf8.DecodeLastRuneInString(text[:found.start])
		after, _ := utf8.DecodeRuneInString(text[found.end:])
		return isWord(before) || isWord(after)
	}))
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// hide returns text without the parts at the positions, which are in order.
func hide(text string, secrets []span) string {
	var shown strings.Builder
	end := 0 // of the part that is written or hidden
	for _, found := range secrets {
		if found.start >= end {
			shown.WriteString(text[end:found.start] + Hidden)
		}
		end = max(end, found.end)
	}
	return shown.String() + text[end:]
}

// find returns the positions of secrets in a text, in order. They may overlap.
func find(text string, secrets []string) []span {
	if len(secrets) == 0 {
		return nil
	}
	var found []span
	for _, level := range unescaped(text) {
		for _, secret := range secrets {
			found = append(found, level.find(secret)...)
		}
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return found
}

// parts returns a secret and those of its parts that are secrets themselves: each line of a key,
// the keys and signatures of a connection string, and the password of a URL.
func parts(whole string) []string {
	all := []string{whole, strings.TrimSpace(whole)}
	for line := range strings.Lines(whole) {
		if line = strings.TrimSpace(line); len(line) >= minPart && !strings.HasPrefix(line, "-----") {
			all = append(all, line)
		}
	}
	for _, pair := range strings.FieldsFunc(whole, func(r rune) bool { return strings.ContainsRune(";&?", r) }) {
		name, value, _ := strings.Cut(strings.ToLower(pair), "=")
		if len(value) >= minPart && (strings.HasSuffix(name, "key") || strings.HasPrefix(name, "sig")) {
			all = append(all, pair[len(name)+1:])
		}
	}
	if _, address, ok := strings.Cut(whole, "://"); ok {
		_, password, _ := strings.Cut(address[:max(strings.LastIndex(address, "@"), 0)], ":")
		all = append(all, password)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return strings.TrimSpace(s) == "" })
}
