package storagedrivers

import (
	"path"
	"strings"
)

// Location identifies the backend of a driver and the folder of its objects, as configured.
// Storages with equal Locations have the same objects; credentials, time-outs and other settings
// may differ.
type Location struct {
	// Backend names the backend, in one spelling: "s3://amazonaws.com/bucket". It includes the user
	// if Root is relative to a folder of the user.
	Backend string
	// Root is the folder of the objects in the backend, a clean path with slashes. It begins with a
	// slash if the backend has absolute paths. Empty is the whole bucket, or the folder in which a
	// login starts.
	Root string
}

// Join returns the location of the object or folder name below l.
func (l Location) Join(name string) Location {
	if l.Root = path.Join(l.Root, name); l.Root == "." {
		l.Root = ""
	}
	return l
}

// Overlaps reports whether the locations are equal, or one lies within the other.
func (l Location) Overlaps(other Location) bool {
	return l.Backend == other.Backend && (within(l.Root, other.Root) || within(other.Root, l.Root))
}

func within(inner, outer string) bool {
	if outer == "" {
		return !path.IsAbs(inner) && inner != ".." && !strings.HasPrefix(inner, "../")
	}
	return strings.HasPrefix(inner+"/", strings.TrimSuffix(outer, "/")+"/")
}

// String returns a text that is equal only for equal locations.
func (l Location) String() string { return l.Backend + " " + l.Root }
