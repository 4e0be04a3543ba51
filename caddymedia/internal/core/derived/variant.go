package derived

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Reconcile ensures that own, a variant that was just committed, belongs to the image beside it.
// Names are locked within a process only. If several processes replace an image at the same time,
// the image may come from one process and the variant from another. Then reconcile makes the
// variant again, or removes it. It reports whether the image has a variant in the end.
func (m *Maker) Reconcile(
	ctx context.Context, alias *item.Alias, filename string, image, own storagedrivers.Info,
) (hasVariant bool, err error) {
	for range rounds {
		now, err := item.Stat(ctx, alias.Storage, image.Key)
		if err != nil || now.Same(image) {
			return err == nil, err
		}
		beside, err := item.Stat(ctx, alias.Storage, own.Key)
		if err != nil || !beside.Same(own) {
			// Another process has stored or removed it, and reconciles it. A removed one is stored
			// again if its image is about to be replaced.
			return beside.Key != "" || alias.Uncovers(now), err
		}
		if now.Key == "" {
			break // the image is deleted
		}
		made, err := m.remake(ctx, alias, filename)
		if errors.Is(err, render.ErrNone) {
			break
		}
		if err != nil {
			return false, err
		}
		image, own = now, made
	}
	if err := removeOwn(ctx, alias.Storage, own); err != nil {
		return false, err
	}
	left, err := alias.Pair(ctx, filename)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return left.State() == item.VariantCurrent, err
}

// removeOwn removes a variant unless it has been replaced.
func removeOwn(ctx context.Context, s *storagedrivers.Storage, own storagedrivers.Info) error {
	now, err := item.Stat(ctx, s, own.Key)
	if err != nil || !now.Same(own) {
		return err
	}
	_, err = s.Commit(ctx, storagedrivers.Change{Key: own.Key, Options: storagedrivers.PutOptions{IfMatch: own.ETag}})
	if errors.Is(err, storagedrivers.ErrChanged) {
		return nil
	}
	return err
}

// remake makes the variant of a stored image again.
func (m *Maker) remake(ctx context.Context, alias *item.Alias, filename string) (made storagedrivers.Info, err error) {
	err = item.Traced(ctx, "media.variant", alias.Attributes, func(ctx context.Context) error {
		image, variant, err := m.makeOf(ctx, alias, alias.Key(filename), m.Images, render.Variant(*alias.WebP))
		if err != nil {
			return err
		}
		if variant[0].Err != nil {
			return variant[0].Err
		}
		file := bytes.NewReader(variant[0].File)
		made, err = alias.Storage.Put(ctx, alias.VariantKey(filename), file, alias.VariantOptions(image))
		return err
	})
	return made, err
}

// Renewed is the result of [Maker.Renew].
type Renewed struct {
	// Before is the state of the variant before Renew.
	Before item.VariantState
	// Result of making the variant; empty if Renew made none.
	Result item.VariantResult
	// Size of the new variant, in bytes.
	Size int64
}

// Renew makes the variant of a stored image if it is missing or stale, or in any state if all is
// true. The alias must have variants. Renew waits for uploads and deletions of the name in this
// process. If another process replaces the image meanwhile, the variant is that of the new
// image. Only a deletion by another process can leave a variant without its image, see
// [Orphans].
//
// If no variant can be made, Renew removes a stale one; the error wraps [render.ErrNone] and the
// result is VariantNone. The error is fs.ErrNotExist if the image does not exist any more. It
// wraps [render.ErrBusy] if the encoding queue is full or slow. Otherwise it is that of a
// image that fails the checks, of the storage, or of ctx.
func (m *Maker) Renew(ctx context.Context, alias *item.Alias, filename string, all bool) (Renewed, error) {
	if alias.WebP == nil || !alias.MayHaveVariant(filename) {
		return Renewed{}, fmt.Errorf("the alias %s has no variant of %q", alias.Name, filename)
	}
	unlock, err := alias.Lock(ctx, filename)
	if err != nil {
		return Renewed{}, err
	}
	defer unlock()
	return m.RenewLocked(ctx, alias, filename, all)
}

