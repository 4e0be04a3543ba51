package aliases

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// MayHaveVariant reports whether filename (relative to the alias) is the name of an image that may
// have a variant.
func (a *Alias) MayHaveVariant(filename string) bool {
	ext := naming.Extension(filename)
	return a.Kind == Image && a.Extensions[ext] && imaging.FormatOf(ext).HasVariant()
}

// IsVariant reports whether filename (relative to the alias) is the name of the variant of an
// image, which is not an item of its own.
func (a *Alias) IsVariant(filename string) bool {
	image, ok := strings.CutSuffix(filename, render.Suffix)
	return ok && a.MayHaveVariant(image)
}

// MayBeItem reports whether filename (relative to the alias) may be that of an item: the key is valid, and
// neither that of a variant nor of an unfinished upload.
func (a *Alias) MayBeItem(filename string) bool {
	return storagedrivers.ValidKey(filename) == nil && storagedrivers.ValidKey(a.Key(filename)) == nil &&
		!a.IsVariant(filename) && !naming.InUploadsFolder(filename)
}

// VariantState is the state of the variant of a stored image.
type VariantState string

// The states.
const (
	VariantCurrent VariantState = "current"
	VariantMissing VariantState = "missing"
	// VariantStale means that the variant is older than its image and belongs to an earlier one
	// of the name.
	VariantStale VariantState = "stale"
)

// VariantState returns the state of the variant of the image filename. The error is
// fs.ErrNotExist if there is no such image, or that of the storage.
func (a *Alias) VariantState(ctx context.Context, filename string) (VariantState, error) {
	pair, err := a.Pair(ctx, filename)
	return pair.State(), err
}

// Pair is a stored image with its variant.
type Pair struct {
	Image   storagedrivers.Info
	Variant storagedrivers.Info // zero if there is none
}

// Pair returns the image filename with its variant. The error is that of [Alias.VariantState].
func (a *Alias) Pair(ctx context.Context, filename string) (Pair, error) {
	image, err := a.Storage.Stat(ctx, a.Key(filename))
	if err != nil {
		return Pair{}, err
	}
	webp, err := Stat(ctx, a.Storage, a.VariantKey(filename))
	return Pair{image, webp}, err
}

// State returns the state of the variant.
func (p Pair) State() VariantState {
	switch {
	case p.Variant.Key == "":
		return VariantMissing
	case p.Variant.ModTime.Before(p.Image.ModTime):
		return VariantStale
	default:
		return VariantCurrent
	}
}

// OpenVariant opens the variant of the image filename by open, a method of [Alias.Storage]. The
// error is fs.ErrNotExist if there is none, or a stale one.
func (a *Alias) OpenVariant(
	ctx context.Context, filename string, image storagedrivers.Info,
	open func(context.Context, string) (*storagedrivers.Object, error),
) (*storagedrivers.Object, error) {
	webp, err := open(ctx, a.VariantKey(filename))
	if err != nil {
		return nil, err
	}
	if (Pair{image, webp.Info}).State() == VariantStale {
		return nil, errors.Join(fs.ErrNotExist, webp.Close())
	}
	return webp, nil
}

// ContentType returns the media type of an item with an extension (lower case, no dot).
func (a *Alias) ContentType(ext string) string {
	return cmp.Or(a.Types[ext], storagedrivers.ContentType("."+ext))
}

// Typed returns info with the media type that the alias sets for its extension.
func (a *Alias) Typed(info storagedrivers.Info) storagedrivers.Info {
	info.ContentType = cmp.Or(a.Types[naming.Extension(info.Key)], info.ContentType)
	return info
}

// PutOptions returns the options of an item.
func (a *Alias) PutOptions(filename string) storagedrivers.PutOptions {
	opts := storagedrivers.PutOptions{CacheControl: a.CacheControl, ContentType: a.Types[naming.Extension(filename)]}
	if a.Overwrite {
		opts.Mode = storagedrivers.Overwrite
	}
	return opts
}

// VariantOptions returns the options of the variant of an image. They overwrite: an existing object
// of the name belongs to an earlier image.
func (a *Alias) VariantOptions(image storagedrivers.Info) storagedrivers.PutOptions {
	return storagedrivers.PutOptions{
		Mode: storagedrivers.Overwrite, CacheControl: a.CacheControl, NotBefore: image.ModTime,
	}
}

// Stat is Storage.Stat, but returns the zero Info if the object does not exist.
func Stat(ctx context.Context, s *storagedrivers.Storage, key string) (storagedrivers.Info, error) {
	info, err := s.Stat(storagedrivers.WithoutCache(ctx), key)
	if errors.Is(err, fs.ErrNotExist) {
		return storagedrivers.Info{}, nil
	}
	return info, err
}

// Remove is Storage.Delete, but returns nil if the object does not exist.
func Remove(ctx context.Context, s *storagedrivers.Storage, key string) error {
	if err := s.Delete(ctx, key); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Uncovers reports whether the variant of an image is removed before the image is replaced: where
// the storage has its times in whole seconds. Within a second, the variant would not be older than
// the new image and would count as its own. A storage that commits both together leaves no such
// variant.
func (a *Alias) Uncovers(old storagedrivers.Info) bool {
	return old.Key != "" && old.ModTime.Nanosecond() == 0 && a.Storage.Features().Together != storagedrivers.Atomic
}

// VariantResult is the outcome of making a variant.
type VariantResult string

// The outcomes.
const (
	VariantMade   VariantResult = "made"
	VariantLarger VariantResult = "larger" // than its image, and kept
	VariantNone   VariantResult = "none"   // cannot be made
)
