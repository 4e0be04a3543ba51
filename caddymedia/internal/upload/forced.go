package upload

import (
	"cmp"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
)

// Forced is what a credential forces on a request, whatever the request says. The zero value forces
// nothing.
type Forced struct {
	// Alias is the default alias, and the only one; empty for any.
	Alias string
	// SubFolder is the default sub folder, and the only one; empty for any.
	SubFolder string
	// Below is the default sub folder; any other is below it. Empty for any.
	Below string
	// Filename replaces the names of the files; empty keeps them.
	Filename string
	// MaxSize of an item in bytes, if the alias allows more; 0 for the limit of the alias.
	MaxSize int64
	// MaxFiles is the most items; 0 for no limit.
	MaxFiles int
}

// Check returns a failure if no item can be stored in an alias under the forced names.
func (f Forced) Check(a *aliases.Alias, now time.Time) *aliases.Failure {
	var err error
	switch {
	case f.Filename != "":
		_, err = a.StoredName(f.Filename, f.SubFolder, now, aliases.OriginHTTP)
	case len(f.SubFolder) > aliases.MaxName:
		err = aliases.Failf(aliases.BadRequest, "the sub folder is longer than %d bytes", aliases.MaxName)
	default:
		_, err = a.Folder(f.SubFolder, now)
	}
	if err != nil {
		return asFailure(err)
	}
	return nil
}

// Covers reports whether a request may name a path in the alias: a folder, or the filename of an item.
func (f Forced) Covers(path string) bool {
	return f.Below == "" || path == f.Below || strings.HasPrefix(path, f.Below+"/")
}

// NoFolder is the message for a folder that a user may not use.
const NoFolder = "there is no such folder: users have folders of their own"

// checkPath returns an error if a request may not name a path in the alias.
func (f Forced) checkPath(path string) error {
	if f.Covers(path) {
		return nil
	}
	return aliases.Failf(aliases.Missing, NoFolder)
}

// checkSubFolder returns an error if a request may not name a sub folder.
func (f Forced) checkSubFolder(name string) error {
	if f.SubFolder != "" && name != f.SubFolder {
		return aliases.Failf(aliases.Forbidden, "the ticket is for another sub folder: leave out sub_folder")
	}
	return f.checkPath(name)
}

// filename returns the name that the stored name of a submitted file is derived from.
func (f Forced) filename(submitted string) string { return cmp.Or(f.Filename, submitted) }

// Limit returns the largest item, in bytes, where the alias allows limit.
func (f Forced) Limit(limit int64) int64 {
	if f.MaxSize > 0 {
		return min(limit, f.MaxSize)
	}
	return limit
}
