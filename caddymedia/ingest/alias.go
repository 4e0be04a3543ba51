// Package ingest is the one way in: it takes a request's items from their source to
// their stored names.
//
// Every item is staged where it will stay, then all are checked, and only when all of
// them pass is any of them given its name. Uploads over HTTP, the panel, the helpers in
// the process and the commands come through here, so that no check can be missed.
package ingest

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Kind is what an alias is for.
type Kind string

// The two kinds; the value is the word in keys and addresses.
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

// DefaultAlias is the alias of a request that names none.
const DefaultAlias = "content"

// Alias is a named upload configuration.
type Alias struct {
	Kind Kind
	Name string
	// Storage keeps the items, under Prefix ("img/content").
	Storage *storagedrivers.Storage
	Prefix  string
	// BaseURL is what public addresses begin with ("https://cdn.example"), without a
	// slash at the end. Empty: the scheme and host of the request.
	BaseURL string

	// SubFolder is the folder of an item whose request names none.
	SubFolder naming.Format
	// Overwrite replaces an item of the same name; otherwise the new one gets the time
	// in its name.
	Overwrite bool
	// Sanitize makes plain names; otherwise they are stored exactly as submitted.
	Sanitize bool

	// Extensions are the allowed ones, lower case, without a dot.
	Extensions map[string]bool
	// MaxSize of an item in bytes.
	MaxSize int64
	// Imaging are the limits for pictures.
	Imaging imaging.Options
	// WebP says how the variants of pictures are made; nil for none.
	WebP *variant.Options
	// StripMetadata stores pictures without what is not needed to show them.
	StripMetadata bool
	// Negotiate serves the variant under the address of its picture.
	Negotiate bool
	// CacheControl is the Cache-Control header of the items.
	CacheControl string
	// Redirect sends clients elsewhere for the items; nil serves them.
	Redirect *Redirect
}

// Redirect says where items are fetched from instead.
type Redirect struct {
	// Base is the public address of the storage's root, without a slash at the end. Empty:
	// the storage signs an address for each request.
	Base string
	// Lifetime of a signed address. Clients may keep the answer for half of it.
	Lifetime time.Duration
}

// Path is the public path of the alias: "/static/img/content".
func (a *Alias) Path() string { return "/static/" + string(a.Kind) + "/" + a.Name }

// URL is the public address of filename (relative to the alias), each segment
// percent-encoded. base stands in where the alias has no BaseURL.
func (a *Alias) URL(base, filename string) string {
	if a.BaseURL != "" {
		base = a.BaseURL
	}
	return base + a.Path() + "/" + escapePath(filename)
}

// URL is the public address of an object of the storage.
func (r *Redirect) URL(key string) string { return r.Base + "/" + escapePath(key) }

// escapePath percent-encodes each segment.
func escapePath(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i] = url.PathEscape(segment)
	}
	return strings.Join(segments, "/")
}

// Key is where filename (relative to the alias) is in the storage.
func (a *Alias) Key(filename string) string {
	if a.Prefix == "" {
		return filename
	}
	return a.Prefix + "/" + filename
}

// Location returns where the items are, whatever their storage is called.
func (a *Alias) Location() storagedrivers.Location { return a.Storage.Location().Join(a.Prefix) }

// VariantKey is where the variant of a picture is.
func (a *Alias) VariantKey(filename string) string { return a.Key(filename) + variant.Suffix }

// maxName is how long a submitted name may be, in bytes. To fold the letters of a longer one takes time,
// and no storage has room for it.
const maxName = 1 << 10

// filename gives the name relative to the alias for what a caller submitted; the error
// is a *Failure.
func (a *Alias) filename(submitted, subFolder string, now time.Time) (string, error) {
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
		return "", a.refusedExtension(ext)
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
	if a.Kind == Image {
		longest += variant.Suffix
	}
	if storagedrivers.ValidKey(a.Key(longest)) != nil {
		return "", failf(BadRequest, "the name and its sub folder are too long")
	}
	return name, nil
}

func (a *Alias) refusedExtension(ext string) error {
	switch {
	case ext == "":
		return failf(BadContent, "the name has no extension")
	case a.Kind == Image:
		return failf(BadContent, ".%s is not accepted; pictures may be %s", ext, a.extensions())
	default:
		return failf(BadContent, "the extension .%s is not accepted here", ext)
	}
}

// extensions returns those that the alias accepts, for a message.
func (a *Alias) extensions() string {
	names := slices.Sorted(maps.Keys(a.Extensions))
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// folder gives the sub folder for what a caller submitted; empty is the alias' root.
func (a *Alias) folder(submitted string, now time.Time) (string, error) {
	if submitted == "" {
		return a.SubFolder.Folder(now), nil
	}
	folder, err := naming.SubFolder(submitted, a.Sanitize)
	if err != nil {
		return "", &Failure{Reason: BadRequest, Message: err.Error()}
	}
	if ext := naming.Restricted(folder); ext != "" {
		return "", failf(BadRequest, "a sub folder with the extension .%s is never accepted", ext)
	}
	return folder, nil
}
