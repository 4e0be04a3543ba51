package ingest

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Kind is the kind of items of an alias.
type Kind string

// The kinds. The values are part of keys and addresses.
const (
	Image Kind = "img"
	File  Kind = "file"
)

// Name returns the kind as in the endpoints and in messages: "image" or "file".
func (k Kind) Name() string {
	if k == Image {
		return "image"
	}
	return "file"
}

// KindOf returns the kind of a [Kind.Name].
func KindOf(name string) (kind Kind, known bool) {
	for _, kind := range []Kind{Image, File} {
		if kind.Name() == name {
			return kind, true
		}
	}
	return "", false
}

// DefaultAlias is the alias of a request without one.
const DefaultAlias = "content"

// Alias is a named upload configuration.
type Alias struct {
	Kind Kind
	Name string
	// Storage holds the items, under Prefix ("img/content").
	Storage *storagedrivers.Storage
	Prefix  string
	// BaseURL is the start of public addresses ("https://cdn.example"), without a slash at the end.
	// Empty: the scheme and host of the request.
	BaseURL string

	// SubFolder is the folder of items whose request names none.
	SubFolder naming.Format
	// Overwrite replaces an item of the same name. Otherwise, under Append Time, the new one gets
	// the time in its name.
	Overwrite bool
	// Sanitize makes plain names. Otherwise they are stored exactly as submitted.
	Sanitize bool

	// Extensions that are allowed, in lower case, without a dot.
	Extensions map[string]bool
	// RenameMismatched replaces the extension of a picture with that of its content, if that is
	// another one of Extensions. Otherwise the picture is refused.
	RenameMismatched bool
	// MaxSize of an item in bytes.
	MaxSize int64
	// Imaging are the limits of pictures, and the metadata without which they are stored.
	Imaging imaging.Options
	// WebP are the options of variants; nil for no variants.
	WebP *render.Options
	// Renditions are the named sizes of pictures, sorted by name.
	Renditions []Rendition
	// Negotiate serves the variant under the address of its picture.
	Negotiate bool
	// CacheControl is the Cache-Control header of the items.
	CacheControl string
	// RenditionCacheControl is the Cache-Control header of the renditions.
	RenditionCacheControl string
	// Redirect redirects clients to another address of the items; nil serves them.
	Redirect *Redirect
}

// Redirect is where clients are redirected to.
type Redirect struct {
	// Base is the public address of the storage's root, without a slash at the end. Empty:
	// the storage signs an address for each request.
	Base string
	// Lifetime of a signed address. Clients may keep the answer for half of it.
	Lifetime time.Duration
}

// Path returns the public path of the alias: "/static/img/content".
func (a *Alias) Path() string { return "/static/" + string(a.Kind) + "/" + a.Name }

// URL returns the public address of filename (relative to the alias), each segment percent-encoded.
// base replaces the BaseURL of an alias without one.
func (a *Alias) URL(base, filename string) string {
	return a.base(base) + a.Path() + "/" + escapePath(filename)
}

// base returns the start of public addresses. base replaces the BaseURL of an alias without one.
func (a *Alias) base(base string) string {
	if a.BaseURL != "" {
		return a.BaseURL
	}
	return base
}

// URL returns the public address of an object of the storage.
func (r *Redirect) URL(key string) string { return r.Base + "/" + escapePath(key) }

// escapePath percent-encodes each segment of a path.
func escapePath(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i] = url.PathEscape(segment)
	}
	return strings.Join(segments, "/")
}

// Key returns the key of filename (relative to the alias) in the storage.
func (a *Alias) Key(filename string) string {
	if a.Prefix == "" {
		return filename
	}
	return a.Prefix + "/" + filename
}

// Location returns the location of the items. It does not depend on the name of the storage.
func (a *Alias) Location() storagedrivers.Location { return a.Storage.Location().Join(a.Prefix) }

// Filename is the inverse of [Alias.Key].
func (a *Alias) Filename(key string) string { return key[len(a.Key("")):] }

// RenditionSuffix is the end of the folder names that are reserved for renditions. The items of no
// alias may be kept below such a folder.
const RenditionSuffix = "@renditions"

// HasRenditionFolder reports whether [Alias.RenditionRoot] is reserved for renditions, also if the
// alias has none at present. Otherwise it may be a folder of items.
func (a *Alias) HasRenditionFolder() bool { return a.Kind == Image && a.Prefix != "" }

// VariantKey returns the key of the variant of a picture.
func (a *Alias) VariantKey(filename string) string { return a.Key(filename) + render.Suffix }

// lockName returns the name of the lock of an item.
func (a *Alias) lockName(filename string) string { return a.Location().Join(filename).String() }

// maxName is the largest submitted name in bytes. No storage can hold a longer one, and folding its
// letters takes time.
const maxName = 1 << 10

// filename returns the name, relative to the alias, of a submitted file. The error is a *Failure.
func (a *Alias) filename(submitted, subFolder string, now time.Time, origin Origin) (string, error) {
	if max(len(submitted), len(subFolder)) > maxName {
		return "", failf(BadRequest, "the name or its sub folder is longer than %d bytes", maxName)
	}
	if ext := naming.Restricted(submitted); ext != "" {
		return "", failf(BadContent, "files with the extension .%s are never accepted", ext)
	}
	name, err := naming.FileName(submitted, a.Sanitize)
	if err != nil {
		return "", &Failure{Reason: BadRequest, Message: err.Error()}
	}
	if ext := naming.Extension(name); !a.Extensions[ext] || naming.Restricted(name) != "" {
		return "", a.refusedExtension(ext, origin)
	}
	if a.IsVariant(name) {
		return "", failf(BadRequest, "%.64q is the name of a variant: leave out the ending before .webp", name)
	}
	folder, err := a.folder(subFolder, now)
	if err != nil {
		return "", err
	}
	if folder != "" {
		name = folder + "/" + name
	}
	longest := name
	if !a.Overwrite {
		longest = naming.WithSuffix(naming.WithTime(name, now.Unix()), strings.Repeat("x", suffixLength))
	}
	for _, key := range a.longestKeys(longest) {
		if storagedrivers.ValidKey(key) != nil {
			return "", failf(BadRequest, "the name and its sub folder are too long")
		}
	}
	return name, nil
}

// longestKeys returns the keys of the objects that may be stored for an item.
func (a *Alias) longestKeys(filename string) []string {
	if a.Kind != Image {
		return []string{a.Key(filename)}
	}
	keys := []string{a.VariantKey(filename)}
	for _, f := range a.renditionFiles(filename, false) {
		keys = append(keys, a.renditionKey(filename, f, storagedrivers.Info{}))
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
		if origin == OriginPanel {
			way = "choose an alias for files"
		}
		return failf(BadContent, "%s; pictures may be %s; %s", refused, a.extensions(), way)
	}
	return failf(BadContent, "%s; files may be %s", refused, a.extensions())
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

// folder returns the sub folder of a request; empty is the root of the alias.
func (a *Alias) folder(submitted string, now time.Time) (string, error) {
	if submitted == "" {
		return a.SubFolder.Folder(now), nil
	}
	folder, err := naming.SubFolder(submitted, a.Sanitize)
	if err != nil {
		return "", &Failure{Reason: BadRequest, Message: err.Error()}
	}
	if naming.InUploadsFolder(folder) {
		return "", failf(BadRequest, "a sub folder called %s is reserved", naming.UploadsFolder)
	}
	if ext := naming.Restricted(folder); ext != "" {
		return "", failf(BadRequest, "a sub folder with the extension .%s is never accepted", ext)
	}
	return folder, nil
}
