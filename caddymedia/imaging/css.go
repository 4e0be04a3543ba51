package imaging

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// cssActive are the constructs, other than url(), that load or run something.
var cssActive = []string{
	"@import", "image-set(", "cross-fade(", "image(", "src(",
	"expression(", "behavior:", "-moz-binding", "javascript:", "vbscript:",
}

// checkStyleSheet checks the text of a style element. An end tag in it is text to an XML parser,
// but ends the element once the image is pasted into an HTML page.
func checkStyleSheet(css string) error {
	if strings.Contains(css, "</") {
		return contentErrorf("the SVG contains a tag inside a style element")
	}
	return checkCSS(css)
}

// checkCSS refuses a style that fetches or runs anything: a url() must be a fragment or a raster
// image. It checks the text with its comments, because a string may look like a comment. It also
// checks the text without them, because old browsers joined the text around a comment.
func checkCSS(css string) error {
	if !strings.ContainsAny(css, `(@\:`) {
		return nil
	}
	if err := checkPlainCSS(unescapeCSS(css)); err != nil {
		return err
	}
	if strings.Contains(css, "/*") {
		return checkPlainCSS(unescapeCSS(stripComments(css)))
	}
	return nil
}

func checkPlainCSS(css string) error {
	css = strings.ReplaceAll(strings.ToLower(css), "scroll-behavior:", "") // harmless, but contains a word of the list
	for _, word := range cssActive {
		if strings.Contains(css, word) {
			return contentErrorf("the SVG contains style with %s", word)
		}
	}
	for {
		_, rest, ok := strings.Cut(css, "url(")
		if !ok {
			return nil
		}
		css = rest
		ref, end := trimURL(rest), byte(')')
		if ref != "" && (ref[0] == '"' || ref[0] == '\'') {
			ref, end = trimURL(ref[1:]), ref[0]
		}
		if empty := ref == "" || ref[0] == end; !empty && !localLink(ref) {
			return contentErrorf("the SVG refers to something outside of it in a style")
		}
	}
}

func stripComments(css string) string {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(css, "/*")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		_, css, _ = strings.Cut(rest, "*/")
	}
}

// unescapeCSS resolves the escapes of CSS Syntax 3, section 4.3.7: up to six hexadecimal digits and
// one white space, or any other character for itself. An escaped line end is removed.
func unescapeCSS(css string) string {
	if !strings.Contains(css, `\`) {
		return css
	}
	css = strings.ReplaceAll(css, "\r\n", "\n")
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(css, `\`)
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		digits := 0
		for digits < min(6, len(rest)) && strings.IndexByte("0123456789abcdefABCDEF", rest[digits]) >= 0 {
			digits++
		}
		switch {
		case digits > 0:
			code, _ := strconv.ParseUint(rest[:digits], 16, 32)
			out.WriteRune(rune(code))
			if rest = rest[digits:]; rest != "" && strings.IndexByte(" \t\n\r\f", rest[0]) >= 0 {
				rest = rest[1:]
			}
		case rest != "" && strings.IndexByte("\n\r\f", rest[0]) >= 0:
			rest = rest[1:]
		default:
			_, size := utf8.DecodeRuneInString(rest)
			out.WriteString(rest[:size])
			rest = rest[size:]
		}
		css = rest
	}
}
