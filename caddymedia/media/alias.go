package media

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// AliasOptions are what both kinds of aliases have.
type AliasOptions struct {
	// The storage of the items. A change moves none of them: copy them before, by `caddy media copy`.
	// Default: the storage called `default`, or the only storage.
	Storage string `json:"storage,omitempty" option:"common" example:"default"`

	// The folder of the items in the storage. The folders of two aliases must not overlap, also if
	// their storages use the same bucket, host or folder. `/` is the root of the storage. Names that
	// end in `@renditions` or `@trash` are reserved. Default: `img/<alias>` or `file/<alias>`, as in
	// the public address.
	Prefix string `json:"prefix,omitempty" example:"img/photos"`

	// How long items that are deleted or replaced can be had back, from `1m` to `3650d`, or `off`.
	// They are kept in the same storage, in the folder `<prefix>@trash`, so that the `prefix` cannot
	// be `/`, and take its space until then. A shorter time counts at once. With `locked` behind the
	// time, as in `14d locked`, nobody removes them before it, whatever rights, commands or later
	// configurations there are: only who has access to the storage itself. Then no item can be purged
	// either, and one that the trash cannot keep cannot be deleted. Default: the `trash` of the app.
	Trash string `json:"trash,omitempty" option:"common,joined" example:"14d"`

	// How long after they were stored items are to be had, from `1m` to `3650d`, or `off`. Then they
	// answer 410, and are removed within an hour, into the trash where there is one. A replaced,
	// moved, copied or restored item begins anew. With `redirect public` the storage serves the items,
	// and does not know their end. Default: `off`.
	Expires string `json:"expires,omitempty" example:"90d"`

	// The start of the public addresses of this alias. Without it, a panel on a host of its own shows
	// addresses of that host, which are no items. Default: the `cdn_base` of the app.
	CDNBase string `json:"cdn_base,omitempty" option:"address" example:"https://cdn.example.com"`

	// The largest accepted item, in bytes or such as `10MiB`. Default: `max_image_size` or
	// `max_file_size` of the limits.
	MaxSize int64 `json:"max_size,omitempty" option:"size"`

	// The `Cache-Control` header of the items. In a private alias it is that of its public
	// renditions only. Default: one year and immutable, or `public, no-cache` if the storage
	// overwrites.
	CacheControl string `json:"cache_control,omitempty" example:"public, max-age=3600"`

	// Redirects clients to the storage instead of serving the items. Default: the items are served.
	Redirect *Redirect `json:"redirect,omitempty"`

	// Serves the items only with a signed address that expires. Default: the items
	// are public.
	Private *Private `json:"private,omitempty" option:"block"`

	// Other programs that are asked about each file before it is stored, in the order of their names:
	// a virus scanner, or any program that speaks HTTP. Default: none.
	Checks map[string]*Check `json:"checks,omitempty" option:"line=check"`
}

