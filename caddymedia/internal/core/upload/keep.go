package upload

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// errUnkeepable is the failure of an item that was stored before its alias had a trash.
var errUnkeepable = item.Failf(item.Conflict, "the name of the item is too long for the trash: purge the item")

// errLocked is the failure of a request to remove for good what a locked trash has to keep.
var errLocked = item.Failf(item.Conflict, "the trash is locked: nothing is removed from it, or beside it, before its time")

// mayKeep returns an error if an alias with trash cannot keep a generation that is replaced, or
// with goes removed; or must, and purge says otherwise.
func mayKeep(a *item.Alias, old storagedrivers.Info, goes, purge bool) error {
	switch {
	case purge && a.TrashLocked:
		return errLocked
	case a.Trash == 0, purge:
		return nil
	case storagedrivers.ValidKey(a.TrashKey(a.NewKept(old, time.Time{}))) != nil:
		return errUnkeepable
	case !a.Storage.CanKeep(old.Size, goes):
		return storagedrivers.ErrUnkept
	}
	return nil
}

// keep stages an item of an alias that is about to be replaced, or with goes removed. It returns
// the change that keeps it in the trash, whose Staged the caller must close, and the ID of the
// entry.
func keep(ctx context.Context, a *item.Alias, old storagedrivers.Info, goes bool, now time.Time) (change storagedrivers.Change, id string, err error) {
	if err := mayKeep(a, old, goes, false); err != nil {
		return change, "", err
	}
	kept := a.NewKept(old, now)
	change = storagedrivers.Change{
		Key: a.TrashKey(kept), Options: storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly, CacheControl: "no-store"}, Keeps: true,
	}
	change.Staged, err = a.Storage.StageKept(ctx, old)
	return change, kept.ID(), err
}

// isOvertaken reports whether a commit has failed because another process has changed the item
// since it was looked at, or has taken the key in the trash. Then the item is looked at again.
func isOvertaken(err error) bool {
	return errors.Is(err, storagedrivers.ErrChanged) || errors.Is(err, fs.ErrExist)
}

// closeKept closes what changes keep.
func closeKept(changes []storagedrivers.Change) {
	for _, change := range changes {
		if change.Keeps {
			_ = change.Staged.Close() // it was only read
		}
	}
}

// Purge removes an entry from the trash of an alias on request of an actor, unless it is locked.
// The error is fs.ErrNotExist if there is none.
func (u *Uploader) Purge(ctx context.Context, alias *item.Alias, kept item.Kept, actor item.Actor) error {
	trash, id := alias.InTrash(kept)
	info, err := item.Stat(ctx, alias.Storage, trash.Key(id))
	switch {
	case err == nil && info.Key == "":
		err = fs.ErrNotExist
	case err == nil && alias.IsLocked(kept, u.Now()):
		err = errLocked
	case err == nil:
		err = item.Remove(ctx, alias.Storage, info.Key)
	}
	purged := Item{Filename: kept.Filename, Size: info.Size, Trash: id}
	u.Observer.Changed(ctx, Change{Action: Purged, Alias: alias, Item: purged, Actor: actor, Err: err})
	return err
}
