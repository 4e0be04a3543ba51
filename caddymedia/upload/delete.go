package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Delete removes an item of the alias and, for a picture, its renditions and its variant. These are
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
	var found []string
	if len(a.Renditions) > 0 {
		if found, err = a.StoredRenditions(ctx, item.Filename); err != nil {
			return err
		}
	}
	exists := false
	for _, key := range keys(a, item.Filename) {
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
	// The end of the request does not stop a deletion half-way. The storage bounds each removal.
	_, err = a.Storage.Commit(context.WithoutCancel(ctx), removals(found)...)
	return err
}

// keys returns the keys of the objects of an item, in the order of their removal.
func keys(a *aliases.Alias, filename string) []string {
	if a.MayHaveVariant(filename) {
		return []string{a.VariantKey(filename), a.Key(filename)}
	}
	return []string{a.Key(filename)}
}

// removals returns the changes that remove objects.
func removals(keys []string) []storagedrivers.Change {
	changes := make([]storagedrivers.Change, len(keys))
	for i, key := range keys {
		changes[i].Key = key
	}
	return changes
}