// ImageAlias is a named upload configuration for images.
type ImageAlias struct {
	AliasOptions

	// Which SVG images are accepted. `reject` refuses images with scripts, event handlers, external
	// references or entities. `keep` accepts all of them, `off` none. Served images run in a sandbox,
	// so that a script in a kept image runs only where a copy of the image is opened without this
	// service. Default: `reject`.
	SVG string `json:"svg,omitempty" option:"common,words=reject|keep|off"`

	// Formats that are accepted besides jpg, jpeg, png, gif and svg: `webp`, `avif` and `heic`.
	// Their images have no WebP variant. AVIF and HEIC are checked but not decoded, so that they
	// have no renditions either. Only Safari shows HEIC. Default: none.
	Formats []string `json:"formats,omitempty" option:"common" example:"webp"`

	// Whether an image of an accepted format under another extension, or none, gets the right one:
	// a PNG sent as `photo.jpg` or `photo` is stored as `photo.png`. Default: `false`, the image is
	// refused.
	RenameMismatched bool `json:"rename_mismatched,omitempty"`

	// The most pixels of an image, width times height. Default: `max_pixels` of the limits.
	MaxPixels int64 `json:"max_pixels,omitempty"`

	// Stores a WebP variant beside each jpg, png and gif, under the name of the image plus `.webp`.
	// Default: no variants.
	WebP *WebP `json:"webp,omitempty" option:"common"`

	// Whether a client that accepts WebP gets the variant under the address of the image, unless the
	// image is an HDR photo. Each such request also looks at the variant, and caches in front must
	// respect `Vary`. Requires `webp`. Default: `false`.
	Negotiate bool `json:"negotiate,omitempty"`

	// The metadata that is removed before an image is stored. `on` removes Exif, GPS, XMP, comments
	// and data behind the end. `location` removes only GPS, place names, maker notes, serial
	// numbers, thumbnails and data behind the end. The pixels, the orientation, the colour profile
	// and a gain map (HDR) stay. Variants never have metadata. Default: `off`, the bytes are stored
	// as sent.
	StripMetadata string `json:"strip_metadata,omitempty" option:"words=on|off|location"`

	// Named sizes of the images, at most 16, at `<address of the alias>@<name>/`. They are stored
	// beside the folder of the alias, so that its `prefix` cannot be `/`. Changed settings make new
	// files; `caddy media sweep` removes the old files. Default: none.
	Renditions map[string]*Rendition `json:"renditions,omitempty" option:"common,line=rendition"`

	// Adds `width`, `height`, `srcset` and the `sizes` of the renditions to the answers about images,
	// so that a page need not ask for them. Lists have them with `facts=1`. Default: the answers have
	// addresses only.
	Facts *Facts `json:"facts,omitempty" option:"block"`
}

// Facts are what the answers about images have besides addresses.
type Facts struct {
	// What is added to the sizes. `thumbhash` is a `thumbhash`, some 25 bytes of which a page draws a
	// blurred image while the image loads. Each upload is decoded whole for it, and so is an older
	// image that is asked for alone. Lists have none. Default: nothing.
	With string `json:"with,omitempty" option:"words=thumbhash"`
}

// WebP has the options of variants.
type WebP struct {
	// The quality of lossy variants, 1 to 100. Images of at most 256 colours are also encoded
	// without loss, and the smaller file is stored. Default: `80`.
	Quality int `json:"quality,omitempty" example:"80"`

	// The effort of the encoder. `fast` takes less time and makes larger files, `small` takes more
	// time and makes smaller files. Default: `normal`.
	Effort string `json:"effort,omitempty" option:"words=fast|normal|small"`
}

// FileAlias is a named upload configuration for files of any sort.
type FileAlias struct {
	AliasOptions

	// The accepted extensions, without dots, or `*` for all names, also those without an extension.
	// Extensions of PHP and shell scripts are always refused.
	// Default: common documents, archives, images, audio and video.
	Extensions []string `json:"extensions,omitempty" option:"common" example:"pdf"`

	// Media types for extensions, as `<extension>=<type>`, in place of the usual ones.
	// Browsers still show only safe types, and save all others. Default: those of IANA.
	Types []string `json:"types,omitempty" option:"repeat" example:"step=model/step"`
}

