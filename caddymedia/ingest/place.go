package ingest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// revertTime bounds the undoing of a request that failed, also when its caller is gone.
const revertTime = 30 * time.Second

// place gives every item and its variant their names. When one fails the ones before it
// are undone. Names that may be replaced are locked all the while, or an item could be put
// back over one that came after it.
func (b *batch) place(ctx context.Context, alias *Alias) error {
	unlock, err := b.lockNames(ctx, alias)
	if err != nil {
		return storageFailure(err)
	}
	defer unlock()
	err = b.placeAll(ctx, alias)
	if err == nil {
		err = b.settle(ctx, alias)
	}
	undone, cancel := context.WithTimeout(context.WithoutCancel(ctx), revertTime)
	defer cancel()
	if err != nil {
		return append(asFailures(err), b.revert(undone, alias)...)
	}
	b.removeStale(undone, alias)
	return nil
}

func (b *batch) placeAll(ctx context.Context, alias *Alias) error {
	for _, it := range b.items {
		if err := it.place(ctx, alias, b.now); err != nil {
			return it.storageFailed(err)
		}
	}
	return nil
}

func (it *item) storageFailed(err error) *Failure {
	failure := storageFailure(err)
	failure.Filename = it.submitted
	return failure
}

// place gives the item and its variant their name. Under Append Time a name that is taken
// gets the time, and the second is stepped forward until a name is free: the storage decides
// which one is, so that nobody's item is ever replaced.
func (it *item) place(ctx context.Context, alias *Alias, now time.Time) error {
	plain := it.filename
	for second := now.Unix(); ; second++ {
		taken, err := it.placeHere(ctx, alias)
		if !taken {
			return err
		}
		it.filename = naming.WithTime(plain, second)
	}
}

// placeHere commits the item under the name that it has by now, unless that is taken, and then
// the variant, so that it never exists alone. Nobody deletes the item in between.
func (it *item) placeHere(ctx context.Context, alias *Alias) (taken bool, err error) {
	unlock, err := alias.share(ctx, it.filename)
	if err != nil {
		return false, err
	}
	defer unlock()
	opts := storagedrivers.PutOptions{CacheControl: alias.CacheControl}
	if alias.Overwrite {
		opts.Mode = storagedrivers.Overwrite
		if it.replaces, err = alias.has(ctx, it.filename); err != nil {
			return false, err
		}
	}
	placed, err := it.staged.Commit(ctx, alias.Key(it.filename), opts)
	if err != nil {
		return errors.Is(err, fs.ErrExist) && !alias.Overwrite, err
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
			return errors.Join(err, it.removeStale(ctx, alias)) // the one of the picture that it replaced
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
