package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caddymedia/media/internal/locks"
	"github.com/caddymedia/media/storagedrivers"
)

// afterCommit bounds what follows a commit, and does not end with the caller: variants of replaced
// images, and eager renditions.
const afterCommit = 30 * time.Second

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
	err := traced(ctx, "media.commit", b.committedAttributes, b.commitItems)
	stored = err == nil
	return err
}

// commitItems commits all items with their variants by one call. Under Append Time, an item whose
// name is taken gets another one. The storage decides which names are free, so no other item is ever
// replaced.
func (b *batch) commitItems(ctx context.Context) error {
	for {
		for _, up := range b.uploads { // before the names are locked, because a claim may have another one
			if err := b.claim(ctx, up); err != nil {
				return up.storageFailure(err)
			}
		}
		err := b.commitNames(ctx)
		exists, ok := errors.AsType[*storagedrivers.ExistsError](err)
		if ok {
			err = b.nextNames(ctx, exists)
		}
		if errors.Is(err, errStored) {
			return b.resume(ctx)
		}
		if !ok || err != nil {
			return err
		}
	}
}

// commitNames commits all items under their current names, which it locks.
func (b *batch) commitNames(ctx context.Context) error {
	unlock, err := b.lockNames(ctx)
	if err != nil {
		return StorageFailure(err)
	}
	defer unlock()
	objects := make([]*object, len(b.uploads))
	for i, up := range b.uploads {
		if objects[i], err = b.object(ctx, up); err != nil {
			b.coverAgain(ctx, objects[:i+1])
			if errors.Is(err, errStored) {
				return err
			}
			return up.storageFailure(err)
		}
	}
	changes := b.changes(objects)
	infos, err := b.alias.Storage.Commit(ctx, changes...)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCommit)
	defer cancel()
	if err != nil {
		return b.uncommitted(ctx, objects, err)
	}
	for _, o := range objects {
		o.info = infos[o.change]
		if o.variant != nil {
			o.committedVariant, o.hasVariant = &infos[o.change+1], true
		}
	}
	b.objects = objects
	b.reconcileAll(ctx)
	b.removeStale(ctx)
	b.storeRenditions(ctx)
	return nil
}

// object returns an upload with the state of its name. Under Overwrite, the error is errStored if the
// item is stored already.
func (b *batch) object(ctx context.Context, up *upload) (*object, error) {
	o := &object{upload: up}
	if !b.alias.Overwrite {
		return o, nil
	}
	if err := b.ifStored(ctx, up); err != nil {
		return o, err
	}
	old, err := b.alias.existing(ctx, up.filename)
	if err != nil {
		return o, err
	}
	o.replaced = old.Key != ""
	return o, b.uncover(ctx, o, old)
}

// changes returns the changes that store the objects. A variant follows its image, so that it never
// exists alone.
func (b *batch) changes(objects []*object) []storagedrivers.Change {
	var changes []storagedrivers.Change
	for _, o := range objects {
		o.change = len(changes)
		changes = append(changes, storagedrivers.Change{
			Staged: o.staged, Key: b.alias.Key(o.filename), Options: b.putOptions(),
		})
		if o.variant != nil {
			changes = append(changes, b.variantChange(o))
		}
	}
	return changes
}

// uncommitted returns the error of a failed commit: an ExistsError under Append Time, or the failures
// of the upload at fault and of those that stay stored.
func (b *batch) uncommitted(ctx context.Context, objects []*object, err error) error {
	if _, ok := errors.AsType[*storagedrivers.ExistsError](err); ok {
		return err
	}
	failed, ok := errors.AsType[*storagedrivers.CommitError](err)
	if !ok {
		failed = &storagedrivers.CommitError{Index: -1, Err: err}
	}
	first := StorageFailure(err)
	failures := Failures{first}
	for _, o := range slices.Backward(objects) {
		if o.changedBy(failed.Index) || len(objects) == 1 {
			first.Filename = o.submitted
		}
		failure := &Failure{Reason: StorageFailed, Filename: o.submitted}
		switch {
		case slices.Contains(failed.Replaced, o.change):
			failure.Message = "it stays replaced: the storage cannot restore the old item"
			b.removeOldVariant(ctx, o, failed)
		case slices.ContainsFunc(failed.Stored, o.changedBy):
			failure.Message, failure.Err = "it may stay stored: the storage could not roll it back", failed.Undo
		default:
			continue
		}
		failures = append(failures, failure)
	}
	b.coverAgain(ctx, objects)
	return failures
}

// changedBy reports whether the change of an index is one of the object or of its variant.
func (o *object) changedBy(index int) bool {
	return index == o.change || o.variant != nil && index == o.change+1
}

// removeOldVariant removes the variant of an image that was replaced by a failed commit, unless the
// variant was replaced too.
func (b *batch) removeOldVariant(ctx context.Context, o *object, failed *storagedrivers.CommitError) {
	if !o.mayHaveVariant() || o.variant != nil && slices.Contains(failed.Replaced, o.change+1) {
		return
	}
	if err := remove(ctx, b.alias.Storage, b.alias.VariantKey(o.filename)); err != nil {
		b.uploader.Log.Error("removing the variant of an earlier picture",
			"alias", b.alias.Name, "filename", o.filename, "error", err)
	}
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

// names are the locks of the items that are being committed or deleted in this process, by
// location. They outlast a reload, and storages on the same backend share them.
var names locks.Names

// lockNames locks the items of the request against deletion, and under Overwrite against replacement,
// until unlock is called.
func (b *batch) lockNames(ctx context.Context) (unlock func(), err error) {
	filenames := make([]string, len(b.uploads))
	for i, up := range b.uploads {
		filenames[i] = up.filename
	}
	if !b.alias.Overwrite {
		return b.alias.lockBy(ctx, names.Share, filenames)
	}
	return b.alias.lock(ctx, filenames...)
}

// lock locks items against commits and deletions, until unlock is called.
func (a *Alias) lock(ctx context.Context, filenames ...string) (unlock func(), err error) {
	return a.lockBy(ctx, names.Lock, filenames)
}

// lockBy locks items by a method of names.
func (a *Alias) lockBy(
	ctx context.Context, take func(context.Context, string) (func(), error), filenames []string,
) (unlock func(), err error) {
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
	for _, name := range slices.Compact(wanted) {
		one, err := take(ctx, name)
		if err != nil {
			unlock()
			return nil, err
		}
		unlocks = append(unlocks, one)
	}
	return unlock, nil
}
