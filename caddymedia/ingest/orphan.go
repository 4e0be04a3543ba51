package ingest

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/storagedrivers"
)

// Orphans gives the variants of an alias for pictures that were stored before a time and have
// no picture beside them, up to the first error, which is one of the storage. A deletion in
// one process leaves them, while another makes variants, and so does who deletes pictures in
// the place itself.
func (a *Alias) Orphans(ctx context.Context, before time.Time) iter.Seq2[storagedrivers.Info, error] {
	return func(yield func(storagedrivers.Info, error) bool) {
		opts := storagedrivers.ListOptions{Prefix: a.Key("")}
		for {
			page, err := a.Storage.List(ctx, opts)
			if err != nil {
				yield(storagedrivers.Info{}, err)
				return
			}
			for _, key := range a.alone(page) {
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

// alone gives the variants on a page of a listing whose pictures are not on it. It spares the
// storage most questions.
func (a *Alias) alone(page storagedrivers.Page) []string {
	there := make(map[string]bool, len(page.Objects))
	for _, info := range page.Objects {
		there[info.Key] = true
	}
	var alone []string
	for _, info := range page.Objects {
		if a.IsVariant(a.Filename(info.Key)) && !there[pictureKey(info.Key)] {
			alone = append(alone, info.Key)
		}
	}
	return alone
}

func pictureKey(variantKey string) string { return strings.TrimSuffix(variantKey, variant.Suffix) }

// orphan gives the variant under a key; the zero Info if its picture is there, or it is not.
func (a *Alias) orphan(ctx context.Context, key string) (storagedrivers.Info, error) {
	picture, err := stat(ctx, a.Storage, pictureKey(key))
	if err != nil || picture.Key != "" {
		return storagedrivers.Info{}, err
	}
	return stat(ctx, a.Storage, key)
}

// RemoveOrphan removes what [Alias.Orphans] gave if it is still what it was, and its picture
// still not there. It waits for uploads and deletions of the name in this process. Should
// another process store the picture at that very moment, its variant is made again.
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
		if _, err = u.renew(ctx, alias, filename, false); errors.Is(err, variant.ErrNone) {
			err = nil
		}
	}
	return true, err
}
