package mediaapp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// AliasOptions are what both kinds of aliases have.
type AliasOptions struct {
	// The storage that keeps the items. Default: the one called `default`, or the only
	// one there is.
	Storage string `json:"storage,omitempty" option:"common" example:"default"`

	// The folder of the items in their storage. No two aliases may share a folder, nor may
	// that of one lie within that of another, also where their storages use the same bucket,
	// host or folder. `/` is the root of the storage. Default: `img/<alias>` or
	// `file/<alias>`, like the public address.
	Prefix string `json:"prefix,omitempty" example:"img/photos"`

	// What the public addresses of this alias begin with. Default: the app's `cdn_base`.
	CDNBase string `json:"cdn_base,omitempty" option:"address" example:"https://cdn.example.com"`

	// The largest item that is accepted. Default: `max_image_size` or `max_file_size` of
	// the limits.
	MaxSize int64 `json:"max_size,omitempty" option:"size"`

	// The `Cache-Control` header of the items. Default: one year and immutable, or
	// `public, no-cache` where the storage overwrites.
	CacheControl string `json:"cache_control,omitempty" example:"public, max-age=3600"`

	// Where clients are sent for the items, instead of serving them here. Default: they
	// are served here.
	Redirect *Redirect `json:"redirect,omitempty"`
}

// ImageAlias is a named upload configuration for pictures.
type ImageAlias struct {
	AliasOptions

	// What to do with SVG pictures: `reject` those with scripts, handlers, external
	// references or entities, `keep` all, or `off` to take none. A picture that is kept
	// with a script in it runs only where somebody opens it outside of this service,
	// which serves it without rights. Default: `reject`.
	SVG string `json:"svg,omitempty" option:"common,words=reject|keep|off"`

	// The most pixels of a picture, width times height. Default: `max_pixels` of the
	// limits.
	MaxPixels int64 `json:"max_pixels,omitempty"`

	// Stores a WebP variant beside each jpg, png and gif, under the name of the picture
	// with `.webp` behind it. Default: none.
	WebP *WebP `json:"webp,omitempty" option:"common"`

	// Whether a request for a picture from a client that accepts WebP is answered with
	// the variant. Every such request then costs a look at the picture as well as at the
	// variant, and a cache in front must heed `Vary`. Needs `webp`. Default: `false`.
	Negotiate bool `json:"negotiate,omitempty"`

	// Whether pictures are stored without Exif, GPS, XMP, comments and what lies behind
	// their end; the pixels, the orientation and the colour profile stay. A variant never
	// has any of these. Default: `false`, the bytes as they were sent.
	StripMetadata bool `json:"strip_metadata,omitempty"`
}

// WebP says how variants are made.
type WebP struct {
	// The quality of lossy variants, 1 to 100. Drawings of at most 256 colours are also
	// tried without loss, and the smaller one is stored. Default: `80`.
	Quality int `json:"quality,omitempty" example:"80"`

	// How hard the encoder tries to make small variants. `fast` takes less time for
	// larger ones, `small` takes more time for smaller ones. Default: `normal`.
	Effort string `json:"effort,omitempty" option:"words=fast|normal|small"`
}

// FileAlias is a named upload configuration for files of any sort.
type FileAlias struct {
	AliasOptions

	// The extensions that are accepted, without dots. Those of PHP and shell scripts are
	// refused in any case. Default: common documents, archives, pictures, sound and
	// film.
	Extensions []string `json:"extensions,omitempty" option:"common" example:"pdf"`
}

// Cache-Control of items that never change and of those that may be replaced.
const (
	cacheForever = "public, max-age=31536000, immutable"
	cacheAsk     = "public, no-cache"
)

// fileExtensions are accepted where an alias names none.
var fileExtensions = []string{
	"pdf", "rtf", "txt", "md", "csv", "json", "xml", "epub",
	"doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "odp",
	"zip", "7z", "rar", "tar", "gz", "tgz", "bz2", "xz",
	"jpg", "jpeg", "png", "gif", "webp", "avif", "heic", "tif", "tiff", "bmp",
	"mp3", "m4a", "aac", "ogg", "oga", "opus", "wav", "flac",
	"mp4", "m4v", "mov", "webm", "mkv", "avi", "ogv", "mpg", "mpeg",
}

