package upload

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// afterCommit bounds what follows a commit, and does not end with the caller: variants of replaced
// images, and eager renditions.
const afterCommit = 30 * time.Second

// commit commits all uploads and their variants, or none.
func (b *batch) commit(ctx context.Context) error {
	outcome := MaybeStored
	if b.req.Confirm != nil {
		settle, failure := b.req.Confirm(ctx, Commitment{Alias: b.alias.Name, Items: len(b.uploads), Digest: b.digest})
		if failure != nil {
			return failure
		}
		if settle != nil {
			defer func() { settle(outcome) }() // also after a panic
		}
	}
	err := item.Traced(ctx, "media.commit", b.committedAttributes, b.commitItems)
	switch {
	case err == nil:
		outcome = AllStored
	case !b.mayStay && !b.isRepeated() && !b.alias.Storage.Features().Repeat: // such a backend may store an item late
		outcome = NothingStored
	}
	return err
}

// commitItems commits all items with their variants by one call. Under Append Time, an item whose
// name is taken gets another one. The storage decides which names are free, so no other item is
// ever replaced. A replacement whose item others replace meanwhile is compared again.
func (b *batch) commitItems(ctx context.Context) error {
	if b.isRepeated() {
		if err := b.findOwn(ctx); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		err := b.commitNames(ctx)
		exists, isTaken := errors.AsType[*storagedrivers.ExistsError](err)
		switch {
		case err == nil:
			return nil
		case isTaken && b.exact != "" && !b.alias.Overwrite:
			if err := b.findSame(ctx); err != nil {
				return err
			}
			if up := b.uploads[0]; up.own.Key == "" && (try == transferTries || ctx.Err() != nil) {
				return up.storageFailure(replacedFailure(exists))
			}
		case isTaken && !b.alias.Overwrite:
			if err := b.sameOrNext(ctx, exists); err != nil {
				return err
			}
		case !b.isExact() || !isOvertaken(err):
			return err
		case try == transferTries || ctx.Err() != nil:
			return b.uploads[0].storageFailure(replacedFailure(err))
		}
	}
}

// sameOrNext gives the uploads whose names are taken other ones, unless the item of the first name
// is that of the request because it has the same bytes.
func (b *batch) sameOrNext(ctx context.Context, exists *storagedrivers.ExistsError) error {
	if b.same && b.uploads[0].tries == 0 {
		err := b.findSame(ctx)
		if b.uploads[0].own.Key != "" || err != nil && asFailure(err).Reason != item.Conflict {
			return err
		}
	}
	return b.nextNames(ctx, exists)
}

// findSame takes the item that has the exact name of the request for its own if that has the same
// bytes.
func (b *batch) findSame(ctx context.Context) error {
	up := b.uploads[0]
	info, err := item.Stat(ctx, b.alias.Storage, b.alias.Key(up.filename))
	if err == nil && info.Key == "" {
		return nil // it was deleted meanwhile
	}
	same := false
	if err == nil {
		same, err = b.sameBytes(ctx, up, info)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // so it was while it was read
	}
	if err != nil {
		return up.storageFailure(err)
	}
	if !same {
		return up.storageFailure(item.Failf(item.Conflict, "another item has this name, and the items of this alias are never replaced"))
	}
	up.own = info
	return nil
}

// commitNames commits the items under their current names, which it locks, but for those that an
// earlier attempt has stored. The error is an ExistsError under Append Time if names are taken, and
// ErrChanged if the item of a condition is another one. A variant follows its image, so that it
// never exists alone.
func (b *batch) commitNames(ctx context.Context) error {
	unlock, err := b.lockNames(ctx)
	if err != nil {
		return item.StorageFailure(err)
	}
	defer unlock()
	if b.confirm != nil {
		if err := b.confirm(ctx); err != nil {
			return err
		}
	}
	pending, err := b.look(ctx)
	if err == nil && storagedrivers.LeaseLost(ctx) {
		err = item.Failf(item.Busy, "another attempt at the request is under way, try again later")
	}
	if err != nil {
		b.coverAgain(ctx, pending)
		return err
	}
	changes, err := b.changes(ctx, pending)
	defer closeKept(changes)
	if err != nil {
		b.coverAgain(ctx, pending)
		return err
	}
	var infos []storagedrivers.Info
	if len(changes) > 0 {
		infos, err = b.alias.Storage.Commit(ctx, changes...)
	}
	if _, isTaken := errors.AsType[*storagedrivers.ExistsError](err); isTaken {
		b.coverAgain(ctx, pending)
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCommit)
	defer cancel()
	if err != nil {
		return b.uncommitted(ctx, pending, err)
	}
	for _, o := range pending {
		o.info = infos[o.change]
		if o.variant != nil {
			o.committedVariant, o.hasVariant = &infos[o.change+1], true
		}
		b.alias.Stored(o.filename, o.info)
	}
	return b.follow(ctx)
}

