package naming

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a folder below its alias.
const (
	maxLevels = 16
	maxFolder = 512
)

// SubFolder returns the folder, below the alias, for the sub folder that a caller submitted: segments joined by "/",
// without one at either end. "/" alone is the root of the alias and gives "". One slash at the end is tolerated.
//
// With sanitize, each segment is sanitized like a file name but has no extension, so its dots become hyphens; a
// segment over 200 bytes is cut. Without, the segments are returned as submitted.
//
// The error is an *[Error]: for "", as not given is not a folder; for what leaves the alias or is not a path of at
// most 16 levels and 512 bytes, before and after sanitizing; without sanitize also for a segment that cannot be
// stored safely as it is. A segment may carry a restricted extension: see [Restricted].
func SubFolder(submitted string, sanitize bool) (string, error) {
	if submitted == "/" {
		return "", nil
	}
	folder := strings.TrimSuffix(submitted, "/")
	if p := pathProblem(folder); p != "" {
		return "", &Error{"the sub folder " + p}
	}
	segments := strings.Split(folder, "/")
	for i, s := range segments {
		if p := segmentProblem(s, sanitize); p != "" {
			return "", &Error{"a segment of the sub folder " + p}
		}
		if sanitize {
			segments[i] = sanitizeSegment(s)
		}
	}
	folder = strings.Join(segments, "/")
	// Transliterating may have made it longer. Cutting it could merge two folders, so it is refused.
	if len(folder) > maxFolder {
		return "", &Error{"the sub folder " + tooLong}
	}
	return folder, nil
}

const tooLong = "is longer than 512 bytes"

// pathProblem says why a path cannot be a folder, whatever its segments hold; "" if it can.
func pathProblem(path string) string {
	switch {
	case path == "":
		return "is empty"
	case len(path) > maxFolder:
		return tooLong
	case !utf8.ValidString(path):
		return "is not valid UTF-8"
	case strings.Contains(path, `\`):
		return "contains a backslash"
	case strings.ContainsFunc(path, unicode.IsControl):
		return "contains a control or invisible character"
	case path[0] == '/':
		return "starts with a slash"
	case strings.Count(path, "/") >= maxLevels:
		return "has more than " + strconv.Itoa(maxLevels) + " levels"
	}
	return ""
}

// segmentProblem says why a segment of a folder is refused; "" if it is not.
func segmentProblem(segment string, sanitize bool) string {
	if !sanitize {
		return problem(segment)
	}
	switch s := strings.TrimFunc(fold(segment), blank); {
	case s == "":
		return "is empty"
	case s == ".", traverses(s):
		return `is "." or contains an absolute path or ".."`
	}
	return ""
}
