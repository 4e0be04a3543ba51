package ingest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// revertTime bounds the undoing of a request that failed, also when its caller is gone.
const revertTime = 30 * time.Second

// place commits every item and its variant as one group. When a commit fails the ones before it
// are rolled back. Names that may be replaced are locked all the while, or an item could be put
// back over one that came after it.
func (b *batch) place(ctx context.Context, alias *Alias) error {
	unlock, err := b.lockNames(ctx, alias)
	if err != nil {
		return storageFailure(err)
	}
	defer unlock()
	group := alias.Storage.Group()
	defer func() {
		if err := group.Close(); err != nil {
			b.uploader.Log.Error("closing a group of items", "alias", alias.Name, "error", err)
		}
	}()
	err = b.placeAll(ctx, alias, group)
	if err == nil {
		err = b.settle(ctx, alias)
	}
	undone, cancel := context.WithTimeout(context.WithoutCancel(ctx), revertTime)
	defer cancel()
	if err == nil {
		err = b.finish(undone, alias, group)
	}
	if err != nil {
		return append(asFailures(err), b.revert(undone, alias)...)
	}
	return nil
}

// placeAll makes the bytes of all items durable, then commits one name after the other.
func (b *batch) placeAll(ctx context.Context, alias *Alias, group storagedrivers.Group) error {
	for _, it := range b.items {
		if err := it.plan(ctx, b, alias, group); err != nil {
			return it.storageFailed(err)
		}
	}
	if err := group.Prepare(ctx); err != nil {
		return storageFailure(err)
	}
	for _, it := range b.items {
		if err := it.place(ctx, b, alias); err != nil {
			return it.storageFailed(err)
		}
	}
	return nil
}

// finish removes stale variants and makes all names durable.
func (b *batch) finish(ctx context.Context, alias *Alias, group storagedrivers.Group) error {
	b.removeStale(ctx, alias, group)
	if err := group.Finish(ctx); err != nil {
		return storageFailure(err)
	}
	return nil
}

func (it *item) storageFailed(err error) *Failure {
	failure, ok := errors.AsType[*Failure](err)
	if !ok {
		failure = storageFailure(err)
	}
	failure.Filename = it.submitted
	return failure
}

// plan adds the names of the item to the group. A name that is seen to be taken gets the time
// already here.
func (it *item) plan(ctx context.Context, b *batch, alias *Alias, group storagedrivers.Group) error {
	err := it.firstFree(ctx, alias, b.uploader, b.now, func() (bool, error) {
		err := group.Plan(ctx, it.staged, alias.Key(it.filename), alias.putOptions())
		return errors.Is(err, fs.ErrExist), err
	})
	switch {
	case err != nil:
		return err
	case it.variant != nil:
		return group.Plan(ctx, it.variant, alias.VariantKey(it.filename), alias.variantOptions())
	case it.mayHaveStale(alias):
		return group.PlanRemove(ctx, alias.VariantKey(it.filename))
	}
	return nil
}

// putOptions are those of an item.
func (a *Alias) putOptions() storagedrivers.PutOptions {
	opts := storagedrivers.PutOptions{CacheControl: a.CacheControl}
	if a.Overwrite {
		opts.Mode = storagedrivers.Overwrite
	}
	return opts
}

// variantOptions are those of a variant. An object at its name belongs to no picture any more.
func (a *Alias) variantOptions() storagedrivers.PutOptions {
	return storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, CacheControl: a.CacheControl}
}

// place commits the item and its variant. Under Append Time a name that is taken gets the time: the
// storage decides which name is free, so that no other item is ever replaced.
func (it *item) place(ctx context.Context, b *batch, alias *Alias) error {
	return it.firstFree(ctx, alias, b.uploader, b.now, func() (bool, error) { return it.placeHere(ctx, alias) })
}

// placeHere commits the item under the name that it has by now, unless that is taken, and then
// the variant, so that it never exists alone. No deletion comes in between.
func (it *item) placeHere(ctx context.Context, alias *Alias) (taken bool, err error) {
	unlock, err := alias.share(ctx, it.filename)
	if err != nil {
		return false, err
	}
	defer unlock()
	if alias.Overwrite {
		if it.replaces, err = alias.has(ctx, it.filename); err != nil {
			return false, err
		}
	}
	placed, err := it.staged.Commit(ctx, alias.Key(it.filename), alias.putOptions())
	if err != nil {
		return errors.Is(err, fs.ErrExist), err
	}
	it.placed = placed
	return false, it.placeVariant(ctx, alias)
}

// has tells whether an item is known to be there. An account that may write and not look can
// still store: what it cannot see counts as new. The error is that of a storage that is away.
func (a *Alias) has(ctx context.Context, filename string) (bool, error) {
	info, err := stat(ctx, a.Storage, a.Key(filename))
	if errors.Is(err, storagedrivers.ErrUnavailable) {
		return false, err
	}
	return err == nil && info.Key != "", nil
}

func (it *item) action() Action {
	if it.replaces {
		return Replaced
	}
	return Stored
}

// revert undoes what was placed, the last first. What cannot be put back is named.
func (b *batch) revert(ctx context.Context, alias *Alias) Failures {
	var failures Failures
	for _, it := range slices.Backward(b.items) {
		if it.placed.Key == "" {
			continue
		}
		switch err := it.revert(ctx, alias); {
		case errors.Is(err, errors.ErrUnsupported):
			failures = append(failures, &Failure{
				Reason: StorageFailed, Filename: it.submitted,
				Message: "it stays replaced: the storage cannot put the old item back",
			})
		case err != nil:
			failures = append(failures, &Failure{
				Reason: StorageFailed, Filename: it.submitted, Err: err,
				Message: "it may stay stored: the storage did not take it back",
			})
		}
	}
	return failures
}

// revert undoes the item and its variant. Whatever cannot be undone, no picture is left
// beside the variant of another one.
func (it *item) revert(ctx context.Context, alias *Alias) error {
	if it.variantPlaced.Key == "" {
		err := it.staged.Revert(ctx)
		if errors.Is(err, errors.ErrUnsupported) && it.isRaster() {
			// That of the picture that it replaced.
			return errors.Join(err, it.removeStale(ctx, alias, alias.Storage.Delete))
		}
		return err
	}
	switch err := it.variant.Revert(ctx); {
	case errors.Is(err, errors.ErrUnsupported): // it stays, and goes only if the picture does
		if err := it.staged.Revert(ctx); err != nil {
			return err
		}
		return removeOwn(ctx, alias.Storage, it.variantPlaced)
	case err != nil:
		return err
	}
	return it.staged.Revert(ctx)
}