// changes returns the changes that store objects, each after the one that keeps the item that it
// replaces, and before that of its variant. The caller must call closeKept.
func (b *batch) changes(ctx context.Context, pending []*object) (changes []storagedrivers.Change, err error) {
	for _, o := range pending {
		if o.trash = ""; o.old.Key != "" {
			var kept storagedrivers.Change
			kept, o.trash, err = keep(ctx, b.alias, o.old, false, b.uploader.Now())
			if err != nil {
				return changes, o.storageFailure(err)
			}
			changes = append(changes, kept)
		}
		o.change = len(changes)
		changes = append(changes, storagedrivers.Change{Staged: o.staged, Key: b.alias.Key(o.filename), Options: o.options})
		if o.variant != nil {
			variant := b.variantChange(o)
			variant.Follows = true
			changes = append(changes, variant)
		}
	}
	return changes, nil
}

// isExact reports whether the request replaces exactly the items that it finds: because it has a
// condition, or keeps them.
func (b *batch) isExact() bool { return b.condition != nil || b.keeps(b.alias) }

// keeps reports whether the items of an alias that the request replaces are kept.
func (b *batch) keeps(a *item.Alias) bool { return a.Trash > 0 && a.Overwrite && !b.req.Purge }

// requests is how many objects of a request are looked at or followed up at the same time, because
// the storage may be far away.
const requests = 8

// look sets the objects of the request. It returns those that are to be stored, with the states of
// their names. An item that an earlier attempt has stored meets any condition: that has compared
// it.
func (b *batch) look(ctx context.Context) (pending []*object, failed error) {
	b.objects = nil
	for _, up := range b.uploads {
		o := &object{received: up, options: b.putOptions(b.alias, up, up.filename), info: up.own}
		b.objects = append(b.objects, o)
		if up.own.Key == "" {
			pending = append(pending, o)
		}
	}
	for i, err := range guard.Each(len(pending), requests, func(i int) error {
		o := pending[i]
		if !b.alias.Overwrite {
			return b.meets(ctx, o.received)
		}
		old, err := item.Stat(ctx, b.alias.Storage, b.alias.Key(o.filename))
		if b.isExact() {
			if err == nil {
				err = b.replaces(ctx, o, old)
			}
			if err != nil || o.own.Key != "" {
				return err
			}
		}
		// Some accounts may write to the backend but not read. Items that they cannot see count as new.
		if errors.Is(err, storagedrivers.ErrUnavailable) {
			return err
		}
		o.replaced = old.Key != ""
		return b.uncover(ctx, o, old)
	}) {
		if err != nil {
			return pending, pending[i].storageFailure(err)
		}
	}
	return slices.DeleteFunc(pending, func(o *object) bool { return o.own.Key != "" }), nil
}

// replaces has an object replace exactly the item that has its name; the zero Info if there is
// none. It returns the failure if that does not meet the condition of the request.
func (b *batch) replaces(ctx context.Context, o *object, there storagedrivers.Info) error {
	if b.same && there.Key != "" {
		same, err := b.sameBytes(ctx, o.received, there)
		if errors.Is(err, fs.ErrNotExist) {
			return storagedrivers.ErrChanged
		}
		if err != nil {
			return err
		}
		if same {
			o.own, o.info = there, there
			return nil
		}
	}
	if b.condition != nil {
		if failure := b.condition(there); failure != nil {
			return failure
		}
	}
	if o.options.IfMatch = there.ETag; there.Key == "" {
		o.options.Mode = storagedrivers.CreateOnly
	}
	if b.keeps(b.alias) {
		o.old = there
	}
	return nil
}

