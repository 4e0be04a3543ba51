package naming

import (
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
)

// restricted matches what web servers run as PHP, what shells run, and what changes how a folder is served.
var restricted = regexp.MustCompile(`^(php[0-9]*|phps|pht|phtm|phtml|phar|sh|bash|zsh|ksh|csh|htaccess|htpasswd)$`)

// userINI is the file by which a folder changes the settings of PHP; its extension alone is harmless.
const userINI = ".user.ini"

// unescapings is how often a name is percent-decoded: once by a server, once more by a careless one, and to spare.
const unescapings = 3

// Restricted returns the never allowed extension that a name carries, "" for none. It counts in any position, in any
// case, and however it is dressed up: look-alike letters, invisible characters, percent-encoding, what a file system
// or a server cuts off. The name may be one that was submitted, a stored one, or a whole folder.
func Restricted(name string) string {
	// The sanitized form is another name than the folded one: file.ш is stored as file.sh.
	if ext := restrictedIn(sanitizeName(name)); ext != "" {
		return ext
	}
	ext := restrictedIn(fold(name))
	for i := 0; ext == "" && i < unescapings && strings.Contains(name, "%"); i++ {
		name = unescape(name)
		ext = restrictedIn(fold(name))
	}
	return ext
}

// RestrictedExtension reports whether an extension, with or without its dot, is never allowed: for checking a list
// of extensions when a configuration loads.
func RestrictedExtension(ext string) bool {
	return Restricted("x."+ext) != "" || Restricted(ext) != ""
}

// restrictedIn looks at the segments of a folded name.
func restrictedIn(path string) string {
	for segment := range strings.FieldsFuncSeq(path, separator) {
		first, rest, _ := strings.Cut(segment, ".")
		if first == "" && core(rest) == userINI[1:] {
			return userINI[1:]
		}
		for part := range strings.SplitSeq(rest, ".") {
			if part = core(part); restricted.MatchString(part) {
				return part
			}
		}
	}
	return ""
}

// core returns what counts of a folded extension: up to a character at which a file system, a URL or a C string ends
// a name, without anything but letters and digits at its ends.
func core(part string) string {
	if i := strings.IndexAny(part, ":;%?#\x00"); i >= 0 {
		part = part[:i]
	}
	return strings.TrimFunc(part, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// unescape decodes percent-encoding and leaves alone what is none.
func unescape(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "%")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if c, err := hex.DecodeString(after[:min(len(after), 2)]); err == nil && len(c) == 1 {
			b.Write(c)
			after = after[2:]
		} else {
			b.WriteByte('%')
		}
		s = after
	}
}
