package naming

import (
	"mime"
	"net/url"
	"regexp"
	"strings"
)

// extendedName is the extended form of the parameter filename, RFC 8187. A longer name, such as
// "filename*0", is a piece of one, RFC 2231.
const extendedName = "filename*"

// parameter matches a parameter of a valid header, with the spaces around it.
var parameter = regexp.MustCompile(`(?s)(?:[^;"]|"(?:[^"\\]|\\.)*")+`)

// ExtendedName returns the file name of the extended form in a valid Content-Disposition header, if
// that has one. Clients that send both forms replace letters in the plain one. A filter in front of
// the service may read only that one, so both must have the same extension. The error is an
// *[Error].
func ExtendedName(header string) (name string, found bool, err error) {
	if !strings.Contains(strings.ToLower(header), extendedName) {
		return "", false, nil
	}
	plain, hasPlain := "", false
	for _, text := range parameter.FindAllString(header, -1)[1:] { // after "form-data" or "attachment"
		key, value, _ := strings.Cut(text, "=")
		switch key = strings.ToLower(strings.TrimSpace(key)); {
		case key == "filename":
			plain, hasPlain = unquoted(value), true
		case key == extendedName && !found:
			found = true
			if name, err = decodeExtended(unquoted(value)); err != nil {
				return "", true, err
			}
		case strings.HasPrefix(key, extendedName):
			return "", true, &Error{"a part may have one filename*, and not in pieces"}
		}
	}
	if found && hasPlain && Extension(Decode(UnescapeForm(plain))) != Extension(name) {
		return "", true, &Error{"a part has different extensions in filename and filename*: send one name"}
	}
	return name, found, nil
}

// unquoted returns the value of a parameter of a valid header.
func unquoted(value string) string {
	_, params, _ := mime.ParseMediaType("x;value=" + value)
	return params["value"]
}

// decodeExtended decodes the value of an extended parameter: a character set, a language and the
// percent-encoded text.
func decodeExtended(value string) (string, error) {
	charset, rest, _ := strings.Cut(value, "'")
	_, encoded, ok := strings.Cut(rest, "'")
	text, err := url.PathUnescape(encoded)
	if ok && err == nil {
		text, err = FromCharset(charset, text)
	}
	if !ok || err != nil {
		return "", &Error{"the filename* of a part must be UTF-8'' and the percent-encoded name"}
	}
	return text, nil
}

// UnescapeForm undoes the escapes that browsers and curl use in the plain form of a name (WHATWG
// HTML, section 4.10.22.8). They escape nothing else, not even the percent sign.
func UnescapeForm(plain string) string { return formEscapes.Replace(plain) }

var formEscapes = strings.NewReplacer("%22", `"`, "%0D", "\r", "%0A", "\n")
