package ingest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// rollBackTime bounds the rollback of a failed request. The rollback does not end with the caller.
const rollBackTime = 30 * time.Second

// commit commits all uploads and their variants, or none.
func (b *batch) commit(ctx context.Context) error {
	stored := false
	if b.req.Confirm != nil {
		settle, failure := b.req.Confirm(ctx, b.alias.Name, len(b.uploads))
		if failure != nil {
			return failure
		}
		if settle != nil {
			defer func() { settle(stored) }() // also after a panic
		}
	}
	err := traced(ctx, "media.place", b.committedAttributes, b.commitGroup)
	stored = err == nil
	return err
}

// commitGroup commits as one group. It locks the names that may be replaced until a rollback has
// ended, because a rollback could otherwise restore an old item over a newer one.
func (b *batch) commitGroup(ctx context.Context) error {
	for _, up := range b.uploads { // before the names are locked, because a claim may have another one
		if err := b.claim(ctx, up); err != nil {
			return up.storageFailure(err)
		}
	}
	unlock, err := b.lockNames(ctx)
	if err != nil {
		return StorageFailure(err)
	}
	defer unlock()
	group := b.alias.Storage.Group()
	defer func() {
		if err := group.Close(); err != nil {
			b.uploader.Log.Error("closing a group of items", "alias", b.alias.Name, "error", err)
		}
	}()
	err = b.commitAll(ctx, group)
	if errors.Is(err, errStored) {
		return b.resume(ctx)
	}
	if err == nil {
		err = b.reconcileAll(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollBackTime)
	defer cancel()
	if err == nil {
		b.removeStale(ctx, group)
		if err = group.Finish(ctx); err == nil {
			b.storeRenditions(ctx)
			return nil
		}
		err = StorageFailure(err)
	}
	return append(asFailures(err), b.rollBack(ctx)...)
}

// commitAll makes the content of all uploads durable, then commits one name after the other.
func (b *batch) commitAll(ctx context.Context, group storagedrivers.Group) error {
	for _, up := range b.uploads {
		if err := b.plan(ctx, up, group); err != nil {
			return up.storageFailure(err)
		}
	}
	if err := group.Prepare(ctx); err != nil {
		return StorageFailure(err)
	}
	for _, up := range b.uploads {
		err := b.withFreeName(ctx, up, func() (bool, error) { return b.commitUpload(ctx, up) })
		if err != nil {
			return up.storageFailure(err)
		}
	}
	return nil
}

// plan adds the names of an upload to the group. Under Append Time, a name that already exists gets
// the time here.
func (b *batch) plan(ctx context.Context, up *upload, group storagedrivers.Group) error {
	err := b.withFreeName(ctx, up, func() (bool, error) {
		err := group.Plan(ctx, up.staged, b.alias.Key(up.filename), b.putOptions())
		return errors.Is(err, fs.ErrExist), err
	})
	switch {
	case err != nil:
		return err
	case up.variant != nil:
		return group.Plan(ctx, up.variant, b.alias.VariantKey(up.filename), b.alias.variantOptions(storagedrivers.Info{}))
	case b.mayHaveStale(up):
		return group.PlanRemove(ctx, b.alias.VariantKey(up.filename))
	}
	return nil
}

// commitUpload commits an upload under its filename, then its variant, so that a variant never
// exists alone. It locks the name against deletions. exists reports that the name is in use.
func (b *batch) commitUpload(ctx context.Context, up *upload) (exists bool, err error) {
	unlock, err := b.alias.share(ctx, up.filename)
	if err != nil {
		return false, err
	}
	defer unlock()
	o := &object{upload: up}
	if b.alias.Overwrite {
		if err := b.ifStored(ctx, up); err != nil {
			return false, err
		}
		old, err := b.alias.existing(ctx, up.filename)
		if err != nil {
			return false, err
		}
		o.replaced = old.Key != ""
		if err := b.uncover(ctx, o, old); err != nil {
			return false, err
		}
	}
	o.info, err = up.staged.Commit(ctx, b.alias.Key(up.filename), b.putOptions())
	if err != nil {
		b.coverAgain(ctx, o)
		return errors.Is(err, fs.ErrExist), err
	}
	b.objects = append(b.objects, o)
	return false, b.commitVariant(ctx, o)
}

// storageFailure returns the failure of an upload that is not committed.
func (up *upload) storageFailure(err error) *Failure {
	failure, ok := errors.AsType[*Failure](err)
	if !ok {
		failure = StorageFailure(err)
	}
	failure.Filename = up.submitted
	return failure
}

// existing returns the Info of an item, zero if none is known to exist. Some accounts may write to
// the backend but not read; items that they cannot see count as new. The error is that of an
// unavailable storage.
func (a *Alias) existing(ctx context.Context, filename string) (storagedrivers.Info, error) {
	info, err := stat(ctx, a.Storage, a.Key(filename))
	if errors.Is(err, storagedrivers.ErrUnavailable) {
		return info, err
	}
	return info, nil
}

// rollBack undoes all commits, the last one first. It returns a failure for each that it cannot
// undo.
func (b *batch) rollBack(ctx context.Context) Failures {
	var failures Failures
	for _, o := range slices.Backward(b.objects) {
		failure := &Failure{Reason: StorageFailed, Filename: o.submitted}
		switch err := b.rollBackObject(ctx, o); {
		case errors.Is(err, errors.ErrUnsupported):
			failure.Message = "it stays replaced: the storage cannot restore the old item"
		case err != nil:
			failure.Message, failure.Err = "it may stay stored: the storage could not roll it back", err
		default:
			continue
		}
		failures = append(failures, failure)
	}
	return failures
}

// rollBackObject undoes the commits of an item and its variant. If it cannot undo both, it still
// ensures that no picture is left with the variant of another one.
func (b *batch) rollBackObject(ctx context.Context, o *object) error {
	storage := b.alias.Storage
	if o.committedVariant == nil {
		err := o.staged.Rollback(ctx)
		if errors.Is(err, errors.ErrUnsupported) && o.mayHaveVariant() {
			// The variant is that of the replaced picture.
			return errors.Join(err, b.removeVariant(ctx, o, storage.Delete))
		}
		return err
	}
	if o.uncovered {
		return errors.ErrUnsupported // it stays replaced, and keeps its own variant
	}
	err := o.variant.Rollback(ctx)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if pictureErr := o.staged.Rollback(ctx); pictureErr != nil || err == nil {
		return pictureErr
	}
	return removeOwn(ctx, storage, *o.committedVariant) // it could not be rolled back
}

// names are the locks of the items that are being committed or deleted in this process, by
// location. They outlast a reload, and storages on the same backend share them.
var names storagedrivers.NameLocks

// lockNames locks the items of the request against replacement and deletion, until unlock is
// called. Under Append Time it locks nothing, because no item is replaced; each commit then locks
// out deletions by [Alias.share].
func (b *batch) lockNames(ctx context.Context) (unlock func(), err error) {
	if !b.alias.Overwrite {
		return func() {}, nil
	}
	filenames := make([]string, len(b.uploads))
	for i, up := range b.uploads {
		filenames[i] = up.filename
	}
	return b.alias.lock(ctx, filenames...)
}

// share locks out deletions of an item under Append Time. For an Overwrite alias it does nothing,
// because the name is already locked.
func (a *Alias) share(ctx context.Context, filename string) (unlock func(), err error) {
	if a.Overwrite {
		return func() {}, nil
	}
	return names.Share(ctx, a.lockName(filename))
}

// lock locks items against commits and deletions, until unlock is called.
func (a *Alias) lock(ctx context.Context, filenames ...string) (unlock func(), err error) {
	wanted := make([]string, len(filenames))
	for i, filename := range filenames {
		wanted[i] = a.lockName(filename)
	}
	slices.Sort(wanted) // one order for all, against deadlocks
	var unlocks []func()
	unlock = func() {
		for _, one := range unlocks {
			one()
		}
	}
	for _, name := range wanted {
		one, err := names.Lock(ctx, name)
		if err != nil {
			unlock()
			return nil, err
		}
		unlocks = append(unlocks, one)
	}
	return unlock, nil
}
