package ingest

import (
	"mime"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/caddymedia/media/caddymedia/naming"
)

// FormFilename returns the file name in the Content-Disposition header of a part of a form, as it
// was before the client encoded it. It is empty if the part is not a file.
func FormFilename(disposition string) (string, *Failure) {
	p, failure := parseDisposition(disposition)
	if failure != nil {
		return "", failure
	}
	return p.filename, nil
}

// parseDisposition returns the part that a Content-Disposition header describes, without its body.
func parseDisposition(header string) (*part, *Failure) {
	disposition, params, err := mime.ParseMediaType(header)
	if err != nil || disposition != "form-data" {
		return nil, failf(BadRequest, "a part has no valid Content-Disposition of form-data")
	}
	p := &part{name: params["name"]}
	p.filename, p.file = params["filename"]
	if strings.Contains(strings.ToLower(header), extendedName) {
		extended, found, failure := extendedFilename(header)
		if failure != nil {
			return nil, failure
		}
		if found {
			p.filename, p.file = extended, true
			return p, nil
		}
	}
	p.filename = unescape.Replace(p.filename)
	return p, nil
}

// unescape undoes the escapes that browsers and curl use in the plain form of a name (WHATWG HTML,
// section 4.10.22.8). They escape nothing else, not even the percent sign.
var unescape = strings.NewReplacer("%22", `"`, "%0D", "\r", "%0A", "\n")

// extendedName is the extended form of the parameter filename, RFC 8187. A longer name, such as
// "filename*0", is a piece of one, RFC 2231.
const extendedName = "filename*"

// parameter matches a parameter of a valid header, with the spaces around it.
var parameter = regexp.MustCompile(`(?s)(?:[^;"]|"(?:[^"\\]|\\.)*")+`)

// extendedFilename returns the file name of the extended form in a valid header. Clients that send
// both forms replace letters in the plain one. A filter in front of the service may read only that
// one, so both must have the same extension.
func extendedFilename(header string) (name string, found bool, failure *Failure) {
	plain, hasPlain := "", false
	for _, text := range parameter.FindAllString(header, -1)[1:] { // after "form-data"
		key, value, _ := strings.Cut(text, "=")
		switch key = strings.ToLower(strings.TrimSpace(key)); {
		case key == "filename":
			plain, hasPlain = unquoted(value), true
		case key == extendedName && !found:
			found = true
			if name, failure = decodeExtended(unquoted(value)); failure != nil {
				return "", true, failure
			}
		case strings.HasPrefix(key, extendedName):
			return "", true, failf(BadRequest, "a part may have one filename*, and not in pieces")
		}
	}
	if found && hasPlain && naming.Extension(plainFilename(plain)) != naming.Extension(name) {
		return "", true, failf(BadRequest, "a part has different extensions in filename and filename*: send one name")
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
func decodeExtended(value string) (string, *Failure) {
	charset, rest, _ := strings.Cut(value, "'")
	_, encoded, ok := strings.Cut(rest, "'")
	text, err := url.PathUnescape(encoded)
	if ok && err == nil {
		switch strings.ToLower(charset) {
		case "utf-8", "us-ascii":
			if utf8.ValidString(text) {
				return text, nil
			}
		case "iso-8859-1":
			letters := make([]rune, len(text))
			for i := range len(text) {
				letters[i] = rune(text[i])
			}
			return string(letters), nil
		}
	}
	return "", failf(BadRequest, "the filename* of a part must be UTF-8'' and the percent-encoded name")
}

// plainFilename returns the plain form of a name that also has an extended form. Some clients encode
// it by RFC 2047.
func plainFilename(plain string) string {
	if decoded, err := new(mime.WordDecoder).DecodeHeader(plain); err == nil {
		return decoded
	}
	return unescape.Replace(plain)
}
