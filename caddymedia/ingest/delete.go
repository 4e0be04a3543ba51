package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Delete removes an item of the alias and, for a picture, its variant. The variant goes
// first, so that it never stays alone; one that was left alone is removed when its picture
// is asked for. Delete waits for uploads of the name in this process.
//
// What is no name, names a variant or does not exist is fs.ErrNotExist. All other errors
// are those of the storage, or of ctx while it waits; then the item is still there, without
// its variant perhaps, and can be deleted again.
func (u *Uploader) Delete(ctx context.Context, alias *Alias, filename string, actor Actor) error {
	item := Item{FullPath: alias.URL("", filename), Filename: filename}
	err := alias.delete(ctx, &item)
	if err != nil {
		err = fmt.Errorf("deleting %q of the alias %s: %w", filename, alias.Name, err)
	}
	u.Observer.Changed(ctx, Change{Action: Deleted, Alias: alias, Item: item, Actor: actor, Err: err})
	return err
}

// delete removes an item, and fills in what is found of it.
func (a *Alias) delete(ctx context.Context, item *Item) error {
	if a.IsVariant(item.Filename) {
		return fs.ErrNotExist
	}
	unlock, err := a.lock(ctx, item.Filename)
	if err != nil {
		return err
	}
	defer unlock()
	var found []string
	for _, key := range a.keys(item.Filename) {
		info, err := stat(ctx, a.Storage, key)
		switch {
		case errors.Is(err, storagedrivers.ErrInvalidKey), err == nil && info.Key == "":
			continue // it is not there, or cannot be
		case err != nil:
			return err
		case key == a.Key(item.Filename):
			item.Size = info.Size
		default:
			item.WebP = item.FullPath + variant.Suffix
		}
		found = append(found, key)
	}
	if found == nil {
		return fs.ErrNotExist
	}
	// Not stopped half-way by a caller who leaves; the storage bounds each of the two.
	return a.removeAll(context.WithoutCancel(ctx), found)
}

// removeAll removes objects as one group: a crash leaves all of them or none where the storage can
// do that.
func (a *Alias) removeAll(ctx context.Context, keys []string) (err error) {
	group := a.Storage.Group()
	defer func() { err = errors.Join(err, group.Close()) }()
	for _, key := range keys {
		if err := group.PlanRemove(ctx, key); err != nil {
			return err
		}
	}
	if err := group.Prepare(ctx); err != nil {
		return err
	}
	for _, key := range keys {
		if err := group.Remove(ctx, key); err != nil {
			return err
		}
	}
	return group.Finish(ctx)
}

// IsVariant tells whether filename (relative to the alias) is where the variant of a picture
// lies. That is no item of its own.
func (a *Alias) IsVariant(filename string) bool {
	picture, ok := strings.CutSuffix(filename, variant.Suffix)
	return ok && a.Kind == Image && a.Extensions[naming.Extension(picture)]
}

// keys are where the parts of an item are, in the order in which they may go.
func (a *Alias) keys(filename string) []string {
	if a.Kind == Image {
		return []string{a.VariantKey(filename), a.Key(filename)}
	}
	return []string{a.Key(filename)}
}
