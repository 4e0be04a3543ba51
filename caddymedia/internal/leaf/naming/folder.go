package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
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

// SubFolder returns the folder, below the alias, for a submitted sub folder: segments joined by
// "/", without one at either end. "/" alone is the root of the alias, returned as "". It accepts
// one trailing slash.
//
// With sanitize, each segment is sanitized like a file name, but without an extension, so its dots
// become hyphens. A segment over 200 bytes is cut. Without sanitize, the segments are returned as
// submitted.
//
// The error is an *[Error]. An empty path, a path that leaves the alias, and one over 16 levels or
// 512 bytes, before or after sanitizing, are refused. Without sanitize, so are segments that cannot
// be stored safely unchanged. A segment may have a restricted extension: see [Restricted].
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
	// Transliteration may have made the path longer. Cutting it could merge two folders, so it is
	// refused.
	if len(folder) > maxFolder {
		return "", &Error{"the sub folder " + tooLong}
	}
	return folder, nil
}

const tooLong = "is longer than 512 bytes"

// pathProblem returns the reason why a path cannot be a folder, whatever its segments are, or "".
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

// segmentProblem returns the reason why a segment of a folder is refused, or "".
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

// maxUser is the longest ID of a user, in bytes, that is a folder itself.
const maxUser = 60

// UserFolder returns the segment of a folder for the ID of a user, which is any text. It is the ID,
// if that is at most 60 bytes and sanitizing does not change it. Otherwise it is the SHA-256 of the
// ID in 64 hexadecimal digits, which is longer than any ID that stays. So no two IDs have the same
// segment, and sanitizing changes none.
func UserFolder(id string) string {
	if len(id) <= maxUser && sanitizeSegment(id) == id {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// UploadsFolder is the folder of a storage in which unfinished uploads are kept. No item may be in
// a folder of this name.
const UploadsFolder = "@uploads"

// FolderMarker is the last segment of the key of an empty object that keeps a folder without items.
// In a list it comes before nearly all names of the folder. No item may be called so.
const FolderMarker = "!@folder"

// InUploadsFolder reports whether a path leads through a folder that is reserved for unfinished
// uploads. Some backends fold case.
func InUploadsFolder(path string) bool { return hasSegment(path, UploadsFolder) }

// TrashSuffix is the end of the names of folders in which removed items are kept. No item may be in
// one: that may be the trash of an alias of an earlier configuration, whose prefix was longer.
const TrashSuffix = "@trash"

// IsReserved reports whether a path has a segment that no item may have in its filename.
func IsReserved(path string) bool {
	return hasSegment(path, UploadsFolder, FolderMarker) || strings.Contains(strings.ToLower(path)+"/", TrashSuffix+"/")
}

func hasSegment(path string, names ...string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(segment, name) }) {
			return true
		}
	}
	return false
}
