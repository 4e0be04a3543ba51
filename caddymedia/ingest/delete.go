package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

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
func (u *Uploader) Delete(ctx context.Context, alias *Alias, filename string, actor Actor) error {
	item := Item{FullPath: alias.URL("", filename), Filename: filename}
	err := alias.delete(ctx, &item)
	if err != nil {
		err = fmt.Errorf("deleting %q of the alias %s: %w", filename, alias.Name, err)
	}
	u.Observer.Changed(ctx, Change{Action: Deleted, Alias: alias, Item: item, Actor: actor, Err: err})
	return err
}

// delete removes an item, and sets its size and variant.
func (a *Alias) delete(ctx context.Context, item *Item) error {
	if a.IsVariant(item.Filename) || naming.InUploadsFolder(item.Filename) {
		return fs.ErrNotExist
	}
	unlock, err := a.lock(ctx, item.Filename)
	if err != nil {
		return err
	}
	defer unlock()
	var found []string
	if len(a.Renditions) > 0 {
		if found, err = a.storedRenditions(ctx, item.Filename); err != nil {
			return err
		}
	}
	exists := false
	for _, key := range a.keys(item.Filename) {
		info, err := stat(ctx, a.Storage, key)
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
	return a.removeAll(context.WithoutCancel(ctx), found)
}

// removeAll removes objects by one commit.
func (a *Alias) removeAll(ctx context.Context, keys []string) error {
	changes := make([]storagedrivers.Change, len(keys))
	for i, key := range keys {
		changes[i].Key = key
	}
	_, err := a.Storage.Commit(ctx, changes...)
	return err
}

// keys returns the keys of the objects of an item, in the order of their removal.
func (a *Alias) keys(filename string) []string {
	if a.MayHaveVariant(filename) {
		return []string{a.VariantKey(filename), a.Key(filename)}
	}
	return []string{a.Key(filename)}
}
