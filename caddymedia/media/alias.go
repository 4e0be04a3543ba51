package media

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Alias is a named upload configuration.
type Alias struct {
	Kind ingest.Kind
	// Name of the alias, by the rule [Names].
	Name string
	// Storage is the name of the storage. Default: [DefaultStorage], or the only one.
	Storage string
	// Prefix is the folder of the items in their storage; "/" is its root. Default: "img/" or
	// "file/" and the name. No two aliases may overlap. Folders that end in "@renditions" are
	// reserved.
	Prefix string
	// BaseURL is the start of public addresses. Default: that of the service.
	BaseURL string
	// MaxSize is the largest item in bytes. Default: that of the limits.
	MaxSize int64
	// CacheControl is the Cache-Control header of the items. Default: one year and immutable, or
	// "public, no-cache" if the storage overwrites.
	CacheControl string
	// Redirect redirects clients to another address of the items; nil serves them. The default
	// lifetime is 1h, the longest seven days.
	Redirect *ingest.Redirect

	// Extensions of files that are accepted, without dots. Default: common documents, archives,
	// pictures, audio and video. Images have their own.
	Extensions []string

	// Formats are the extensions of images that are accepted besides jpg, jpeg, png, gif and svg:
	// see imaging.OptionalExtensions.
	Formats []string
	// RenameMismatched replaces the extension of an image with that of its content, if that is
	// accepted. Otherwise the image is refused.
	RenameMismatched bool
	// SVG is the treatment of SVG images. Default: imaging.SVGReject.
	SVG imaging.SVGMode
	// MaxPixels of an image, width times height. Default: that of the limits.
	MaxPixels int64
	// WebP stores a variant beside each image; nil stores none.
	WebP *render.Options
	// Renditions are the named sizes of images.
	Renditions []ingest.Rendition
	// Negotiate serves the variant under the address of its image. It needs WebP.
	Negotiate bool
	// StripMetadata is the metadata without which images are stored. Default: imaging.StripOff.
	StripMetadata imaging.StripMode
}

// Values of Cache-Control: for items that never change, and for those that may be replaced.
const (
	cacheForever = "public, max-age=31536000, immutable"
	cacheAsk     = "public, no-cache"
)

// Lifetimes of signed addresses.
const (
	defaultRedirectLifetime = time.Hour
	maxRedirectLifetime     = 7 * 24 * time.Hour
)

// fileExtensions are the extensions of file aliases without their own.
var fileExtensions = []string{
	"pdf", "rtf", "txt", "md", "csv", "json", "xml", "epub",
	"doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "odp",
	"zip", "7z", "rar", "tar", "gz", "tgz", "bz2", "xz",
	"jpg", "jpeg", "png", "gif", "webp", "avif", "heic", "tif", "tiff", "bmp",
	"mp3", "m4a", "aac", "ogg", "oga", "opus", "wav", "flac",
	"mp4", "m4v", "mov", "webm", "mkv", "avi", "ogv", "mpg", "mpeg",
}

// aliases holds aliases by kind and name.
type aliases map[ingest.Kind]map[string]*ingest.Alias

// newAliases returns the aliases of a configuration.
func newAliases(config *Config, limits Limits, storages map[string]*storagedrivers.Storage) (aliases, error) {
	all := aliases{ingest.Image: {}, ingest.File: {}}
	for i := range config.Aliases {
		a := &config.Aliases[i]
		alias, err := a.on(config, limits, storages)
		if err == nil {
			err = all.add(alias)
		}
		if err != nil {
			return nil, fmt.Errorf("%s alias %q: %w", a.Kind.Name(), a.Name, err)
		}
	}
	return all, nil
}

// on returns the alias with its storage and all defaults.
func (a *Alias) on(config *Config, limits Limits, storages map[string]*storagedrivers.Storage) (*ingest.Alias, error) {
	if a.Kind != ingest.Image && a.Kind != ingest.File {
		return nil, fmt.Errorf("unknown kind %q", a.Kind)
	}
	if err := CheckName("alias", a.Name); err != nil {
		return nil, err
	}
	name, err := StorageOf(a.Storage, slices.Collect(maps.Keys(storages)))
	if err != nil {
		return nil, err
	}
	storage := &config.Storages[slices.IndexFunc(config.Storages, func(s Storage) bool { return s.Name == name })]
	alias := &ingest.Alias{
		Kind: a.Kind, Name: a.Name, Storage: storages[name], BaseURL: cmp.Or(a.BaseURL, config.BaseURL),
		SubFolder: storage.SubFolder, Overwrite: storage.Overwrite, Sanitize: !storage.KeepNames,
		WebP: a.WebP, Negotiate: a.Negotiate, RenameMismatched: a.RenameMismatched,
		CacheControl: cmp.Or(a.CacheControl, cacheForever),
	}
	if a.CacheControl == "" && alias.Overwrite {
		alias.CacheControl = cacheAsk
	}
	if !httpguts.ValidHeaderFieldValue(a.CacheControl) {
		return nil, errors.New("cache_control is no valid header")
	}
	if alias.Prefix, err = CleanPrefix(cmp.Or(a.Prefix, string(a.Kind)+"/"+a.Name)); err != nil {
		return nil, err
	}
	if alias.Redirect, err = a.redirect(alias.Storage); err != nil {
		return nil, fmt.Errorf("redirect: %w", err)
	}
	if a.Kind == ingest.File {
		alias.MaxSize = cmp.Or(a.MaxSize, limits.MaxFileSize)
		alias.Extensions, err = extensionSet(a.Extensions)
		return alias, err
	}
	if err := CheckNegotiate(a.Negotiate, a.WebP != nil); err != nil {
		return nil, err
	}
	if err := a.addRenditions(alias); err != nil {
		return nil, err
	}
	alias.MaxSize = cmp.Or(a.MaxSize, limits.MaxImageSize)
	if alias.Extensions, err = pictureSet(a.Formats); err != nil {
		return nil, err
	}
	alias.Imaging = limits.Pictures
	alias.Imaging.MaxPixels, alias.Imaging.SVG = cmp.Or(a.MaxPixels, limits.Pictures.MaxPixels), a.SVG
	alias.Imaging.Strip = a.StripMetadata
	return alias, nil
}

