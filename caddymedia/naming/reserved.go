package naming

import "strings"

// UploadsFolder is the folder of a storage in which unfinished uploads are kept. No item may be in a
// folder of this name.
const UploadsFolder = "@uploads"

// InUploadsFolder reports whether a path leads through a folder that is reserved for unfinished
// uploads. Some backends fold case.
func InUploadsFolder(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(segment, UploadsFolder) {
			return true
		}
	}
	return false
}
