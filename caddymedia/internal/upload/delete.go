package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Delete removes an item of the alias and, for an image, its renditions and its variant. These are
// removed first, so that they never exist alone. Delete waits for uploads of the name in this
// process.
//
// The error is fs.ErrNotExist if filename is invalid, names a variant, or does not exist. Otherwise
// it is that of the storage, or of ctx during the wait. Then the item still exists, perhaps without
// its variant, and can be deleted again.
func (u *Uploader) Delete(ctx context.Context, alias *aliases.Alias, filename string, actor aliases.Actor) error {
	item := Item{FullPath: alias.URL("", filename), Filename: filename}
	err := remove(ctx, alias, &item)
	if err != nil {
		err = fmt.Errorf("deleting %q of the alias %s: %w", filename, alias.Name, err)
	}
	u.Observer.Changed(ctx, Change{Action: Deleted, Alias: alias, Item: item, Actor: actor, Err: err})
	return err
}

// remove removes an item, and sets its size and variant.
func remove(ctx context.Context, a *aliases.Alias, item *Item) error {
	if a.IsVariant(item.Filename) || naming.InUploadsFolder(item.Filename) {
		return fs.ErrNotExist
	}
	unlock, err := a.Lock(ctx, item.Filename)
	if err != nil {
		return err
	}
	defer unlock()
	var found []string // keys
	if len(a.Renditions) > 0 {
		if found, err = a.StoredRenditions(ctx, item.Filename); err != nil {
			return err
		}
	}
	exists := false
	keys := []string{a.Key(item.Filename)}
	if a.MayHaveVariant(item.Filename) {
		keys = []string{a.VariantKey(item.Filename), a.Key(item.Filename)} // in the order of their removal
	}
	for _, key := range keys {
		info, err := aliases.Stat(ctx, a.Storage, key)
		switch {
		case errors.Is(err, storagedrivers.ErrInvalidKey), err == nil && info.Key == "":
			continue // it does not exist, or cannot
		case err != nil:
			return err
		case key == a.Key(item.Filename):
			item.Size = info.Size
		default:
			item.WebP = item.FullPath + render.Suffix
		}
		found, exists = append(found, key), true
	}
	if !exists {
		return fs.ErrNotExist
	}
	removals := make([]storagedrivers.Change, len(found))
	for i, key := range found {
		removals[i].Key = key
	}
	// The end of the request does not stop a deletion half-way. The storage bounds each removal.
	_, err = a.Storage.Commit(context.WithoutCancel(ctx), removals...)
	return err
}
