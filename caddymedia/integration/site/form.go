package site

import (
	"fmt"
	"strings"
)

// Part is a part of a form. With a file name it is a file.
type Part struct {
	Name     string
	File     bool
	Filename string
	Content  string
	Header   string // further lines of its header, each with CR LF
}

// Field returns a part that is a form field.
func Field(name, value string) Part { return Part{Name: name, Content: value} }

// File returns a part that is a file.
func File(filename, content string) Part {
	return Part{Name: "files[]", File: true, Filename: filename, Content: content}
}

// FormBoundary is the boundary in the forms of Form.
const FormBoundary = "a-formBoundary-of-the-tests"

// FormType is the header with the media type of Form.
var FormType = Headers("Content-Type", "multipart/form-data; boundary="+FormBoundary)

// Form returns the body of a form, with names as curl writes them.
func Form(parts ...Part) string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data; name=\"%s\"", FormBoundary, quote.Replace(p.Name))
		if p.File {
			fmt.Fprintf(&b, "; filename=\"%s\"\r\nContent-Type: application/octet-stream", quote.Replace(p.Filename))
		}
		fmt.Fprintf(&b, "\r\n%s\r\n%s\r\n", p.Header, p.Content)
	}
	b.WriteString("--" + FormBoundary + "--\r\n")
	return b.String()
}