func (a *App) provisionUploader(caddy.Context) error {
	base, err := baseURL(a.CDNBase)
	if err != nil {
		return err
	}
	if err := limitsOptions.Expand(a.Limits); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	a.uploader = &ingest.Uploader{
		Aliases:  map[ingest.Kind]map[string]*ingest.Alias{ingest.Image: {}, ingest.File: {}},
		Limits:   a.Limits.ingest(),
		Staging:  bounds.Staging(),
		Now:      time.Now, //nolint:forbidigo // the clock's one default
		Observer: recorder{a},
		Log:      a.log,
	}
	if a.uploader.Pictures, err = a.pictures(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(a.ImageAliases)) {
		if err := a.addImageAlias(name, base); err != nil {
			return fmt.Errorf("image alias %q: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.FileAliases)) {
		if err := a.addFileAlias(name, base); err != nil {
			return fmt.Errorf("file alias %q: %w", name, err)
		}
	}
	return nil
}

func (a *App) addImageAlias(name, base string) error {
	if a.ImageAliases[name] == nil {
		return errors.New("it is empty")
	}
	config := *a.ImageAliases[name]
	if err := imageAliasOptions.Expand(&config); err != nil {
		return err
	}
	alias, err := a.newAlias(ingest.Image, name, base, &config.AliasOptions)
	if err != nil {
		return err
	}
	alias.MaxSize = cmp.Or(config.MaxSize, a.Limits.maxImageSize())
	svg, err := imaging.ParseSVGMode(config.SVG)
	if err != nil {
		return fmt.Errorf("svg: %w", err)
	}
	if alias.WebP, err = config.WebP.options(); err != nil {
		return fmt.Errorf("webp: %w", err)
	}
	if config.Negotiate && alias.WebP == nil {
		return errors.New("negotiate needs webp")
	}
	alias.Negotiate, alias.StripMetadata = config.Negotiate, config.StripMetadata
	alias.Imaging = imaging.Options{
		MaxPixels: cmp.Or(config.MaxPixels, a.Limits.maxPixels()), SVG: svg,
		MaxFrames: a.Limits.MaxFrames, MaxFramePixels: a.Limits.MaxFramePixels,
		MaxSide: a.Limits.MaxSide, MaxChunk: a.Limits.MaxChunkSize,
	}
	alias.Extensions = setOf(imaging.Extensions())
	return a.add(alias)
}

// options are nil where no variants are wanted.
func (w *WebP) options() (*variant.Options, error) {
	if w == nil {
		return nil, nil //nolint:nilnil // see above
	}
	if w.Quality > 100 {
		return nil, fmt.Errorf("quality is a number from 1 to 100, not %d", w.Quality)
	}
	effort, err := webp.ParseEffort(w.Effort)
	if err != nil {
		return nil, fmt.Errorf("effort: %w", err)
	}
	return &variant.Options{Quality: w.Quality, Effort: effort}, nil
}

func (a *App) addFileAlias(name, base string) error {
	if a.FileAliases[name] == nil {
		return errors.New("it is empty")
	}
	config := *a.FileAliases[name]
	if err := fileAliasOptions.Expand(&config); err != nil {
		return err
	}
	alias, err := a.newAlias(ingest.File, name, base, &config.AliasOptions)
	if err != nil {
		return err
	}
	alias.MaxSize = cmp.Or(config.MaxSize, a.Limits.maxFileSize())
	if alias.Extensions, err = extensionSet(config.Extensions); err != nil {
		return err
	}
	return a.add(alias)
}

// newAlias resolves what both kinds have; o is expanded.
func (a *App) newAlias(kind ingest.Kind, name, base string, o *AliasOptions) (*ingest.Alias, error) {
	if err := checkName("alias", name); err != nil {
		return nil, err
	}
	storageName, err := a.storageOf(o)
	if err != nil {
		return nil, err
	}
	prefix, err := prefixOf(o, string(kind)+"/"+name)
	if err != nil {
		return nil, err
	}
	if !httpguts.ValidHeaderFieldValue(o.CacheControl) {
		return nil, errors.New("cache_control is no valid header")
	}
	config := a.Storages[storageName]
	alias := &ingest.Alias{
		Kind: kind, Name: name, Storage: a.storages[storageName], Prefix: prefix,
		BaseURL: cmp.Or(o.CDNBase, base), SubFolder: config.subFolder,
		Overwrite: config.overwrite(), Sanitize: config.sanitize(),
		CacheControl: cmp.Or(o.CacheControl, cacheForever),
	}
	if o.CacheControl == "" && alias.Overwrite {
		alias.CacheControl = cacheAsk
	}
	if alias.Redirect, err = o.Redirect.options(alias.Storage); err != nil {
		return nil, fmt.Errorf("redirect: %w", err)
	}
	return alias, nil
}

// storageOf gives the name of the storage of an alias.
func (a *App) storageOf(o *AliasOptions) (string, error) {
	name := o.Storage
	if name == "" {
		name = DefaultStorage
		if len(a.Storages) == 1 {
			for only := range a.Storages {
				name = only
			}
		}
	}
	if a.storages[name] == nil {
		if o.Storage == "" {
			return "", errors.New("storage is missing: there are several, and none is called default")
		}
		return "", fmt.Errorf("storage: there is no storage %q", name)
	}
	return name, nil
}

func prefixOf(o *AliasOptions, standard string) (string, error) {
	if o.Prefix == "/" {
		return "", nil
	}
	prefix := strings.Trim(cmp.Or(o.Prefix, standard), "/")
	if err := storagedrivers.ValidKey(prefix); err != nil {
		return "", fmt.Errorf("prefix: %w", err)
	}
	return prefix, nil
}

// add registers an alias unless its folder overlaps that of another alias, on whatever storage.
func (a *App) add(alias *ingest.Alias) error {
	for _, others := range a.uploader.Aliases {
		for _, other := range others {
			if alias.Location().Overlaps(other.Location()) {
				return fmt.Errorf("prefix %q overlaps that of alias %q in storage %q",
					cmp.Or(alias.Prefix, "/"), other.Name, other.Storage.Name())
			}
		}
	}
	a.uploader.Aliases[alias.Kind][alias.Name] = alias
	return nil
}

// baseURL expands and checks what all addresses begin with.
func baseURL(raw string) (string, error) {
	var expand options.Expander
	base := expand.Text("cdn_base", raw)
	if err := expand.Err(); err != nil || base == "" {
		return "", err
	}
	return options.Address("cdn_base", base, "https://cdn.example.com")
}

// extensionSet checks an administrator's list.
func extensionSet(list []string) (map[string]bool, error) {
	if len(list) == 0 {
		return setOf(fileExtensions), nil
	}
	normal := make([]string, len(list))
	for i, ext := range list {
		normal[i] = strings.ToLower(strings.TrimPrefix(ext, "."))
		if naming.RestrictedExtension(ext) {
			return nil, fmt.Errorf("extensions: %q is never accepted", ext)
		}
		if naming.Extension("x."+normal[i]) != normal[i] || normal[i] == "" {
			return nil, fmt.Errorf("extensions: %q is no extension", ext)
		}
	}
	return setOf(normal), nil
}

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}
