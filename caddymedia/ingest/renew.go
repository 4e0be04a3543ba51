package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// VariantState is how the variant of a stored picture stands.
type VariantState string

// The states of a variant.
const (
	VariantCurrent VariantState = "current"
	VariantMissing VariantState = "missing"
	// VariantStale is one that is older than its picture: that of an earlier picture of the
	// name.
	VariantStale VariantState = "stale"
)

// MayHaveVariant tells whether filename (relative to the alias) is that of a picture of
// pixels, which has a variant where the alias wants them.
func (a *Alias) MayHaveVariant(filename string) bool {
	ext := naming.Extension(filename)
	return a.Kind == Image && a.Extensions[ext] && ext != "svg"
}

// Filename is the inverse of [Alias.Key].
func (a *Alias) Filename(key string) string { return key[len(a.Key("")):] }

// VariantState tells how the variant of the picture filename stands. A picture that does not
// exist is fs.ErrNotExist; all other errors are those of the storage.
func (a *Alias) VariantState(ctx context.Context, filename string) (VariantState, error) {
	pair, err := a.pair(ctx, filename)
	return pair.state(), err
}

// pair is a picture and what lies beside it.
type pair struct {
	picture storagedrivers.Info
	beside  storagedrivers.Info // zero where there is nothing
}

func (a *Alias) pair(ctx context.Context, filename string) (pair, error) {
	picture, err := a.Storage.Stat(ctx, a.Key(filename))
	if err != nil {
		return pair{}, err
	}
	beside, err := stat(ctx, a.Storage, a.VariantKey(filename))
	return pair{picture, beside}, err
}

func (p pair) state() VariantState {
	switch {
	case p.beside.Key == "":
		return VariantMissing
	case p.beside.ModTime.Before(p.picture.ModTime):
		return VariantStale
	default:
		return VariantCurrent
	}
}

// OpenVariant opens the variant of the picture filename by open, a method of [Alias.Storage]. One that
// is older than its picture is that of an earlier picture of the name: fs.ErrNotExist, as where there
// is none.
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

// Renewed is what [Uploader.Renew] did.
type Renewed struct {
	// Before is how the variant stood.
	Before VariantState
	// Result is what became of it; empty for one that stays as it was.
	Result VariantResult
	// Size of the variant that was made, in bytes.
	Size int64
}

// Renew makes the variant of a stored picture of an alias that has variants, if there is none,
// if it is stale, or whatever it is if all is true. It waits for uploads and deletions of the
// name in this process. A picture that another process replaces meanwhile gets the variant of
// the new one; only a deletion elsewhere can leave a variant alone, see [Alias.Orphans].
//
// The error wraps [variant.ErrNone], beside the result VariantNone, where none can be made: a
// stale one is removed then. It is fs.ErrNotExist for a picture that is not there or not any
// more, wraps [variant.ErrBusy], or is that of a picture that does not pass the checks, of the
// storage, or of ctx.
func (u *Uploader) Renew(ctx context.Context, alias *Alias, filename string, all bool) (Renewed, error) {
	if alias.WebP == nil || !alias.MayHaveVariant(filename) {
		return Renewed{}, fmt.Errorf("the alias %s has no variant of %q", alias.Name, filename)
	}
	unlock, err := alias.lock(ctx, filename)
	if err != nil {
		return Renewed{}, err
	}
	defer unlock()
	return u.renew(ctx, alias, filename, all)
}

// renew is Renew for who has locked the name.
func (u *Uploader) renew(ctx context.Context, alias *Alias, filename string, all bool) (Renewed, error) {
	found, err := alias.pair(ctx, filename)
	if err != nil {
		return Renewed{}, err
	}
	done := Renewed{Before: found.state()}
	if done.Before == VariantCurrent && !all {
		return done, nil
	}
	it := &item{filename: filename, placed: found.picture}
	it.variantPlaced, err = u.remake(ctx, alias, filename)
	if errors.Is(err, variant.ErrNone) {
		done.Result = VariantNone
		if done.Before == VariantStale {
			err = errors.Join(err, removeOwn(ctx, alias.Storage, found.beside))
		}
		return done, err
	}
	if err == nil {
		err = u.settle(ctx, alias, it)
	}
	if err != nil {
		return done, err
	}
	if it.withoutVariant {
		return done, fmt.Errorf("the picture was replaced or deleted meanwhile: %w", fs.ErrNotExist)
	}
	done.Result, done.Size = VariantMade, it.variantPlaced.Size
	if done.Size > found.picture.Size {
		done.Result = VariantLarger
	}
	return done, nil
}
