package redact

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// mapped is a text whose escapes may be undone, with the position of each of its bytes in the
// original.
type mapped struct {
	text string
	at   []span
}

// span is a part of a text.
type span struct{ start, end int }

func plain(text string) mapped {
	m := mapped{text, make([]span, len(text))}
	for i := range m.at {
		m.at[i] = span{i, i + 1}
	}
	return m
}

// maxEscapes is how often a text may be escaped. For example, an error quotes an address with an
// escaped password, and another error quotes that error.
const maxEscapes = 6

// unescaped returns text, and text with its escapes undone once, twice and so on until none is
// left.
func unescaped(text string) []mapped {
	levels := []mapped{plain(text)}
	for i := range maxEscapes {
		next := levels[i].unescape()
		if next.text == levels[i].text {
			break
		}
		levels = append(levels, next)
	}
	return levels
}

// escape matches one escape of a URL, of XML, or of a Go or JSON string.
var escape = regexp.MustCompile(`\+|%[[:xdigit:]]{2}` +
	`|&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][[:xdigit:]]{1,6});` +
	`|\\(?:u[dD][89abAB][[:xdigit:]]{2}\\u[dD][c-fC-F][[:xdigit:]]{2}` +
	`|x[[:xdigit:]]{2}|u[[:xdigit:]]{4}|U[[:xdigit:]]{8}|[abfnrtv]|[^0-9A-Za-z])`)

// unescape undoes one level of escapes.
func (m mapped) unescape() mapped {
	var text strings.Builder
	at := make([]span, 0, len(m.at))
	end := 0
	for _, found := range escape.FindAllStringIndex(m.text, -1) {
		text.WriteString(m.text[end:found[0]])
		at = append(at, m.at[end:found[0]]...)
		end = found[1]
		meaning := meaningOf(m.text[found[0]:end])
		text.WriteString(meaning)
		for range len(meaning) {
			at = append(at, span{m.at[found[0]].start, m.at[end-1].end})
		}
	}
	text.WriteString(m.text[end:])
	return mapped{text.String(), append(at, m.at[end:]...)}
}

// meaningOf returns the text that an escape stands for.
func meaningOf(escape string) string {
	switch escape[0] {
	case '+':
		return " " // in a query
	case '%':
		text, _ := url.PathUnescape(escape) // two hexadecimal digits
		return text
	case '&':
		return html.UnescapeString(escape)
	}
	text, err := strconv.Unquote(`"` + escape + `"`)
	if err != nil && json.Unmarshal([]byte(`"`+escape+`"`), &text) != nil { // which knows pairs of surrogates
		return escape[1:]
	}
	return text
}

// find returns the parts of the original that contain s.
func (m mapped) find(s string) []span {
	var found []span
	for at := 0; s != ""; at++ {
		next := strings.Index(m.text[at:], s)
		if next < 0 {
			break
		}
		at += next
		found = append(found, span{m.at[at].start, m.at[at+len(s)-1].end})
	}
	return found
}
