package item

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// MaxName is the largest submitted name in bytes. No storage can hold a longer one, and folding its
// letters takes time.
const MaxName = 1 << 10

// SuffixLength is the number of letters of the random suffix under Append Time.
const SuffixLength = 6

// StoredName returns the name, relative to the alias, of a submitted file. If the alias renames,
// its extension may be one that the alias does not accept, or missing: that of the content replaces
// it. The error is a *[Failure].
func (a *Alias) StoredName(submitted, subFolder string, now time.Time, origin Origin) (string, error) {
	if max(len(submitted), len(subFolder)) > MaxName {
		return "", Failf(BadRequest, "the name or its sub folder is longer than %d bytes", MaxName)
	}
	if ext := naming.Restricted(submitted); ext != "" {
		return "", Failf(BadContent, "files with the extension .%s are never accepted", ext)
	}
	name, err := naming.FileName(submitted, a.Sanitize)
	if err != nil {
		return "", &Failure{Reason: BadRequest, Message: err.Error()}
	}
	if a.isJPEG(naming.Extension(name)) {
		name = naming.WithExtension(name, imaging.JPEG.Extension())
	}
	if ext := naming.Extension(name); a.accepts(ext) || !a.MayName(ext) || naming.Restricted(name) != "" {
		if err := a.checkName(name, origin); err != nil {
			return "", err
		}
	}
	folder, err := a.Folder(subFolder, now)
	if err != nil {
		return "", err
	}
	if folder != "" {
		name = folder + "/" + name
	}
	if naming.IsReserved(name) {
		return "", Failf(BadRequest, "the name is reserved: choose another one")
	}
	longest := name
	if !a.Overwrite {
		longest = naming.WithSuffix(naming.WithTime(name, now.Unix()), strings.Repeat("x", SuffixLength))
	}
	if err := a.checkKeys(longest); err != nil {
		return "", err
	}
	return name, nil
}

// MayName reports whether the name of a submitted file may have an extension, whose content is not
// known.
func (a *Alias) MayName(ext string) bool {
	return a.accepts(ext) || a.RenameMismatched || a.isJPEG(ext)
}

// accepts reports whether names of items may have an extension; the empty one is that of a name
// without.
func (a *Alias) accepts(ext string) bool { return a.Extensions[ext] || a.TakesAnything() }

// isJPEG reports whether an extension is one of JPEG that images are not stored under.
func (a *Alias) isJPEG(ext string) bool {
	return a.Kind == Image && slices.Contains(imaging.JPEGNames, ext)
}

// CheckFilename returns an error if no item may be stored under a filename (relative to the alias)
// by [Alias.StoredName]'s rules for extensions and variants. It does not apply Sanitize and the sub
// folder format. The error is a *[Failure].
func (a *Alias) CheckFilename(filename string, origin Origin) error {
	if ext := naming.Restricted(filename); ext != "" {
		return Failf(BadContent, "files with the extension .%s are never accepted", ext)
	}
	if naming.IsReserved(filename) || storagedrivers.ValidKey(filename) != nil {
		return Failf(BadRequest, "the filename is invalid")
	}
	if err := a.checkName(path.Base(filename), origin); err != nil {
		return err
	}
	return a.checkKeys(filename)
}

// checkName returns an error if the extension of a name is refused, or if it is that of a variant.
func (a *Alias) checkName(name string, origin Origin) error {
	if ext := naming.Extension(name); !a.accepts(ext) || naming.Restricted(name) != "" {
		return a.refusedExtension(ext, origin)
	}
	if a.IsVariant(name) {
		return Failf(BadRequest, "%.64q is the name of a variant: leave out the ending before .webp", name)
	}
	return nil
}

// checkKeys returns an error if the keys of an item are too long.
func (a *Alias) checkKeys(filename string) error {
	for _, key := range a.longestKeys(filename) {
		if storagedrivers.ValidKey(key) != nil {
			return Failf(BadRequest, "the name and its sub folder are too long")
		}
	}
	return nil
}

// longestKeys returns the keys of the objects that may be stored for an item.
func (a *Alias) longestKeys(filename string) []string {
	keys := []string{a.Key(filename)}
	if a.Trash > 0 {
		keys = append(keys, a.TrashKey(a.NewKept(storagedrivers.Info{Key: a.Key(filename)}, time.Time{})))
	}
	if a.Kind == Image {
		keys = append(keys, a.VariantKey(filename))
		keys = append(keys, a.RenditionKeys(filename, storagedrivers.Info{})...)
	}
	return keys
}

// refusedExtension returns the failure for a name, with a way out that the caller knows.
func (a *Alias) refusedExtension(ext string, origin Origin) error {
	refused := "the name has no extension"
	if ext != "" {
		refused = "." + ext + " is not accepted"
	}
	if a.Kind == Image {
		way := "files of other kinds go to /api/upload/file"
		switch {
		case slices.Contains(imaging.OptionalExtensions(), ext):
			way = "to accept it, an administrator adds formats " + ext + " to the image alias " + a.Name
		case origin == OriginPanel:
			way = "choose a library for files"
		}
		return Failf(BadContent, "%s; images may be %s; %s", refused, a.extensions(), way)
	}
	return Failf(BadContent, "%s; files may be %s", refused, a.extensions())
}

// maxListed is the most extensions in a message. The default of a file alias has fewer.
const maxListed = 60

// extensions returns the accepted extensions as text for a message.
func (a *Alias) extensions() string {
	names := slices.Sorted(maps.Keys(a.Extensions))
	if more := len(names) - maxListed; more > 0 {
		names = append(names[:maxListed], fmt.Sprintf("%d others", more))
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// RenamedFailure returns the failure for a name that must be kept, of what the alias would store
// under another one.
func (a *Alias) RenamedFailure(stored string) *Failure {
	way := ""
	if a.Sanitize {
		way = ", or set sanitize off"
	}
	return Failf(BadRequest, "the alias would store the item as %q: use this name%s", stored, way)
}

// Folder returns the sub folder of a request; empty is the root of the alias. The error is a
// *[Failure].
func (a *Alias) Folder(submitted string, now time.Time) (string, error) {
	if submitted == "" {
		return a.SubFolder.Folder(now), nil
	}
	folder, err := naming.SubFolder(submitted, a.Sanitize)
	if err != nil {
		return "", &Failure{Reason: BadRequest, Message: err.Error()}
	}
	if naming.IsReserved(folder) {
		return "", Failf(BadRequest, "sub folders called %s, %s or like *%s are reserved", naming.UploadsFolder, naming.FolderMarker, naming.TrashSuffix)
	}
	if ext := naming.Restricted(folder); ext != "" {
		return "", Failf(BadRequest, "a sub folder with the extension .%s is never accepted", ext)
	}
	return folder, nil
}
