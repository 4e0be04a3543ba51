package upload

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/naming"
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
	err := aliases.Traced(ctx, "media.commit", b.committedAttributes, b.commitItems)
	stored = err == nil
	if !stored && b.req.Unclaim != nil && b.isUnclaimed() {
		b.req.Unclaim()
	}
	return err
}

// commitItems commits all items with their variants by one call. Under Append Time, an item whose
// name is taken gets another one. The storage decides which names are free, so no other item is
// ever replaced. A replacement whose item others replace meanwhile is compared again.
func (b *batch) commitItems(ctx context.Context) error {
	for try := 1; ; try++ {
		if err := b.claim(ctx); err != nil { // before the names are locked, because a claim may have another one
			return err
		}
		if isChanged, err := b.separate(ctx); err != nil {
			return err
		} else if isChanged {
			continue
		}
		err := b.commitNames(ctx)
		exists, ok := errors.AsType[*storagedrivers.ExistsError](err)
		isChanged := b.req.isConditional() && (errors.Is(err, storagedrivers.ErrChanged) || ok && b.alias.Overwrite)
		switch {
		case ok && !isChanged:
			if err := b.nextNames(ctx, exists); err != nil {
				return err
			}
		case isChanged && (try == transferTries || ctx.Err() != nil):
			return b.uploads[0].storageFailure(replacedFailure(err))
		case !isChanged && !errors.Is(err, errStored):
			return err
		}
	}
}

