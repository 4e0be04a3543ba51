package naming

import (
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Decode returns a submitted name without the encodings of its sender. Libraries for mail, as in
// .NET and Java, send RFC 2047 words. Old programs send ISO-8859-1, which is assumed of a name that
// is not UTF-8. A word of another character set than UTF-8, ISO-8859-1 and ASCII is not decoded.
func Decode(submitted string) string {
	if !utf8.ValidString(submitted) {
		submitted = FromLatin1(submitted)
	}
	if decoded, err := new(mime.WordDecoder).DecodeHeader(submitted); err == nil && utf8.ValidString(decoded) {
		return decoded
	}
	return submitted
}

// FromLatin1 returns a text of the character set ISO-8859-1 in UTF-8.
func FromLatin1(s string) string {
	decoded, _ := charmap.ISO8859_1.NewDecoder().String(s) // every byte is a letter
	return decoded
}

// Base returns the last segment of a path of Windows or Unix, which may be empty.
func Base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }
