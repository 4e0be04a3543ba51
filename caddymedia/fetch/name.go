package fetch

import (
	"mime"
	"net/url"
	"strings"
)

// maxName in bytes is far beyond what is stored, so that a name is refused for its length and not cut to fit.
const maxName = 4 << 10

// name gives what a download is called: by its Content-Disposition (filename* before filename), or by the last segment
// of its address, percent-decoded once.
func name(disposition string, at *url.URL) string {
	// An error leaves no parameters: what cannot be read is not guessed at.
	_, params, _ := mime.ParseMediaType(disposition)
	if n := lastSegment(params["filename"]); n != "" {
		return n
	}
	return lastSegment(at.Path)
}

// lastSegment takes both slashes for separators, as a name may come from any system.
func lastSegment(path string) string {
	path = path[strings.LastIndexAny(path, `/\`)+1:]
	return path[:min(len(path), maxName)]
}
