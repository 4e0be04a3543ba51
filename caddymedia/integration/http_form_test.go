package integration

import (
	"fmt"
	"strings"
)

// formPart is a part of a form. With a file name it is a file.
type formPart struct {
	name     string
	file     bool
	filename string
	content  string
	header   string // further lines of its header, each with CR LF
}

func field(name, value string) formPart { return formPart{name: name, content: value} }

func file(filename, content string) formPart {
	return formPart{name: "files[]", file: true, filename: filename, content: content}
}

const formBoundary = "a-formBoundary-of-the-tests"

var formType = headers("Content-Type", "multipart/form-data; boundary="+formBoundary)

// form returns the body of a form, with names as curl writes them.
func form(parts ...formPart) string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data; name=\"%s\"", formBoundary, quote.Replace(p.name))
		if p.file {
			fmt.Fprintf(&b, "; filename=\"%s\"\r\nContent-Type: application/octet-stream", quote.Replace(p.filename))
		}
		fmt.Fprintf(&b, "\r\n%s\r\n%s\r\n", p.header, p.content)
	}
	b.WriteString("--" + formBoundary + "--\r\n")
	return b.String()
}
