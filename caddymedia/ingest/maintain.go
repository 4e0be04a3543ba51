package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

// Renewed is the result of [Uploader.Renew].
type Renewed struct {
	// Before is the state of the variant before Renew.
	Before VariantState
	// Result of making the variant; empty if Renew made none.
	Result VariantResult
	// Size of the new variant, in bytes.
	Size int64
}

// Renew makes the variant of a stored picture if it is missing or stale, or in any state if all is
// true. The alias must have variants. Renew waits for uploads and deletions of the name in this
// process. If another process replaces the picture meanwhile, the variant is that of the new
// picture. Only a deletion by another process can leave a variant without its picture, see
// [Alias.Orphans].
//
// If no variant can be made, Renew removes a stale one; the error wraps [render.ErrNone] and the
// result is VariantNone. The error is fs.ErrNotExist if the picture does not exist any more. It
// wraps [render.ErrBusy] if the encoding queue is full or slow. Otherwise it is that of a
// picture that fails the checks, of the storage, or of ctx.
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

// renew is Renew without the lock; the caller holds it.
func (u *Uploader) renew(ctx context.Context, alias *Alias, filename string, all bool) (Renewed, error) {
	found, err := alias.pair(ctx, filename)
	if err != nil {
		return Renewed{}, err
	}
	done := Renewed{Before: found.state()}
	if done.Before == VariantCurrent && !all {
		return done, nil
	}
	made, err := u.remake(ctx, alias, filename)
	if errors.Is(err, render.ErrNone) {
		done.Result = VariantNone
		if done.Before == VariantStale {
			err = errors.Join(err, removeOwn(ctx, alias.Storage, found.variant))
		}
		return done, err
	}
	if err != nil {
		return done, err
	}
	hasVariant, err := u.reconcile(ctx, alias, filename, found.picture, made)
	if err != nil {
		return done, err
	}
	if !hasVariant {
		return done, fmt.Errorf("the picture was replaced or deleted meanwhile: %w", fs.ErrNotExist)
	}
	done.Result, done.Size = VariantMade, made.Size
	if done.Size > found.picture.Size {
		done.Result = VariantLarger
	}
	return done, nil
}

// Orphans yields the variants of an alias that are older than before and have no picture, up to the
// first error of the storage. An orphan exists if another process made the variant during the
// deletion of the picture, or if the picture was deleted in the backend itself.
func (a *Alias) Orphans(ctx context.Context, before time.Time) iter.Seq2[storagedrivers.Info, error] {
	return func(yield func(storagedrivers.Info, error) bool) {
		opts := storagedrivers.ListOptions{Prefix: a.Key("")}
		for {
			page, err := a.Storage.List(ctx, opts)
			if err != nil {
				yield(storagedrivers.Info{}, err)
				return
			}
			for _, key := range a.unpaired(page) {
				orphan, err := a.orphan(ctx, key)
				wanted := err != nil || orphan.Key != "" && orphan.ModTime.Before(before)
				if wanted && !yield(orphan, err) || err != nil {
					return
				}
			}
			if opts.Cursor = page.Next; opts.Cursor == "" {
				return
			}
		}
	}
}

// unpaired returns the variants on a page of a listing whose pictures are not on it. Only these
// need further requests to the storage.
func (a *Alias) unpaired(page storagedrivers.Page) []string {
	listed := make(map[string]bool, len(page.Objects))
	for _, info := range page.Objects {
		listed[info.Key] = true
	}
	var keys []string
	for _, info := range page.Objects {
		if a.IsVariant(a.Filename(info.Key)) && !listed[pictureKey(info.Key)] {
			keys = append(keys, info.Key)
		}
	}
	return keys
}

func pictureKey(variantKey string) string { return strings.TrimSuffix(variantKey, render.Suffix) }

// orphan returns the variant under key. It returns the zero Info if the picture of the variant
// exists, or if the variant does not.
func (a *Alias) orphan(ctx context.Context, key string) (storagedrivers.Info, error) {
	picture, err := stat(ctx, a.Storage, pictureKey(key))
	if err != nil || picture.Key != "" {
		return storagedrivers.Info{}, err
	}
	return stat(ctx, a.Storage, key)
}

// RemoveOrphan removes a variant of [Alias.Orphans], unless it has changed or now has a picture. It
// waits for uploads and deletions of the name in this process. If another process stores the
// picture at the same time, its variant is made again.
func (u *Uploader) RemoveOrphan(ctx context.Context, alias *Alias, orphan storagedrivers.Info) (removed bool, err error) {
	filename := alias.Filename(pictureKey(orphan.Key))
	unlock, err := alias.lock(ctx, filename)
	if err != nil {
		return false, err
	}
	defer unlock()
	now, err := alias.orphan(ctx, orphan.Key)
	if err != nil || !now.Same(orphan) {
		return false, err
	}
	if err := remove(ctx, alias.Storage, orphan.Key); err != nil {
		return false, err
	}
	picture, err := stat(ctx, alias.Storage, pictureKey(orphan.Key))
	if err == nil && picture.Key != "" && alias.WebP != nil {
		if _, err = u.renew(ctx, alias, filename, false); errors.Is(err, render.ErrNone) {
			err = nil
		}
	}
	return true, err
}
