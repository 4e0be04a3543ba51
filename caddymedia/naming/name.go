package naming

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name, and the longest segment of a folder, in bytes. It leaves room for what is added
// later (a time, the ending of a variant or of a temporary file) within the 255 bytes of common file systems.
const maxName = 200

// FileName returns the name under which an item is stored, for the name its caller submitted.
//
// With sanitize, the name becomes lower-case ASCII of letters, digits, "-" and "_", at most 200 bytes, with its last
// extension kept; one of which nothing is left gets a short hash of what was submitted. Doing it again changes
// nothing. Without sanitize, the name is returned exactly as submitted.
//
// The error is an *[Error]: with sanitize for an empty name, a NUL, an absolute path or a ".." in a path; without,
// for every name that cannot be stored safely as it is. Whether the extension may be stored at all is another
// question: see [Restricted], to be asked of the submitted name, and [Extension], to be asked of the result.
func FileName(submitted string, sanitize bool) (string, error) {
	if !sanitize {
		if p := problem(submitted); p != "" {
			return "", &Error{"the file name " + p}
		}
		return submitted, nil
	}
	switch {
	case submitted == "":
		return "", &Error{"the file name is empty"}
	case strings.ContainsRune(submitted, 0):
		return "", &Error{"the file name contains a control or invisible character"}
	case traverses(submitted):
		return "", &Error{`the file name is an absolute path or contains "..": send the bare name`}
	}
	return sanitizeName(submitted), nil
}

// WithTime returns name with a time added before its extension: photo.jpg and 1700000000 give photo-1700000000.jpg.
// It expects what [FileName] returned, and adds at most 21 bytes to it.
func WithTime(name string, unix int64) string {
	return WithSuffix(name, strconv.FormatInt(unix, 10))
}

// WithSuffix returns name with a hyphen and suffix added before its extension.
func WithSuffix(name, suffix string) string {
	base, ext := name, ""
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		base, ext = name[:i], name[i:]
	}
	return base + "-" + suffix + ext
}

// problem says why a segment cannot be stored exactly as it is, as the end of a sentence; "" if it can.
func problem(segment string) string {
	switch {
	case segment == "":
		return "is empty"
	case len(segment) > maxName:
		return "is longer than " + strconv.Itoa(maxName) + " bytes"
	case !utf8.ValidString(segment):
		return "is not valid UTF-8"
	case strings.ContainsAny(segment, `/\`):
		return "contains a slash or backslash"
	case strings.ContainsFunc(segment, invisible):
		return "contains a control or invisible character"
	case segment[0] == '.':
		return "starts with a dot"
	case strings.TrimRightFunc(segment, dotOrSpace) != segment:
		return "ends with a dot or space"
	}
	return ""
}

// traverses reports whether a submitted name tries to leave its folder, also in characters that only become dots and
// slashes when they are normalized.
func traverses(submitted string) bool {
	path := strings.TrimFunc(fold(submitted), blank)
	if strings.IndexFunc(path, separator) == 0 {
		return true
	}
	for segment := range strings.FieldsFuncSeq(path, separator) {
		if strings.TrimFunc(segment, blank) == ".." {
			return true
		}
	}
	return false
}

func separator(r rune) bool {
	return r == '/' || r == '\\'
}

func dotOrSpace(r rune) bool {
	return r == '.' || unicode.IsSpace(r)
}

// blank tells characters that may be lost at the ends of a path or a segment.
func blank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r)
}

// invisible tells characters that no name shown to a person should hold: controls, formatting such as the switch of
// writing direction, line and paragraph separators.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
