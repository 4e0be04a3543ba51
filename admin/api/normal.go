package api

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// normal is a text with its escapes undone, and where in the text each of its bytes was.
type normal struct {
	bytes []byte
	spans []span
}

// span is a part of a text.
type span struct{ start, end int }

// maxEscapes is how often a text may be escaped: an error quotes an address in which a
// password is escaped, and another one quotes that error.
const maxEscapes = 6

// plain is a text as it is.
func plain(text string) normal {
	n := normal{bytes: []byte(text), spans: make([]span, len(text))}
	for i := range n.spans {
		n.spans[i] = span{i, i + 1}
	}
	return n
}

// unescaped undoes the escapes of addresses, Go, JSON and XML until there are none. A
// secret is looked for in the same form, so it does no harm that one may look escaped.
func unescaped(text string) normal {
	n := plain(text)
	for range maxEscapes {
		before := len(n.bytes)
		if n = n.unescape(); len(n.bytes) == before {
			break
		}
	}
	return n
}

func (n normal) unescape() normal {
	var out normal
	for i := 0; i < len(n.bytes); {
		b, length := unescapeOne(n.bytes[i:])
		for range b {
			out.spans = append(out.spans, span{n.spans[i].start, n.spans[i+length-1].end})
		}
		out.bytes = append(out.bytes, b...)
		i += length
	}
	return out
}

// longestEscape is that of a letter in two halves: \ud83d\ude00.
const longestEscape = 12

// unescapeOne gives what the beginning of s stands for, and how long that is.
func unescapeOne(s []byte) (stands []byte, length int) {
	head := string(s[:min(len(s), longestEscape)])
	switch head[0] {
	case '+':
		return []byte{' '}, 1 // in a query
	case '%':
		if b, ok := number(head, 1, 2, 16); ok {
			return []byte{byte(b)}, 3
		}
	case '&':
		if r, length, ok := entity(head); ok {
			return utf8.AppendRune(nil, r), length
		}
	case '\\':
		return backslash(head)
	}
	return s[:1], 1
}

// entities of XML and HTML.
var entities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

func entity(s string) (r rune, length int, ok bool) {
	name, _, ok := strings.Cut(s[1:], ";")
	if !ok {
		return 0, 0, false
	}
	length = len(name) + 2
	if r, ok = entities[name]; ok {
		return r, length, true
	}
	digits, ok := strings.CutPrefix(strings.ToLower(name), "#")
	base := 10
	if hex, isHex := strings.CutPrefix(digits, "x"); isHex {
		digits, base = hex, 16
	}
	code, isNumber := number(digits, 0, len(digits), base)
	return rune(code), length, ok && isNumber
}

// letters behind a backslash, and what they stand for.
const (
	letters = "abfnrtv"
	stand   = "\a\b\f\n\r\t\v"
)

func backslash(s string) (stands []byte, length int) {
	if len(s) < 2 {
		return []byte(s), 1
	}
	if at := strings.IndexByte(letters, s[1]); at >= 0 {
		return []byte{stand[at]}, 2
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
	code, ok := number(s, 2, digits, 16)
	switch {
	case ok && s[1] == 'x':
		return []byte{byte(code)}, 2 + digits
	case ok && utf16.IsSurrogate(rune(code)) && strings.HasPrefix(s[2+digits:], `\u`):
		low, _ := number(s, 2+digits+2, digits, 16)
		if r := utf16.DecodeRune(rune(code), rune(low)); r != utf8.RuneError {
			return utf8.AppendRune(nil, r), longestEscape
		}
		return utf8.AppendRune(nil, utf8.RuneError), 2 + digits
	case ok:
		return utf8.AppendRune(nil, rune(code)), 2 + digits
	case 'a' <= s[1]|0x20 && s[1]|0x20 <= 'z' || '0' <= s[1] && s[1] <= '9':
		return []byte(s[:1]), 1
	default:
		return []byte(s[1:2]), 2
	}
}

// number reads so many digits of s from a place on.
func number(s string, from, digits, base int) (uint64, bool) {
	if digits == 0 || len(s) < from+digits {
		return 0, false
	}
	n, err := strconv.ParseUint(s[from:from+digits], base, 31)
	return n, err == nil
}

// find gives the parts of the text in which s stands.
func (n normal) find(s []byte) []span {
	var found []span
	text := string(n.bytes)
	for at := 0; len(s) > 0; {
		next := strings.Index(text[at:], string(s))
		if next < 0 {
			break
		}
		at += next
		found = append(found, span{n.spans[at].start, n.spans[at+len(s)-1].end})
		at++
	}
	return found
}
