package naming

import (
	"encoding/hex"
	"strings"
	"unicode"
)

// restricted are the extensions that web servers run as PHP, that shells run, or that change how a
// folder is served. "php" may be followed by the digits of a version.
var restricted = map[string]bool{
	"php": true, "phps": true, "pht": true, "phtm": true, "phtml": true, "phar": true,
	"sh": true, "bash": true, "zsh": true, "ksh": true, "csh": true, "htaccess": true, "htpasswd": true,
}

func isRestricted(ext string) bool {
	return restricted[ext] || strings.HasPrefix(ext, "php") && strings.Trim(ext[len("php"):], "0123456789") == ""
}

// userINI is the file with the PHP settings of a folder; its extension alone is harmless.
const userINI = ".user.ini"

// unescapings is how often a name is percent-decoded. Most servers decode once, careless ones
// twice; the third time is a margin.
const unescapings = 3

// Restricted returns the restricted extension in a name, or "". It finds extensions in any position
// and case. It also finds them behind look-alike letters, invisible characters, percent-encoding,
// and characters at which file systems or servers cut a name. The name may be a submitted name, a
// stored one, or a whole folder.
func Restricted(name string) string {
	// The sanitized form may differ from the folded one: file.ш is stored as file.sh.
	sanitized, folded := sanitizeName(name), fold(name)
	ext := restrictedIn(sanitized)
	if ext == "" && folded != sanitized {
		ext = restrictedIn(folded)
	}
	for i := 0; ext == "" && i < unescapings && strings.Contains(name, "%"); i++ {
		name = unescape(name)
		ext = restrictedIn(fold(name))
	}
	return ext
}

// RestrictedExtension reports whether an extension, with or without its dot, is restricted. Use it
// to check a configured list of extensions.
func RestrictedExtension(ext string) bool {
	return Restricted("x."+ext) != "" || Restricted(ext) != ""
}

// restrictedIn returns the restricted extension in the segments of a folded name, or "".
func restrictedIn(path string) string {
	for segment := range strings.FieldsFuncSeq(path, separator) {
		first, rest, _ := strings.Cut(segment, ".")
		if first == "" && core(rest) == userINI[1:] {
			return userINI[1:]
		}
		for part := range strings.SplitSeq(rest, ".") {
			if part = core(part); isRestricted(part) {
				return part
			}
		}
	}
	return ""
}

// core returns the relevant part of a folded extension. It is cut at characters at which a file
// system, a URL or a C string ends a name, and trimmed to letters and digits.
func core(part string) string {
	if i := strings.IndexAny(part, ":;%?#\x00"); i >= 0 {
		part = part[:i]
	}
	return strings.TrimFunc(part, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// unescape decodes percent-encoding and leaves invalid escapes unchanged.
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
