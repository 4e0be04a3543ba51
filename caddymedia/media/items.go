package media

import (
	"context"
	"path"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/derived"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/imaging/webp"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/naming"
)

// The types of items that the API for administrators and the panel use.
type (
	// Alias is an alias of a running service.
	Alias = item.Alias
	// Kind is the kind of an alias.
	Kind = item.Kind
	// Actor is the cause of a change of items.
	Actor = item.Actor
)

// The kinds, the origins of requests by administrators, and the name of the implied aliases.
const (
	Image        = item.Image
	File         = item.File
	OriginAdmin  = item.OriginAdmin
	OriginPanel  = item.OriginPanel
	OriginGo     = item.OriginGo
	DefaultAlias = item.DefaultAlias
	// VariantSuffix is the end of the names of variants.
	VariantSuffix = render.Suffix
)

// EncoderName returns the name of the WebP encoder, or "" if there is none.
func EncoderName() string {
	encoder, err := webp.New()
	if err != nil {
		return ""
	}
	return encoder.Name()
}

// ImageSizes returns the sizes of a stored image and of its renditions, and the value of a srcset
// attribute with them. A file and a damaged image have none.
func (s *Service) ImageSizes(ctx context.Context, alias *Alias, filename string) (sizes []derived.Size, srcset string) {
	if alias.Kind != Image {
		return nil, ""
	}
	sizes, err := s.uploader.Derived.Sizes(ctx, alias, filename)
	if err != nil {
		return nil, ""
	}
	return sizes, derived.Srcset(sizes)
}

// ItemFilter returns a function that reports whether a list of items shows an object, or a folder
// whose key ends with a slash: its name must contain search, without regard to case and accents.
// Variants and unfinished uploads are not items.
func ItemFilter(alias *Alias, search string) func(key string) bool {
	lower, plain := strings.ToLower(search), naming.Searchable(search)
	return func(key string) bool {
		if alias.IsVariant(key) || naming.InUploadsFolder(key) {
			return false
		}
		name := path.Base(key)
		return strings.Contains(strings.ToLower(name), lower) ||
			plain != "" && strings.Contains(naming.Searchable(name), plain)
	}
}