// RenewLocked is [Maker.Renew] without the lock; the caller holds it.
func (m *Maker) RenewLocked(ctx context.Context, alias *item.Alias, filename string, all bool) (Renewed, error) {
	found, err := alias.Pair(ctx, filename)
	if err != nil {
		return Renewed{}, err
	}
	done := Renewed{Before: found.State()}
	if done.Before == item.VariantCurrent && !all {
		return done, nil
	}
	made, err := m.remake(ctx, alias, filename)
	if errors.Is(err, render.ErrNone) {
		done.Result = item.VariantNone
		if done.Before == item.VariantStale {
			err = errors.Join(err, removeOwn(ctx, alias.Storage, found.Variant))
		}
		return done, err
	}
	if err != nil {
		return done, err
	}
	hasVariant, err := m.Reconcile(ctx, alias, filename, found.Image, made)
	if err != nil {
		return done, err
	}
	if !hasVariant {
		return done, fmt.Errorf("the image was replaced or deleted meanwhile: %w", fs.ErrNotExist)
	}
	done.Result, done.Size = item.VariantMade, made.Size
	if done.Size > found.Image.Size {
		done.Result = item.VariantLarger
	}
	return done, nil
}

// Orphans yields the variants of an alias that are older than before and have no image, up to the
// first error of the storage. An orphan exists if another process made the variant during the
// deletion of the image, or if the image was deleted in the backend itself.
func Orphans(ctx context.Context, a *item.Alias, before time.Time) iter.Seq2[storagedrivers.Info, error] {
	return func(yield func(storagedrivers.Info, error) bool) {
		opts := storagedrivers.ListOptions{Prefix: a.Key("")}
		for {
			page, err := a.Storage.List(ctx, opts)
			if err != nil {
				yield(storagedrivers.Info{}, err)
				return
			}
			for _, key := range unpaired(a, page) {
				orphan, err := orphanUnder(ctx, a, key)
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

// unpaired returns the variants on a page of a listing whose images are not on it. Only these
// need further requests to the storage.
func unpaired(a *item.Alias, page storagedrivers.Page) []string {
	listed := make(map[string]bool, len(page.Objects))
	for _, info := range page.Objects {
		listed[info.Key] = true
	}
	var keys []string
	for _, info := range page.Objects {
		if a.IsVariant(a.Filename(info.Key)) && !naming.IsReserved(info.Key) && !listed[imageKey(info.Key)] {
			keys = append(keys, info.Key)
		}
	}
	return keys
}

func imageKey(variantKey string) string { return strings.TrimSuffix(variantKey, render.Suffix) }

// orphanUnder returns the variant under key. It returns the zero Info if the image of the variant
// exists, or if the variant does not.
func orphanUnder(ctx context.Context, a *item.Alias, key string) (storagedrivers.Info, error) {
	image, err := item.Stat(ctx, a.Storage, imageKey(key))
	if err != nil || image.Key != "" {
		return storagedrivers.Info{}, err
	}
	return item.Stat(ctx, a.Storage, key)
}

// RemoveOrphan removes a variant of [Orphans], unless it has changed or now has an image. It
// waits for uploads and deletions of the name in this process. If another process stores the
// image at the same time, its variant is made again.
func (m *Maker) RemoveOrphan(ctx context.Context, alias *item.Alias, orphan storagedrivers.Info) (removed bool, err error) {
	filename := alias.Filename(imageKey(orphan.Key))
	unlock, err := alias.Lock(ctx, filename)
	if err != nil {
		return false, err
	}
	defer unlock()
	now, err := orphanUnder(ctx, alias, orphan.Key)
	if err != nil || !now.Same(orphan) {
		return false, err
	}
	if err := item.Remove(ctx, alias.Storage, orphan.Key); err != nil {
		return false, err
	}
	image, err := item.Stat(ctx, alias.Storage, imageKey(orphan.Key))
	if err == nil && image.Key != "" && alias.WebP != nil {
		if _, err = m.RenewLocked(ctx, alias, filename, false); errors.Is(err, render.ErrNone) {
			err = nil
		}
	}
	return true, err
}
