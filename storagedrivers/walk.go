package storagedrivers

import "strings"

// Wants tells whether the object under key is on this page or one that follows. It is for
// drivers whose cursor is the last key of the page before.
func (o ListOptions) Wants(key string) bool {
	return key > o.Cursor && strings.HasPrefix(key, o.Prefix)
}

// Enters tells whether the folder, which ends at a slash, may hold such an object. It is for
// drivers that walk folders in the byte order of the keys.
func (o ListOptions) Enters(folder string) bool {
	passed := o.Cursor > folder && !strings.HasPrefix(o.Cursor, folder)
	return !passed && (strings.HasPrefix(folder, o.Prefix) || strings.HasPrefix(o.Prefix, folder))
}
