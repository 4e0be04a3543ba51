package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Deletion is a request to delete an item.
type Deletion struct {
	Alias    *item.Alias
	Filename string
	Actor    item.Actor
	// Matches, if set, reports whether a stored item is the one to delete. No upload of this process
	// replaces the item meanwhile.
	Matches func(storagedrivers.Info) bool
	// Purge keeps the item in no trash.
	Purge bool
	// InSet means that the item is one of a set, which the caller reports to its observer.
	InSet bool
}

// Delete removes an item of the alias on request of an actor; see [Uploader.DeleteItem].
func (u *Uploader) Delete(ctx context.Context, alias *item.Alias, filename string, actor item.Actor) error {
	_, err := u.DeleteItem(ctx, Deletion{Alias: alias, Filename: filename, Actor: actor})
	return err
}

// DeleteItem removes an item and, for an image, its renditions and its variant. These are removed
// first, so that they never exist alone. It waits for uploads of the name in this process. It
// returns the ID of the entry in the trash that keeps the item; empty if there is none.
//
// The error is fs.ErrNotExist if the filename is invalid, names a variant, or does not exist, and
// [item.ErrOther] if the item does not match. Otherwise it is that of the storage, or of ctx during
// the wait. Then the item still exists, perhaps without its variant, and can be deleted again.
func (u *Uploader) DeleteItem(ctx context.Context, d Deletion) (trash string, err error) {
	deleted := Item{FullPath: d.Alias.URL("", d.Filename), Filename: d.Filename}
	err = u.remove(ctx, d, &deleted)
	if err != nil {
		deleted.Trash = ""
		err = fmt.Errorf("deleting %q of the alias %s: %w", d.Filename, d.Alias.Name, err)
	}
	u.Observer.Changed(ctx, Change{Action: Deleted, Alias: d.Alias, Item: deleted, Actor: d.Actor, InSet: d.InSet, Err: err})
	return deleted.Trash, err
}

// remove removes an item, and sets its size, its variant and its entry in the trash.
func (u *Uploader) remove(ctx context.Context, d Deletion, removed *Item) error {
	a := d.Alias
	switch {
	case a.IsVariant(removed.Filename), naming.IsReserved(removed.Filename):
		return fs.ErrNotExist
	case d.Purge && a.TrashLocked:
		return errLocked
	}
	unlock, err := a.Lock(ctx, removed.Filename)
	if err != nil {
		return err
	}
	defer unlock()
	return u.removeLocked(ctx, d, removed)
}

// removeLocked is remove for a caller that holds the lock of the item. It begins again if another
// process changes the item meanwhile.
func (u *Uploader) removeLocked(ctx context.Context, d Deletion, removed *Item) error {
	for try := 1; ; try++ {
		err := u.removeFound(ctx, d, removed)
		if !isOvertaken(err) || try == transferTries || ctx.Err() != nil {
			return err
		}
	}
}

// removeFound is one attempt to remove an item, and only the one that it finds: the error is
// ErrChanged if the storage has another one then.
func (u *Uploader) removeFound(ctx context.Context, d Deletion, removed *Item) error {
	a := d.Alias
	removed.Trash = "" // of an earlier attempt
	found, err := statIfValid(ctx, a, a.Key(removed.Filename))
	switch {
	case err != nil:
		return err
	case d.Matches != nil && found.Key == "":
		return fs.ErrNotExist
	case d.Matches != nil && !d.Matches(found):
		return item.ErrOther
	}
	var variant storagedrivers.Info
	if a.MayHaveVariant(removed.Filename) {
		if variant, err = statIfValid(ctx, a, a.VariantKey(removed.Filename)); err != nil {
			return err
		}
	}
	if found.Key == "" && variant.Key == "" {
		return fs.ErrNotExist
	}
	if removed.Size = found.Size; variant.Key != "" {
		removed.WebP = removed.FullPath + render.Suffix
	}
	var removals []storagedrivers.Change
	if a.StoresRenditions(removed.Filename) {
		stored, err := a.StoredRenditions(ctx, removed.Filename)
		if err != nil {
			return err
		}
		for _, key := range stored {
			removals = append(removals, storagedrivers.Change{Key: key})
		}
	}
	// The end of the request does not stop a deletion half-way. The storage bounds each removal.
	ctx = context.WithoutCancel(ctx)
	if variant.Key != "" {
		removals = append(removals, removalOf(variant))
	}
	if found.Key == "" {
		_, err = a.Storage.Commit(ctx, removals...)
		return err
	}
	if a.Trash > 0 && !d.Purge {
		var kept storagedrivers.Change
		if kept, removed.Trash, err = keep(ctx, a, found, true, u.Now()); err != nil {
			return err
		}
		removals = append(removals, kept)
		defer closeKept(removals)
	}
	_, err = a.Storage.Commit(ctx, append(removals, removalOf(found))...)
	return err
}

// removalOf returns the change that removes an object, and no other one.
func removalOf(info storagedrivers.Info) storagedrivers.Change {
	return storagedrivers.Change{Key: info.Key, Options: storagedrivers.PutOptions{IfMatch: info.ETag}}
}

// statIfValid is [item.Stat] for a key that the storage may be unable to hold: then there is no
// object.
func statIfValid(ctx context.Context, a *item.Alias, key string) (storagedrivers.Info, error) {
	info, err := item.Stat(ctx, a.Storage, key)
	if errors.Is(err, storagedrivers.ErrInvalidKey) {
		return storagedrivers.Info{}, nil
	}
	return info, err
}