// putOptions returns the options of an item under a filename.
func (b *batch) putOptions(alias *item.Alias, up *received, filename string) storagedrivers.PutOptions {
	opts := alias.PutOptions(filename)
	opts.ID = b.itemID(up)
	return opts
}

// itemID returns the ID of an item, which is the same for all attempts.
func (b *batch) itemID(up *received) string {
	return fmt.Sprint(b.id, "i", slices.Index(b.uploads, up))
}

// meets returns a failure if the item that has the plain name of an upload does not meet the
// condition of the request.
func (b *batch) meets(ctx context.Context, up *received) error {
	if b.condition == nil || up.tries > 0 {
		return nil
	}
	stored, err := item.Stat(ctx, b.alias.Storage, b.alias.Key(up.filename))
	if err != nil {
		return err
	}
	if failure := b.condition(stored); failure != nil {
		return failure
	}
	return nil
}

// follow completes committed items while they are locked.
func (b *batch) follow(ctx context.Context) error {
	errs := guard.Each(len(b.objects), requests, func(i int) error {
		o := b.objects[i]
		switch {
		case o.overtaken:
			return nil
		case o.own.Key != "":
			if err := b.storeVariant(ctx, o); err != nil {
				return o.storageFailure(err)
			}
		}
		b.reconcile(ctx, o)
		b.removeStale(ctx, o)
		b.storeRenditions(ctx, o)
		return nil
	})
	for _, err := range errs {
		if failure, ok := errors.AsType[*item.Failure](err); ok {
			return failure // the next attempt stores the variant
		}
	}
	if err := errors.Join(errs...); err != nil {
		b.uploader.Log.Error("after storing items", "alias", b.alias.Name, "error", err)
	}
	if b.committed != nil {
		b.committed(ctx)
	}
	return nil
}

// uncommitted returns the error of a failed commit: ErrChanged if the item of a condition is
// another one, or the failures of the upload at fault and of those that stay stored.
func (b *batch) uncommitted(ctx context.Context, objects []*object, err error) error {
	failed, ok := errors.AsType[*storagedrivers.CommitError](err)
	if !ok {
		failed = &storagedrivers.CommitError{Index: -1, Err: err}
	}
	b.mayStay = len(failed.Replaced)+len(failed.Stored) > 0 || storagedrivers.LeaseLost(ctx) || errors.Is(err, storagedrivers.ErrPanic)
	if errors.Is(err, storagedrivers.ErrChanged) && b.isExact() && len(failed.Replaced)+len(failed.Stored) == 0 {
		b.coverAgain(ctx, objects)
		return err
	}
	first := item.StorageFailure(err)
	failures := item.Failures{first}
	if storagedrivers.LeaseLost(ctx) {
		return failures
	}
	for _, o := range slices.Backward(objects) {
		if o.changedBy(failed.Index) || len(objects) == 1 {
			first.Filename = o.submitted
		}
		failure := &item.Failure{Reason: item.StorageFailed, Filename: o.submitted}
		switch {
		case slices.Contains(failed.Replaced, o.change):
			failure.Message = "it stays replaced: the storage cannot restore the old item"
			if o.trash != "" {
				failure.Message = "it stays replaced, and the old item is in the trash"
			}
			b.removeOldVariant(ctx, o, failed)
		case slices.ContainsFunc(failed.Stored, func(index int) bool { return index != o.change-1 && o.changedBy(index) }):
			failure.Message, failure.Err = "it may stay stored: the storage could not roll it back", failed.Undo
		default:
			continue
		}
		failures = append(failures, failure)
	}
	b.coverAgain(ctx, objects)
	return failures
}

// changedBy reports whether the change of an index is one of the object, of its variant, or of the
// item that it replaces.
func (o *object) changedBy(index int) bool {
	return index == o.change || o.variant != nil && index == o.change+1 || o.trash != "" && index == o.change-1
}

