// Package naming determines the name and the folder of an uploaded item. It looks at no storage, so
// it does not know whether a name is taken. Begin with [FileName] and [SubFolder].
//
// All input from callers (file name, sub folder) is untrusted. If sanitizing is on, it becomes
// plain lower-case ASCII that needs no encoding in an address. If sanitizing is off, it is used
// unchanged or refused. Normalization is the first step and the check the last, so an accepted name
// does not change any more.
//
// [Restricted] finds extensions that are never accepted, and a [Format] names the folder of an item
// without one.
//
// The functions are pure: equal arguments have equal results on every machine.
package naming

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name, and the longest segment of a folder, in bytes. Later additions (a
// time, the ending of a variant or of a temporary file) still fit in the 255 bytes of common file
// systems.
const maxName = 200

// Error is returned for a refused name, folder or format. It does not repeat the value, so it may
// be shown to the sender.
type Error struct {
	// Message is a lower-case phrase without a final stop.
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// FileName returns the stored name of an item for the submitted one.
//
// With sanitize, the name becomes lower-case ASCII of letters, digits, "-" and "_", at most 200
// bytes, with its last extension kept. An empty result is replaced by a short hash of the submitted
// name. Sanitizing is idempotent. Without sanitize, the name is returned as submitted.
//
// The error is an *[Error]. With sanitize it is returned for an empty name, a NUL, an absolute path
// or a ".." in a path. Without, it is returned for every name that cannot be stored safely
// unchanged. FileName does not check the extension: see [Restricted] for the submitted name and
// [Extension] for the result.
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

// Extension returns the last extension of a name in lower case without its dot, or "". Trailing
// dots and spaces do not hide it; the dot of a hidden file does not begin one.
func Extension(name string) string {
	name = strings.TrimLeft(strings.TrimRightFunc(Base(name), dotOrSpace), ".")
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return ""
	}
	return strings.ToLower(name[i+1:])
}

// WithExtension returns name with another extension. One that consists of digits, as the seconds in
// "shot at 10.15.30", is part of the name and stays.
func WithExtension(name, ext string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 && strings.Trim(name[i:], ".0123456789") != "" {
		name = name[:i]
	}
	return name + "." + ext
}

// WithTime returns name with a time inserted before its extension: photo.jpg and 1700000000 become
// photo-1700000000.jpg. The name must come from [FileName]; WithTime adds at most 21 bytes.
func WithTime(name string, unix int64) string {
	return WithSuffix(name, strconv.FormatInt(unix, 10))
}

// WithSuffix returns name with a hyphen and suffix inserted before its extension.
func WithSuffix(name, suffix string) string {
	base, ext := name, ""
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		base, ext = name[:i], name[i:]
	}
	return base + "-" + suffix + ext
}

// problem returns the reason why a segment cannot be stored unchanged, as the end of a sentence, or
// "".
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

// traverses reports whether a submitted name tries to leave its folder, also with characters that
// normalization turns into dots and slashes.
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

// blank reports whether r may be lost at the ends of a path or a segment.
func blank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r)
}

// invisible reports whether r should not be in a displayed name: controls, formatting such as
// changes of writing direction, line and paragraph separators.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
