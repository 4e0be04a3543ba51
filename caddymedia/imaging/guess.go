package imaging

import (
	"bytes"
	"io"
	"strings"
)

// Guess gives the extension that fits the content of r (lower case, no dot), "" if nothing is known that does, and what
// reads all of r, of which the first bytes are taken. The extension is a proposal: [CheckImage] or [CheckFile] says
// whether the content may bear it. The error is one of r.
func Guess(r io.Reader) (ext string, whole io.Reader, err error) {
	head, err := io.ReadAll(io.LimitReader(r, sniffSize))
	if err != nil {
		return "", nil, err
	}
	if len(head) > 0 { // to the sniffer nothing is plain text
		ext = strings.TrimPrefix(sniff(head).Extension(), ".")
	}
	return ext, io.MultiReader(bytes.NewReader(head), r), nil
}