// commitNames commits the pending items under their current names, and takes those that an earlier
// attempt has stored. It locks all names. The error is errStored if it has found more of the latter.
func (b *batch) commitNames(ctx context.Context) error {
	unlock, err := b.lockNames(ctx)
	if err != nil {
		return aliases.StorageFailure(err)
	}
	defer unlock()
	if err := b.confirmSource(ctx); err != nil {
		return err
	}
	var objects []*object
	for _, up := range b.pending() {
		objects = append(objects, &object{upload: up})
	}
	if err := b.lookAll(ctx, objects); err != nil {
		b.coverAgain(ctx, objects)
		return err
	}
	byUpload := map[*upload]*object{}
	for _, up := range b.uploads {
		if up.stored {
			if byUpload[up], err = b.resume(ctx, up); err != nil {
				return up.storageFailure(err)
			}
		}
	}
	var infos []storagedrivers.Info
	if len(objects) > 0 {
		infos, err = b.alias.Storage.Commit(ctx, b.changes(objects)...)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCommit)
	defer cancel()
	if err != nil {
		return b.uncommitted(ctx, objects, err)
	}
	for _, o := range objects {
		o.info = infos[o.change]
		b.alias.Stored(o.filename, o.info)
		if o.variant != nil {
			o.committedVariant, o.hasVariant = &infos[o.change+1], true
		}
		byUpload[o.upload] = o
	}
	for _, up := range b.uploads {
		b.objects = append(b.objects, byUpload[up])
	}
	errs := abreast(len(objects), requests, func(i int) error {
		b.reconcile(ctx, objects[i])
		b.removeStale(ctx, objects[i])
		b.storeRenditions(ctx, objects[i])
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		b.uploader.Log.Error("after storing items", "alias", b.alias.Name, "error", err)
	}
	b.removeSource(ctx)
	return nil
}

// lookAll sets the states of the names of objects. The error is errStored if some are stored already.
func (b *batch) lookAll(ctx context.Context, objects []*object) (failed error) {
	for i, err := range abreast(len(objects), requests, func(i int) error { return b.look(ctx, objects[i]) }) {
		switch {
		case errors.Is(err, errStored):
			objects[i].stored = true
			failed = cmp.Or(failed, err)
		case err != nil:
			return objects[i].storageFailure(err)
		}
	}
	return failed
}

// requests is how many objects of a request are looked at or followed up at the same time, because the
// storage may be far away.
const requests = 8

// meets returns a failure if the item that has the plain name of an upload does not meet the
// condition of the request.
func (b *batch) meets(ctx context.Context, up *upload) error {
	if b.req.Matches == nil || up.tries > 0 {
		return nil
	}
	stored, err := aliases.Stat(ctx, b.alias.Storage, b.alias.Key(up.filename))
	if err != nil {
		return err
	}
	if failure := b.req.Mismatch(stored); failure != nil {
		return failure
	}
	return nil
}

// look sets the state of the name of an object. Under Overwrite, the error is errStored if the item is
// stored already.
func (b *batch) look(ctx context.Context, o *object) error {
	switch {
	case b.alias.Overwrite:
	case o.claim.Earlier: // it may have the name itself
		return nil
	default:
		return b.meets(ctx, o.upload)
	}
	if err := b.ifStored(ctx, o.upload); err != nil {
		return err
	}
	old, err := aliases.Stat(ctx, b.alias.Storage, b.alias.Key(o.filename))
	if b.req.isConditional() {
		if err != nil {
			return err
		}
		if failure := b.req.Mismatch(old); failure != nil {
			return failure
		}
		o.match, o.creates = old.ETag, old.Key == ""
	}
	// Some accounts may write to the backend but not read. Items that they cannot see count as new.
	if errors.Is(err, storagedrivers.ErrUnavailable) {
		return err
	}
	o.replaced = old.Key != ""
	return b.uncover(ctx, o, old)
}

// changes returns the changes that store the objects. A variant follows its image, so that it never
// exists alone.
func (b *batch) changes(objects []*object) []storagedrivers.Change {
	var changes []storagedrivers.Change
	for _, o := range objects {
		o.change = len(changes)
		opts := b.putOptions(o.upload)
		opts.IfMatch = o.match
		if o.creates {
			opts.Mode = storagedrivers.CreateOnly
		}
		changes = append(changes, storagedrivers.Change{Staged: o.staged, Key: b.alias.Key(o.filename), Options: opts})
		if o.variant != nil {
			variant := b.variantChange(o)
			variant.Follows = true
			changes = append(changes, variant)
		}
	}
	return changes
}

// uncommitted returns the error of a failed commit: an ExistsError under Append Time, ErrChanged of a
// replacement whose item is another one, or the failures of the upload at fault and of those that stay stored.
func (b *batch) uncommitted(ctx context.Context, objects []*object, err error) error {
	if _, ok := errors.AsType[*storagedrivers.ExistsError](err); ok {
		return err
	}
	failed, ok := errors.AsType[*storagedrivers.CommitError](err)
	if !ok {
		failed = &storagedrivers.CommitError{Index: -1, Err: err}
	}
	if errors.Is(err, storagedrivers.ErrChanged) && b.req.isConditional() {
		b.coverAgain(ctx, objects)
		return err
	}
	first := aliases.StorageFailure(err)
	failures := aliases.Failures{first}
	b.mayStay = len(failed.Replaced)+len(failed.Stored) > 0
	if storagedrivers.LeaseLost(ctx) {
		return failures
	}
	for _, o := range slices.Backward(objects) {
		if o.changedBy(failed.Index) || len(objects) == 1 {
			first.Filename = o.submitted
		}
		failure := &aliases.Failure{Reason: aliases.StorageFailed, Filename: o.submitted}
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
	if err := aliases.Remove(ctx, b.alias.Storage, b.alias.VariantKey(o.filename)); err != nil {
		b.uploader.Log.Error("removing the variant of an earlier image",
			"alias", b.alias.Name, "filename", o.filename, "error", err)
	}
}

// storageFailure returns the failure of an upload that is not committed.
func (up *upload) storageFailure(err error) *aliases.Failure {
	failure, ok := errors.AsType[*aliases.Failure](err)
	if !ok {
		failure = aliases.StorageFailure(err)
	}
	failure.Filename = up.submitted
	return failure
}

// lockNames locks the items of the request against deletion, and under Overwrite against
// replacement, until unlock is called. It locks a moved item against both.
func (b *batch) lockNames(ctx context.Context) (unlock func(), err error) {
	filenames := make([]string, len(b.uploads))
	for i, up := range b.uploads {
		filenames[i] = up.filename
	}
	if t := b.req.Transfer; t != nil && !t.Copy {
		return t.Alias.LockMove(ctx, t.Filename, b.alias, filenames...)
	}
	if !b.alias.Overwrite {
		return b.alias.Share(ctx, filenames...)
	}
	return b.alias.Lock(ctx, filenames...)
}

// Bounds of Append Time. An item whose name exists gets the time in its name, in whole seconds.
// After secondTries it also gets a random suffix, and after allTries it is refused.
const (
	secondTries = 128
	allTries    = 132

	maxSeconds = 10_000
)

// seconds remembers the last second added to each name, so that the next item need not try all
// seconds before it. It is only a hint: the storage decides whether a name is free. The zero value
// is usable.
type seconds struct {
	mu   sync.Mutex
	last *simplelru.LRU[string, int64]
}

// next returns a second, not before now, that it has not returned for the name before.
func (s *seconds) next(name string, now int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last, _ = simplelru.NewLRU[string, int64](maxSeconds, nil) // fails for a size of 0 only
	}
	if last, ok := s.last.Get(name); ok && last >= now {
		now = last + 1
	}
	s.last.Add(name, now)
	return now
}

// nextNames adds the time to the filenames of the uploads whose changes have taken keys. One that an
// earlier attempt has stored keeps its name.
func (b *batch) nextNames(ctx context.Context, exists *storagedrivers.ExistsError) error {
	change := 0
	for _, up := range b.pending() {
		if slices.Contains(exists.Taken, change) {
			if err := b.nextName(ctx, up, exists); err != nil {
				return err
			}
		}
		if change++; up.variant != nil {
			change++
		}
	}
	return nil
}

func (b *batch) nextName(ctx context.Context, up *upload, exists error) error {
	switch err := b.ifStored(ctx, up); {
	case errors.Is(err, errStored):
		up.stored = true
		return nil
	case err != nil:
		return up.storageFailure(err)
	}
	if err := b.meets(ctx, up); err != nil {
		return up.storageFailure(err)
	}
	return b.anotherName(ctx, up, exists)
}

// anotherName adds the time to the filename of an upload. cause is the error of the name, if there is
// one.
func (b *batch) anotherName(ctx context.Context, up *upload, cause error) error {
	if up.tries++; up.tries > allTries {
		failure := aliases.Failf(aliases.Conflict, "no free name was found: send the file again or rename it")
		failure.Filename, failure.Err = up.submitted, cause
		return failure
	}
	if ctx.Err() != nil {
		return up.storageFailure(context.Cause(ctx))
	}
	if up.tries == 1 {
		up.plain = up.filename
	}
	second := b.uploader.seconds.next(b.alias.LockName(up.plain), b.now.Unix())
	up.filename = naming.WithTime(up.plain, second)
	if up.tries > secondTries {
		up.filename = naming.WithSuffix(up.filename, strings.ToLower(rand.Text()[:aliases.SuffixLength]))
	}
	return nil
}
