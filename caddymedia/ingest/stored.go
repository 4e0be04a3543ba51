package ingest

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// MayHaveVariant reports whether filename (relative to the alias) is the name of a picture that may
// have a variant.
func (a *Alias) MayHaveVariant(filename string) bool {
	ext := naming.Extension(filename)
	return a.Kind == Image && a.Extensions[ext] && imaging.FormatOf(ext).HasVariant()
}

// IsVariant reports whether filename (relative to the alias) is the name of the variant of a
// picture, which is not an item of its own.
func (a *Alias) IsVariant(filename string) bool {
	picture, ok := strings.CutSuffix(filename, render.Suffix)
	return ok && a.MayHaveVariant(picture)
}

// VariantState is the state of the variant of a stored picture.
type VariantState string

// The states.
const (
	VariantCurrent VariantState = "current"
	VariantMissing VariantState = "missing"
	// VariantStale means that the variant is older than its picture and belongs to an earlier one
	// of the name.
	VariantStale VariantState = "stale"
)

// VariantState returns the state of the variant of the picture filename. The error is
// fs.ErrNotExist if there is no such picture, or that of the storage.
func (a *Alias) VariantState(ctx context.Context, filename string) (VariantState, error) {
	pair, err := a.pair(ctx, filename)
	return pair.state(), err
}

// pair is a stored picture with its variant.
type pair struct {
	picture storagedrivers.Info
	variant storagedrivers.Info // zero if there is none
}

func (a *Alias) pair(ctx context.Context, filename string) (pair, error) {
	picture, err := a.Storage.Stat(ctx, a.Key(filename))
	if err != nil {
		return pair{}, err
	}
	webp, err := stat(ctx, a.Storage, a.VariantKey(filename))
	return pair{picture, webp}, err
}

func (p pair) state() VariantState {
	switch {
	case p.variant.Key == "":
		return VariantMissing
	case p.variant.ModTime.Before(p.picture.ModTime):
		return VariantStale
	default:
		return VariantCurrent
	}
}

// OpenVariant opens the variant of the picture filename by open, a method of [Alias.Storage]. The
// error is fs.ErrNotExist if there is none, or a stale one.
func (a *Alias) OpenVariant(
	ctx context.Context, filename string, picture storagedrivers.Info,
	open func(context.Context, string) (*storagedrivers.Object, error),
) (*storagedrivers.Object, error) {
	webp, err := open(ctx, a.VariantKey(filename))
	if err != nil {
		return nil, err
	}
	if (pair{picture, webp.Info}).state() == VariantStale {
		return nil, errors.Join(fs.ErrNotExist, webp.Close())
	}
	return webp, nil
}

// IsHDR reports whether a stored picture has a gain map, so that its variant does not show the same.
// The error is that of the storage.
func (a *Alias) IsHDR(ctx context.Context, filename string, picture storagedrivers.Info) (bool, error) {
	if imaging.FormatOf(naming.Extension(filename)) != imaging.JPEG {
		return false, nil
	}
	info, err := a.header(ctx, filename, picture)
	if IsUnrenderable(err) {
		return false, nil
	}
	return info.HDR, err
}

// putOptions returns the options of an item.
func (a *Alias) putOptions() storagedrivers.PutOptions {
	opts := storagedrivers.PutOptions{CacheControl: a.CacheControl}
	if a.Overwrite {
		opts.Mode = storagedrivers.Overwrite
	}
	return opts
}

// variantOptions returns the options of the variant of an image. They overwrite: an existing object
// of the name belongs to an earlier image.
func (a *Alias) variantOptions(image storagedrivers.Info) storagedrivers.PutOptions {
	return storagedrivers.PutOptions{
		Mode: storagedrivers.Overwrite, CacheControl: a.CacheControl, NotBefore: image.ModTime,
	}
}

// stat is Storage.Stat, but returns the zero Info if the object does not exist.
func stat(ctx context.Context, s *storagedrivers.Storage, key string) (storagedrivers.Info, error) {
	info, err := s.Stat(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return storagedrivers.Info{}, nil
	}
	return info, err
}

// remove is Storage.Delete, but returns nil if the object does not exist.
func remove(ctx context.Context, s *storagedrivers.Storage, key string) error {
	if err := s.Delete(ctx, key); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeOwn removes an object unless it has been replaced.
func removeOwn(ctx context.Context, s *storagedrivers.Storage, own storagedrivers.Info) error {
	now, err := stat(ctx, s, own.Key)
	if err != nil || !now.Same(own) {
		return err
	}
	return remove(ctx, s, own.Key)
}