// Redirect redirects GET requests for items to the storage, so that their bytes do not pass through
// this server. SVG, HTML and XML are always served here, because only here they are in a sandbox.
type Redirect struct {
	// The kind of address. `presigned` is a signed address that expires (S3, Azure Blob, Google
	// Cloud Storage). `public` is the address of a storage that everybody may read. Required.
	To string `json:"to,omitempty" option:"required,words=presigned|public"`

	// The public address of the root of the storage, for `public`. An item with the key
	// `img/content/a.png` is at `<base>/img/content/a.png`.
	Base string `json:"base,omitempty" option:"address" example:"https://media.example.com"`

	// The lifetime of a signed address, at most 7 days. Clients cache the redirect for half of it.
	// Default: `1h`.
	Lifetime options.Duration `json:"lifetime,omitempty" example:"1h"`
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

// Words of Redirect.
const (
	redirectPresigned = "presigned"
	redirectPublic    = "public"
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

// Check implements options.Checker.
func (o *AliasOptions) Check() error {
	if !httpguts.ValidHeaderFieldValue(o.CacheControl) {
		return errors.New("cache_control is no valid header")
	}
	if o.Private != nil && o.Redirect != nil && o.Redirect.To == redirectPublic {
		return errors.New("redirect public does not go with private: the storage serves the items without a signature")
	}
	kept, _, err := parseTrash(o.Trash)
	if _, expires := parseKept("expires", o.Expires); err == nil {
		err = expires
	}
	if err != nil || o.Prefix == "" {
		return err
	}
	prefix, err := cleanPrefix(o.Prefix)
	if err == nil && prefix == "" && kept > 0 {
		err = errNoRoom
	}
	return err
}

// errNoRoom means that there is no folder for the trash of an alias.
var errNoRoom = errors.New("trash needs a prefix other than /, because it is outside of it: set a prefix, or trash off")

// cleanPrefix returns the prefix of an alias without slashes around it, or an error if it is no
// folder, or within one that is reserved. The prefix "/" is "".
func cleanPrefix(prefix string) (string, error) {
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
		if strings.HasSuffix(strings.ToLower(folder), item.RenditionSuffix) { // some backends fold case
			return "", fmt.Errorf("prefix: the folder %q is reserved for renditions", folder)
		}
		if strings.HasSuffix(strings.ToLower(folder), naming.TrashSuffix) {
			return "", fmt.Errorf("prefix: the folder %q is reserved for trash", folder)
		}
	}
	return clean, nil
}

// Check implements options.Checker.
func (a *ImageAlias) Check() error {
	if err := a.AliasOptions.Check(); err != nil {
		return err
	}
	known := imaging.OptionalExtensions()
	for _, ext := range a.Formats {
		if !slices.Contains(known, normalExtension(ext)) {
			return fmt.Errorf("formats: %q is none of %s", ext, strings.Join(known, ", "))
		}
	}
	if a.Negotiate && a.WebP == nil {
		return errors.New("negotiate needs webp")
	}
	return a.checkRenditions()
}

// Check implements options.Checker.
func (w *WebP) Check() error { return checkQuality(w.Quality) }

func checkQuality(quality int) error {
	if quality > 100 {
		return fmt.Errorf("quality is a number from 1 to 100, not %d", quality)
	}
	return nil
}

// Check implements options.Checker.
func (a *FileAlias) Check() error {
	for _, ext := range a.Extensions {
		normal := normalExtension(ext)
		switch {
		case ext == item.AnyExtension && len(a.Extensions) > 1:
			return errors.New("extensions: * stands alone, because it is any extension")
		case ext == item.AnyExtension:
		case naming.RestrictedExtension(ext):
			return fmt.Errorf("extensions: %q is never accepted", ext)
		case naming.Extension("x."+normal) != normal || normal == "":
			return fmt.Errorf("extensions: %q is no extension", ext)
		}
	}
	if _, err := a.types(); err != nil {
		return err
	}
	if err := a.Private.checkPublic(nil); err != nil {
		return err
	}
	return a.AliasOptions.Check()
}

// types returns the media types by their extensions.
func (a *FileAlias) types() (map[string]string, error) {
	types := make(map[string]string, len(a.Types))
	for _, text := range a.Types {
		ext, value, _ := strings.Cut(text, "=")
		ext = normalExtension(ext)
		name, params, err := mime.ParseMediaType(value)
		contentType := mime.FormatMediaType(name, params)
		switch {
		case err != nil || contentType == "" || !strings.Contains(name, "/") || naming.Extension("x."+ext) != ext || ext == "":
			return nil, fmt.Errorf("types: %q is not <extension>=<type>, such as step=model/step", text)
		case types[ext] != "":
			return nil, fmt.Errorf("types: the extension %q has two types", ext)
		}
		types[ext] = contentType
	}
	return types, nil
}

// Check implements options.Checker.
func (r *Redirect) Check() error {
	lifetime := time.Duration(r.Lifetime)
	switch {
	case r.To == redirectPublic && r.Base == "":
		return errors.New("public needs the address of the storage")
	case r.To == redirectPresigned && r.Base != "":
		return errors.New("presigned takes no address: the storage makes it")
	case lifetime != 0 && lifetime < time.Second || lifetime > maxRedirectLifetime:
		return fmt.Errorf("the lifetime is between 1s and 7d, not %v", lifetime)
	}
	return nil
}

// allAliases holds aliases by kind and name.
type allAliases map[item.Kind]map[string]*item.Alias

// newAliases returns the aliases of a configuration, which is complete.
func newAliases(config *Config, storages map[string]*storagedrivers.Storage) (allAliases, error) {
	all := allAliases{item.Image: {}, item.File: {}}
	for _, name := range slices.Sorted(maps.Keys(config.ImageAliases)) {
		if err := all.add(config.image(name, storages)); err != nil {
			return nil, fmt.Errorf("image alias %q: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(config.FileAliases)) {
		if err := all.add(config.file(name, storages)); err != nil {
			return nil, fmt.Errorf("file alias %q: %w", name, err)
		}
	}
	return all, nil
}

func (c *Config) image(name string, storages map[string]*storagedrivers.Storage) (*item.Alias, error) {
	a := c.ImageAliases[name]
	alias, err := a.alias(item.Image, name, c, storages)
	if err != nil {
		return nil, err
	}
	alias.MaxSize = cmp.Or(a.MaxSize, c.Limits.MaxImageSize)
	alias.Extensions = setOf(slices.Concat(imaging.Extensions(), a.Formats))
	alias.RenameMismatched, alias.Negotiate = a.RenameMismatched, a.Negotiate
	if a.WebP != nil {
		alias.WebP = &render.Options{Quality: a.WebP.Quality, Effort: webp.Effort(a.WebP.Effort)}
	}
	alias.Renditions, alias.RenditionCacheControl = a.renditions(), item.BoundAge(alias.CacheControl, maxRenditionAge)
	a.setPrivate(alias)
	switch {
	case a.Facts == nil:
	case a.Facts.With == "":
		alias.Facts = item.FactsOfHeader
	default:
		alias.Facts = item.FactsWithHash
	}
	alias.Imaging = c.Limits.imaging()
	alias.Imaging.MaxPixels = cmp.Or(a.MaxPixels, c.Limits.MaxPixels)
	alias.Imaging.SVG, alias.Imaging.Strip = imaging.SVGMode(a.SVG), imaging.StripMode(a.StripMetadata)
	return alias, nil
}

func (c *Config) file(name string, storages map[string]*storagedrivers.Storage) (*item.Alias, error) {
	a := c.FileAliases[name]
	alias, err := a.alias(item.File, name, c, storages)
	if err != nil {
		return nil, err
	}
	a.setPrivate(alias)
	alias.MaxSize = cmp.Or(a.MaxSize, c.Limits.MaxFileSize)
	if alias.Types, err = a.types(); err != nil {
		return nil, err
	}
	alias.Extensions = setOf(a.Extensions)
	if len(a.Extensions) == 0 {
		alias.Extensions = setOf(fileExtensions)
	}
	return alias, nil
}

// alias returns an alias with its storage and all that both kinds have.
func (o *AliasOptions) alias(
	kind item.Kind, name string, c *Config, storages map[string]*storagedrivers.Storage,
) (*item.Alias, error) {
	storageName, err := StorageOf(o.Storage, c.storageNames())
	if err != nil {
		return nil, err
	}
	storage := &c.Storages[slices.IndexFunc(c.Storages, func(s Storage) bool { return s.Name == storageName })]
	alias := &item.Alias{
		Kind: kind, Name: name, Storage: storages[storageName], BaseURL: cmp.Or(o.CDNBase, c.CDNBase),
		Overwrite: storage.OverwriteStrategy == overwriteItems, Sanitize: storage.Sanitize == nil || *storage.Sanitize,
		CacheControl: cmp.Or(o.CacheControl, cacheForever),
	}
	if o.CacheControl == "" && alias.Overwrite {
		alias.CacheControl = cacheAsk
	}
	if alias.SubFolder, err = naming.ParseFormat(storage.SubFolderFormat); err != nil {
		return nil, err
	}
	if alias.Prefix, err = cleanPrefix(cmp.Or(o.Prefix, string(kind)+"/"+name)); err != nil {
		return nil, err
	}
	if alias.Trash, alias.TrashLocked, err = parseTrash(cmp.Or(o.Trash, c.Trash)); err != nil {
		return nil, err
	}
	if alias.Trash > 0 && !alias.HasTrashFolder() {
		return nil, errNoRoom
	}
	if alias.Expires, err = parseKept("expires", o.Expires); err != nil {
		return nil, err
	}
	if alias.Checks, err = o.checks(); err != nil {
		return nil, err
	}
	if r := o.Redirect; r != nil {
		if r.To == redirectPresigned && !alias.Storage.CanPresign() {
			return nil, fmt.Errorf("redirect: the driver of storage %q cannot sign addresses", storageName)
		}
		alias.Redirect = &item.Redirect{
			Base: r.Base, Lifetime: cmp.Or(time.Duration(r.Lifetime), defaultRedirectLifetime),
		}
	}
	return alias, nil
}

// add adds an alias, unless there is an error. It returns an error if the folder of the alias
// overlaps that of another, or unfinished uploads, on any storage.
func (all allAliases) add(alias *item.Alias, err error) error {
	if err != nil {
		return err
	}
	if naming.InUploadsFolder(alias.Storage.Location().Root) {
		return fmt.Errorf("the folder of storage %q is within one called %s, which is reserved for unfinished uploads",
			alias.Storage.Name(), naming.UploadsFolder)
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

// overlap reports whether items, renditions or trash of two aliases may have the same keys. It does
// not depend on what there is at present, because that of an earlier configuration may be swept.
func overlap(a, b *item.Alias) bool {
	return a.Location().Overlaps(b.Location()) || besideOverlaps(a, b) || besideOverlaps(b, a)
}

// besideOverlaps reports whether renditions or trash of an alias may have the keys of items of
// another.
func besideOverlaps(a, b *item.Alias) bool {
	return a.HasRenditionFolder() && a.RenditionLocation().Overlaps(b.Location()) ||
		a.HasTrashFolder() && a.TrashLocation().Overlaps(b.Location())
}

// Bounds of how long items, or those in the trash, are kept.
const (
	minKept = time.Minute
	maxKept = 3650 * 24 * time.Hour
)

// parseKept returns how long an option keeps items; 0 for "off" and if it is not set.
func parseKept(option, text string) (time.Duration, error) {
	if text == "" || text == "off" {
		return 0, nil
	}
	kept, err := options.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", option, err)
	}
	if kept < minKept || kept > maxKept {
		return 0, fmt.Errorf("%s: %q is not from 1m to 3650d, or off", option, text)
	}
	return kept, nil
}

// parseTrash returns how long the option trash keeps items, see [parseKept], and whether that is
// locked.
func parseTrash(text string) (kept time.Duration, locked bool, err error) {
	period, locked := strings.CutSuffix(text, " locked")
	kept, err = parseKept("trash", period)
	if err == nil && locked && kept == 0 {
		err = errors.New("trash: locked needs a time, as in 14d locked")
	}
	return kept, locked, err
}

func normalExtension(ext string) string { return strings.ToLower(strings.TrimPrefix(ext, ".")) }

// setOf returns extensions as a set, in their normal form.
func setOf(extensions []string) map[string]bool {
	set := make(map[string]bool, len(extensions))
	for _, ext := range extensions {
		set[normalExtension(ext)] = true
	}
	return set
}
