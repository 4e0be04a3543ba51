package imaging

import (
	"bytes"
	"io"
	"strings"

	"github.com/gabriel-vasile/mimetype"
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
		found := sniff(head)
		if ext = imageFormat(found).Extension(); ext == "" {
			ext = strings.TrimPrefix(found.Extension(), ".")
		}
	}
	return ext, io.MultiReader(bytes.NewReader(head), r), nil
}

// imageFormat returns the format of a detected type, or "" if it is none of an image. The
// sniffer has types of their own for forms of a format, such as animated PNG.
func imageFormat(found *mimetype.MIME) Format {
	if found.Is("image/svg+xml") {
		return SVG
	}
	for format, kind := range rasters {
		if within(found, kind.mediaType) {
			return format
		}
	}
	return ""
}
