package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gosimple/unidecode"
	"golang.org/x/text/unicode/norm"
)

// maxExtension is the longest extension; longer ones become part of the base.
const maxExtension = 32

// sanitizeName returns the sanitized form of any name, including those that FileName refuses.
func sanitizeName(submitted string) string {
	base, ext := sanitizedParts(submitted)
	if base == "" {
		base = shortHash(submitted)
	}
	if ext == "" {
		return cut(base, maxName)
	}
	return cut(base, maxName-len(ext)-1) + "." + ext
}

// sanitizeSegment returns the sanitized form of a segment of a folder, which has no extension.
func sanitizeSegment(submitted string) string {
	s := hyphens(plain(fold(submitted)))
	if s == "" {
		s = shortHash(submitted)
	}
	return cut(s, maxName)
}

// sanitizedParts splits a name at its last extension and sanitizes both parts. Either may be empty.
func sanitizedParts(submitted string) (base, ext string) {
	// A leading dot hides a file; it does not begin an extension. A dot before the last separator
	// belongs to a folder.
	s := fold(strings.TrimLeft(submitted, "."))
	if i := strings.LastIndexFunc(s, separator); i >= 0 {
		s = strings.ReplaceAll(s[:i], ".", "-") + s[i:]
	}
	s = strings.TrimRight(plain(s), "-.")
	base = s
	if i := strings.LastIndexByte(s, '.'); i >= 0 {
		if e := hyphens(s[i+1:]); len(e) <= maxExtension {
			base, ext = s[:i], e
		}
	}
	return hyphens(base), ext
}

// fold returns the compatibility form of s in lower case without its invisible characters. It looks
// like s to readers and to systems that normalize names.
func fold(s string) string {
	if isASCII(s) { // which has neither other forms nor such characters
		return strings.ToLower(s)
	}
	s = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, norm.NFKC.String(s))
	return strings.ToLower(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// plain returns folded text in the characters a-z, 0-9, "-", "_" and ".". Only dots of s become
// dots.
func plain(s string) string {
	if strings.TrimFunc(s, isPlain) == "" {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case isPlain(r):
			b.WriteRune(r)
		case r >= 0x80 && unicode.In(r, unicode.L, unicode.M, unicode.N):
			b.WriteString(transliterate(r))
		default:
			b.WriteByte('-')
		}
	}
	return b.String()
}

func isPlain(r rune) bool {
	return r == '.' || r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
}

// transliterate returns plain letters and digits for a letter, a mark or a number of any script.
// Marks and silent letters become nothing, letters of unknown scripts a hyphen.
func transliterate(r rune) string {
	known := unidecode.Unidecode(string(r))
	if known == "" && !unicode.Is(unicode.M, r) {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r == ' ', r == '-':
			return '-'
		}
		return -1
	}, strings.ToLower(known))
}

// hyphens replaces runs of dots and hyphens by one hyphen, and removes them at both ends.
func hyphens(s string) string {
	if !strings.ContainsAny(s, "-.") {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '-' || r == '.' }), "-")
}

// Searchable returns the form in which a name, or a part of one, is compared in a search: the
// characters a-z, 0-9, "_" and "-". A part of a submitted name is then a part of its stored name,
// with or without sanitizing. It is empty for a text without letters and digits.
func Searchable(part string) string {
	s := plain(fold(part))
	if strings.Trim(s, "-.") == "" {
		return ""
	}
	one := make([]byte, 0, len(s)) // hyphen for each run of hyphens and dots
	for _, c := range []byte(s) {
		if c != '-' && c != '.' {
			one = append(one, c)
		} else if len(one) == 0 || one[len(one)-1] != '-' {
			one = append(one, '-')
		}
	}
	return string(one)
}

// cut shortens plain text without leaving a hyphen at its end.
func cut(s string, size int) string {
	return strings.TrimRight(s[:min(len(s), size)], "-")
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}
