package fetch

import (
	"mime"
	"net/url"
	"strings"
)

// maxName, in bytes, is far above the limit for stored names. So a name that is cut here is still
// refused later.
const maxName = 4 << 10

// name returns the name of a download from its Content-Disposition (filename* before filename),
// else the last segment of its address, percent-decoded once.
func name(disposition string, at *url.URL) string {
	// An error leaves no parameters: an invalid header is ignored.
	_, params, _ := mime.ParseMediaType(disposition)
	if n := lastSegment(params["filename"]); n != "" {
		return n
	}
	return lastSegment(at.Path)
}

// lastSegment splits at both slashes, as a name may come from any system.
func lastSegment(path string) string {
	path = path[strings.LastIndexAny(path, `/\`)+1:]
	return path[:min(len(path), maxName)]
}