// removeOldVariant removes the variant of an image that was replaced by a failed commit, unless the
// variant was replaced too.
func (b *batch) removeOldVariant(ctx context.Context, o *object, failed *storagedrivers.CommitError) {
	if !o.mayHaveVariant() || o.variant != nil && slices.Contains(failed.Replaced, o.change+1) {
		return
	}
	if err := item.Remove(ctx, b.alias.Storage, b.alias.VariantKey(o.filename)); err != nil {
		b.uploader.Log.Error("removing the variant of an earlier image",
			"alias", b.alias.Name, "filename", o.filename, "error", err)
	}
}

// storageFailure returns the failure of an upload that is not committed.
func (up *received) storageFailure(err error) *item.Failure {
	failure := *item.StorageFailure(err) // a copy: others may have the failure too
	failure.Filename = up.submitted
	return &failure
}

// lockNames locks the items of the request against deletion, and under Overwrite against
// replacement, until unlock is called.
func (b *batch) lockNames(ctx context.Context) (unlock func(), err error) {
	filenames := make([]string, len(b.uploads))
	for i, up := range b.uploads {
		filenames[i] = up.filename
	}
	switch {
	case b.lock != nil:
		return b.lock(ctx, filenames)
	case b.alias.Overwrite:
		return b.alias.Lock(ctx, filenames...)
	}
	return b.alias.Share(ctx, filenames...)
}

// Bounds of Append Time. An item whose name exists gets the time in its name, in whole seconds.
// After secondTries it also gets a suffix, and after suffixTries more it is refused. A repeatable
// request has few names, because each of its attempts tries all of them.
const (
	secondTries     = 128
	repeatableTries = 4
	suffixTries     = 4

	maxSeconds = 10_000
)

// secondTries returns the most tries of names with the time. Several uploads of a request may have
// one plain name.
func (b *batch) secondTries(up *received) int {
	tries := secondTries
	if b.req.Repetition != nil {
		tries = repeatableTries
	}
	for _, other := range b.uploads {
		if other != up && other.plain == up.plain {
			tries++
		}
	}
	return tries
}

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

// nextNames adds the time to the filenames of the uploads whose changes have taken keys. No two
// uploads get the same one.
func (b *batch) nextNames(ctx context.Context, exists *storagedrivers.ExistsError) error {
	named := map[string]bool{}
	for _, up := range b.uploads {
		named[b.alias.LockName(up.filename)] = true
	}
	for _, o := range b.objects {
		if o.own.Key != "" || !slices.Contains(exists.Taken, o.change) {
			continue
		}
		if err := b.meets(ctx, o.received); err != nil {
			return o.storageFailure(err)
		}
		if ctx.Err() != nil {
			return o.storageFailure(context.Cause(ctx))
		}
		for named[b.alias.LockName(o.filename)] {
			if !b.rename(o.received) {
				failure := item.Failf(item.Conflict, "no free name was found: send the file again or rename it")
				failure.Filename, failure.Err = o.submitted, exists
				return failure
			}
		}
		named[b.alias.LockName(o.filename)] = true
	}
	return nil
}

// rename sets the next filename of an upload. It returns false after the last one. All attempts at
// a repeatable request try the same names in the same order: an object that an earlier one stores
// late then has the name of its repetition.
func (b *batch) rename(up *received) bool {
	up.tries++
	if up.tries <= b.secondTries(up) && b.req.Repetition == nil {
		up.filename = naming.WithTime(up.plain, b.uploader.seconds.next(b.alias.LockName(up.plain), b.now.Unix()))
		return true
	}
	up.filename = b.nameOf(up, up.tries)
	return up.tries <= b.secondTries(up)+suffixTries
}

// nameOf returns the n-th filename that an upload may have: the plain one, those with the time,
// then those with a suffix too. They are the same for all attempts at a repeatable request.
func (b *batch) nameOf(up *received, n int) string {
	last := b.secondTries(up)
	switch {
	case n == 0:
		return up.plain
	case n <= last:
		return naming.WithTime(up.plain, b.now.Unix()+int64(n-1))
	}
	sum := sha256.Sum256(fmt.Append(nil, b.itemID(up), "n", n-last))
	return naming.WithSuffix(naming.WithTime(up.plain, b.now.Unix()), strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:item.SuffixLength]))
}
