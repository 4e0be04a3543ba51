package naming

import (
	"errors"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// Decode returns a submitted name without the encodings of its sender. Libraries for mail, as in
// .NET and Java, send RFC 2047 words. Old programs send ISO-8859-1, which is assumed of a name that
// is not UTF-8. A word of an unknown character set is not decoded.
func Decode(submitted string) string {
	if !utf8.ValidString(submitted) {
		submitted = FromLatin1(submitted)
	}
	if decoded, err := words.DecodeHeader(submitted); err == nil && utf8.ValidString(decoded) {
		return decoded
	}
	return submitted
}

// FileNameOf returns the last segment of a submitted path, decoded like by [Decode]. It may be
// empty.
func FileNameOf(submitted string) string { return Base(Decode(withoutTrails(submitted))) }

// withoutTrails returns a submitted name without backslashes that are the second bytes of letters,
// as in Shift_JIS and Big5. They are no separators of a path.
func withoutTrails(submitted string) string {
	if utf8.ValidString(submitted) || submitted[0] == '\\' || len(submitted) > 1 && submitted[1] == ':' {
		return submitted // a path of Windows begins so
	}
	name := []byte(submitted)
	for i := 1; i < len(name); i++ {
		if name[i] == '\\' && name[i-1] > utf8.RuneSelf {
			name[i] = '_'
		}
	}
	return string(name)
}

// Base returns the last segment of a path of Windows or Unix, which may be empty.
func Base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// FromLatin1 returns a text of the character set ISO-8859-1 in UTF-8.
func FromLatin1(s string) string {
	decoded, _ := charmap.ISO8859_1.NewDecoder().String(s) // every byte is a letter
	return decoded
}

var errCharset = errors.New("unknown character set, or no text of it")

var words = &mime.WordDecoder{CharsetReader: func(charset string, r io.Reader) (io.Reader, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	decoded, err := FromCharset(charset, string(text))
	return strings.NewReader(decoded), err
}}

// FromCharset returns a text of a character set in UTF-8.
func FromCharset(charset, text string) (string, error) {
	switch strings.ToLower(charset) { // browsers call the last two windows-1252
	case "utf-8", "us-ascii":
		if !utf8.ValidString(text) {
			return "", errCharset
		}
		return text, nil
	case "iso-8859-1":
		return FromLatin1(text), nil
	}
	known, err := htmlindex.Get(charset)
	if err != nil || known == encoding.Replacement {
		return "", errCharset
	}
	return known.NewDecoder().String(text)
}
