package imaging

import (
	"bytes"
	"io"
	"strings"
)

// Guess returns the extension that fits the content of r (lower case, no dot), or "" for unknown
// content, and a reader of all of r. It reads only the first bytes. The extension is a proposal:
// check it with [CheckImage] or [CheckFile]. The error is one of r.
func Guess(r io.Reader) (ext string, whole io.Reader, err error) {
	head, err := io.ReadAll(io.LimitReader(r, sniffSize))
	if err != nil {
		return "", nil, err
	}
	if len(head) > 0 { // the sniffer reports an empty file as plain text
		ext = strings.TrimPrefix(sniff(head).Extension(), ".")
	}
	return ext, io.MultiReader(bytes.NewReader(head), r), nil
}