// CleanPrefix returns the prefix of an alias without slashes around it, or an error if it is no
// folder, or within one that is reserved for renditions. The prefix "/" is "".
func CleanPrefix(prefix string) (string, error) {
	if prefix == "/" {
		return "", nil
	}
	clean := strings.Trim(prefix, "/")
	if err := storagedrivers.ValidKey(clean); err != nil {
		return "", fmt.Errorf("prefix: %w", err)
	}
	if naming.InUploadsFolder(clean) {
		return "", fmt.Errorf("prefix: the folder %q is reserved for unfinished uploads", naming.UploadsFolder)
	}
	for folder := range strings.SplitSeq(clean, "/") {
		if strings.HasSuffix(strings.ToLower(folder), ingest.RenditionSuffix) { // some backends fold case
			return "", fmt.Errorf("prefix: the folder %q is reserved for renditions", folder)
		}
	}
	return clean, nil
}

// CheckNegotiate returns an error if an alias without variants negotiates.
func CheckNegotiate(negotiate, webp bool) error {
	if negotiate && !webp {
		return errors.New("negotiate needs webp")
	}
	return nil
}

// redirect returns the options of redirects; nil if items are not redirected.
func (a *Alias) redirect(storage *storagedrivers.Storage) (*ingest.Redirect, error) {
	if a.Redirect == nil {
		return nil, nil //nolint:nilnil // see above
	}
	redirect := *a.Redirect
	redirect.Lifetime = cmp.Or(redirect.Lifetime, defaultRedirectLifetime)
	if redirect.Lifetime < time.Second || redirect.Lifetime > maxRedirectLifetime {
		return nil, fmt.Errorf("the lifetime is between 1s and 7d, not %v", redirect.Lifetime)
	}
	if redirect.Base == "" && !storage.CanPresign() {
		return nil, fmt.Errorf("the driver of storage %q cannot sign addresses", storage.Name())
	}
	return &redirect, nil
}

// add adds an alias. It returns an error if the alias exists already, or if its folder overlaps
// that of another alias, on any storage.
func (all aliases) add(alias *ingest.Alias) error {
	if all[alias.Kind][alias.Name] != nil {
		return errors.New("it is there twice")
	}
	for _, others := range all {
		for _, other := range others {
			if overlap(alias, other) {
				return fmt.Errorf("prefix %q overlaps that of alias %q in storage %q",
					cmp.Or(alias.Prefix, "/"), other.Name, other.Storage.Name())
			}
		}
	}
	all[alias.Kind][alias.Name] = alias
	return nil
}

// overlap reports whether items or renditions of two aliases may have the same keys. It does not
// depend on present renditions, because those of an earlier configuration are swept.
func overlap(a, b *ingest.Alias) bool {
	return a.Location().Overlaps(b.Location()) || renditionsOverlap(a, b) || renditionsOverlap(b, a)
}

// renditionsOverlap reports whether renditions of an alias may have the keys of items of another.
func renditionsOverlap(a, b *ingest.Alias) bool {
	return a.HasRenditionFolder() && a.RenditionLocation().Overlaps(b.Location())
}

// extensionSet returns the configured extensions as a set, or the default ones. The error names an
// invalid one.
func extensionSet(list []string) (map[string]bool, error) {
	if len(list) == 0 {
		return setOf(fileExtensions), nil
	}
	normal := make([]string, len(list))
	for i, ext := range list {
		if err := CheckExtension(ext); err != nil {
			return nil, fmt.Errorf("extensions: %w", err)
		}
		normal[i] = normalExtension(ext)
	}
	return setOf(normal), nil
}

// pictureSet returns the extensions of images. The error names a format that is none of the optional
// ones.
func pictureSet(formats []string) (map[string]bool, error) {
	all := imaging.Extensions()
	for _, ext := range formats {
		if err := CheckFormat(ext); err != nil {
			return nil, fmt.Errorf("formats: %w", err)
		}
		all = append(all, normalExtension(ext))
	}
	return setOf(all), nil
}

// CheckFormat returns an error unless an image alias may accept the format of an extension in
// addition.
func CheckFormat(ext string) error {
	if known := imaging.OptionalExtensions(); !slices.Contains(known, normalExtension(ext)) {
		return fmt.Errorf("%q is none of %s", ext, strings.Join(known, ", "))
	}
	return nil
}

func normalExtension(ext string) string { return strings.ToLower(strings.TrimPrefix(ext, ".")) }

// CheckExtension returns an error unless a file alias may accept an extension.
func CheckExtension(ext string) error {
	normal := normalExtension(ext)
	switch {
	case naming.RestrictedExtension(ext):
		return fmt.Errorf("%q is never accepted", ext)
	case naming.Extension("x."+normal) != normal || normal == "":
		return fmt.Errorf("%q is no extension", ext)
	}
	return nil
}

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}
