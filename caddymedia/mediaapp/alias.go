package mediaapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// AliasOptions are what both kinds of aliases have.
type AliasOptions struct {
	// The storage that keeps the items. Default: the one called `default`, or the only
	// one there is.
	Storage string `json:"storage,omitempty" option:"common" example:"default"`

	// The folder of the items in their storage. No two aliases may share a folder, nor may
	// that of one lie within that of another, also where their storages use the same bucket,
	// host or folder. `/` is the root of the storage. Folders whose names end in `@renditions`
	// are reserved. Default: `img/<alias>` or `file/<alias>`, like the public address.
	Prefix string `json:"prefix,omitempty" example:"img/photos"`

	// The start of the public addresses of this alias. Default: the app's `cdn_base`.
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

	// Which SVG pictures are accepted: `reject` refuses those with scripts, handlers, external
	// references or entities, `keep` accepts all, and `off` none. This service serves pictures
	// without rights, so a script in one runs only if the picture is opened elsewhere.
	// Default: `reject`.
	SVG string `json:"svg,omitempty" option:"common,words=reject|keep|off"`

	// The formats of images that are accepted besides jpg, jpeg, png, gif and svg: `webp`,
	// `avif` and `heic`. Images of these formats have no WebP variant. AVIF and HEIC are checked,
	// but not decoded, so that they have no renditions either. Only Safari shows HEIC: in other
	// browsers its place stays empty. Default: none.
	Formats []string `json:"formats,omitempty" option:"common" example:"webp"`

	// Whether a picture of one accepted format under the extension of another gets the right
	// extension: a PNG sent as `photo.jpg` is stored as `photo.png`. Default: `false`, it is
	// refused.
	RenameMismatched bool `json:"rename_mismatched,omitempty"`

	// The most pixels of a picture, width times height. Default: `max_pixels` of the
	// limits.
	MaxPixels int64 `json:"max_pixels,omitempty"`

	// Stores a WebP variant beside each jpg, png and gif, under the name of the picture
	// with `.webp` behind it. Default: none.
	WebP *WebP `json:"webp,omitempty" option:"common"`

	// Whether a request for a picture from a client that accepts WebP is answered with
	// the variant, unless the image is an HDR photo. Every such request then costs a look
	// at the image as well as at the variant, and a cache in front must heed `Vary`. Needs
	// `webp`. Default: `false`.
	Negotiate bool `json:"negotiate,omitempty"`

	// The metadata without which images are stored. `on` removes Exif, GPS, XMP, comments and
	// data behind the end. `location` removes only GPS, place names, maker notes, serial
	// numbers, thumbnails and data behind the end. The pixels, the orientation, the colour
	// profile and a gain map (HDR) stay. A variant never has any of these. Default: `off`, the
	// bytes as they were sent.
	StripMetadata stripMode `json:"strip_metadata,omitempty" option:"words=on|off|location"`

	// Named sizes of the pictures, at most 16, below `<address of the alias>@<name>/`. They are
	// stored beside the folder of the alias, whose `prefix` cannot be `/` then. A change makes new
	// files; `caddy media sweep` removes the old ones. Default: none.
	Renditions map[string]*Rendition `json:"renditions,omitempty" option:"common,line=rendition"`
}

// stripMode is an [imaging.StripMode]. In JSON it may also be true or false, the values of a switch
// that the option was before.
type stripMode string

// UnmarshalJSON implements json.Unmarshaler.
func (m *stripMode) UnmarshalJSON(b []byte) error {
	var on bool
	if json.Unmarshal(b, &on) != nil {
		return json.Unmarshal(b, (*string)(m))
	}
	*m = stripMode(imaging.StripOff)
	if on {
		*m = stripMode(imaging.StripOn)
	}
	return nil
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

// image returns an image alias of the configuration.
func (c *Config) image(name string) (media.Alias, error) {
	if c.ImageAliases[name] == nil {
		return media.Alias{}, errors.New("it is empty")
	}
	config := *c.ImageAliases[name]
	if err := imageAliasOptions.Expand(&config); err != nil {
		return media.Alias{}, err
	}
	alias, err := config.alias(ingest.Image, name)
	if err != nil {
		return media.Alias{}, err
	}
	if alias.SVG, err = imaging.ParseSVGMode(config.SVG); err != nil {
		return media.Alias{}, fmt.Errorf("svg: %w", err)
	}
	if alias.WebP, err = config.WebP.options(); err != nil {
		return media.Alias{}, fmt.Errorf("webp: %w", err)
	}
	if alias.Renditions, err = config.renditions(); err != nil {
		return media.Alias{}, err
	}
	if alias.StripMetadata, err = imaging.ParseStripMode(string(config.StripMetadata)); err != nil {
		return media.Alias{}, fmt.Errorf("strip_metadata: %w", err)
	}
	alias.MaxPixels, alias.Negotiate = config.MaxPixels, config.Negotiate
	alias.Formats, alias.RenameMismatched = config.Formats, config.RenameMismatched
	return alias, nil
}

// options returns nil if no variants are configured.
func (w *WebP) options() (*render.Options, error) {
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
	return &render.Options{Quality: w.Quality, Effort: effort}, nil
}

// file returns a file alias of the configuration.
func (c *Config) file(name string) (media.Alias, error) {
	if c.FileAliases[name] == nil {
		return media.Alias{}, errors.New("it is empty")
	}
	config := *c.FileAliases[name]
	if err := fileAliasOptions.Expand(&config); err != nil {
		return media.Alias{}, err
	}
	alias, err := config.alias(ingest.File, name)
	alias.Extensions = config.Extensions
	return alias, err
}

// alias returns an alias with the options of both kinds. The options must be expanded.
func (o *AliasOptions) alias(kind ingest.Kind, name string) (media.Alias, error) {
	redirect, err := o.Redirect.options()
	if err != nil {
		return media.Alias{}, fmt.Errorf("redirect: %w", err)
	}
	return media.Alias{
		Kind: kind, Name: name, Storage: o.Storage, Prefix: o.Prefix, BaseURL: o.CDNBase, MaxSize: o.MaxSize,
		CacheControl: o.CacheControl, Redirect: redirect,
	}, nil
}

// aliases returns all aliases, image aliases first, sorted by name.
func (c *Config) aliases() ([]media.Alias, error) {
	var aliases []media.Alias
	for _, kind := range []struct {
		kind  ingest.Kind
		names []string
		alias func(string) (media.Alias, error)
	}{
		{ingest.Image, slices.Sorted(maps.Keys(c.ImageAliases)), c.image},
		{ingest.File, slices.Sorted(maps.Keys(c.FileAliases)), c.file},
	} {
		for _, name := range kind.names {
			alias, err := kind.alias(name)
			if err != nil {
				return nil, fmt.Errorf("%s alias %q: %w", kind.kind.Name(), name, err)
			}
			aliases = append(aliases, alias)
		}
	}
	return aliases, nil
}

// baseURL returns the expanded prefix of all addresses.
func (c *Config) baseURL() (string, error) {
	var expand options.Expander
	base := expand.Text("cdn_base", c.CDNBase)
	if err := expand.Err(); err != nil || base == "" {
		return "", err
	}
	return options.Address("cdn_base", base, "https://cdn.example.com")
}
