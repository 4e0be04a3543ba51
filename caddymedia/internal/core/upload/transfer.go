package upload

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	// maxAcross is the size in bytes of the largest item that a request transfers to another
	// storage.
	maxAcross = 1 << 30
	// transferTries is how often a transfer begins again because its item is replaced meanwhile.
	transferTries = 4
)

// Transfer is a request to move or copy an item to the alias of the request.
type Transfer struct {
	Request
	// From and Filename of the item.
	From     *item.Alias
	Filename string
	// To is the wanted filename in the alias of the request, sub folder included.
	To string
	// Exact means that the item may have no other filename than To.
	Exact bool
	// New means that no other item may have the new filename.
	New bool
	// Over is the only item that may have the new filename. It is replaced, under Append Time too. A
	// zero Info is none.
	Over storagedrivers.Info
	// Copy keeps the item.
	Copy bool
	// Same means that an item which has the new filename already is the copy if it has the same bytes.
	Same bool
	// Restores means that From is the trash of the alias, see [item.Alias.InTrash].
	Restores bool
	// AsItWas stores the item as it is, whatever the rules of its alias.
	AsItWas bool
	// Matches, if set, reports whether a stored item is the one to move or copy.
	Matches func(storagedrivers.Info) bool
}

// Operation describes the transfer.
func (t Transfer) Operation() Operation {
	op := t.Request.Operation()
	op.Transfer = &t
	return op
}

// Errors of a transfer.
var (
	errItself   = errors.New("the item has the wanted filename")
	errReplaced = errors.New("the item was replaced meanwhile")
	errUncopied = errors.New("the storage cannot copy the item")
)

// Transfer moves or copies an item, with all checks of an upload. Onto itself the item stays
// unchanged, unless a copy gets another name under Append Time. A moved item is removed after the
// new one is complete. No upload, move or deletion of this process changes it between the last
// comparison and its removal.
func (u *Uploader) Transfer(ctx context.Context, req Transfer) (items []Item, failures item.Failures) {
	ctx = storagedrivers.WithOwner(ctx, req.Actor.Owner())
	ended := u.Observer.Began(req.Operation())
	defer func() { ended(items != nil) }()
	copies := true
	for try := 1; ; try++ {
		items, failures, err := u.newTransferring(req, copies).run(ctx, try)
		switch {
		case errors.Is(err, errUncopied):
			copies = false
		case !errors.Is(err, errReplaced):
			return items, failures
		}
	}
}

// transferring is an attempt at a transfer. It is the [Source] of its batch.
type transferring struct {
	*Transfer
	batch *batch

	source    storagedrivers.Info // set by receive
	copies    bool                // its storage copies it, as far as is known
	removed   Item                // the moved item, set by commit
	unremoved error               // why the moved item is left
}

func (u *Uploader) newTransferring(req Transfer, copies bool) *transferring {
	t := &transferring{Transfer: &req, copies: copies}
	k := kind{operation: req.Operation(), confirm: t.confirm, same: req.Same, asItWas: req.AsItWas}
	if req.Exact {
		k.exact = req.To
	}
	if req.New || req.Over.Key != "" {
		k.overwrites = req.Over.Key != ""
		k.condition = func(stored storagedrivers.Info) *item.Failure {
			switch {
			case stored == (storagedrivers.Info{}) || stored.Same(req.Over): // also if Over was removed
				return nil
			case req.New:
				return item.Failf(item.Conflict, "there is already an item of this name")
			}
			return item.Failf(item.Conflict, "another item has this name by now")
		}
	}
	if !req.Copy {
		k.lock, k.committed = t.lock, t.removeSource
	}
	t.batch = u.newBatch(req.Request, k)
	return t
}

// run returns errReplaced if the transfer should begin again, and errUncopied if it should do so
// without a copy by the storage. It closes the batch.
func (t *transferring) run(ctx context.Context, try int) ([]Item, item.Failures, error) {
	defer t.batch.close()
	err := t.changed(t.batch.store(ctx, t))
	switch {
	case errors.Is(err, errItself):
		item := Item{FullPath: t.From.URL(t.BaseURL, t.Filename), Filename: t.Filename, Size: t.source.Size, Info: t.source}
		t.batch.uploader.Observer.Changed(ctx, Change{Action: Unchanged, Alias: t.From, Item: item, Actor: t.Actor, Transfer: t.Transfer})
		return []Item{item}, nil, nil
	case errors.Is(err, errReplaced) && try < transferTries && ctx.Err() == nil:
		return nil, nil, errReplaced
	case t.copies && err != nil && errors.Is(asFailure(err), errors.ErrUnsupported) && len(asFailures(err)) == 1: // nothing has changed
		return nil, nil, errUncopied
	case err != nil:
		return nil, t.batch.reportRefused(ctx, err), nil
	}
	by := *t.Transfer
	by.Copy = by.Copy || t.unremoved != nil
	items := t.batch.reportStored(ctx, &by)
	if failures := t.reportSource(ctx); failures != nil {
		return nil, failures, nil
	}
	return items, nil, nil
}

// receive stages the item, unless it would be stored onto itself.
func (t *transferring) receive(ctx context.Context, b *batch) error {
	alias, err := b.target()
	if err != nil {
		return err
	}
	slash := strings.LastIndexByte(t.To, '/')
	up, folder := &received{submitted: t.Filename, name: t.To[slash+1:]}, "/"
	if slash >= 0 {
		folder = t.To[:slash]
	}
	if up.name == "" || folder == "" || strings.HasPrefix(t.To, "/") || strings.Contains(t.To, "//") {
		return &item.Failure{
			Reason: item.BadRequest, Filename: t.Filename, Message: "the new filename is relative to the alias, and begins and ends without a slash",
		}
	}
	b.fields["alias"], b.fields["sub_folder"] = b.aliasName(), folder
	if err := b.req.Forced.checkSubFolder(folder); err != nil {
		return err
	}
	if t.source, err = t.stat(ctx); err != nil {
		return t.failure(err)
	}
	if failure := mismatch(t.Filename, t.source, t.Matches); failure != nil {
		return failure
	}
	filename, err := b.storedName(alias, up, folder)
	if err == nil && t.isItself(alias, filename) {
		return errItself
	}
	if !t.Copy { // before anything is stored
		if err := mayKeep(t.From, t.source, true, t.Purge); err != nil {
			return t.failure(err)
		}
	}
	t.copies = t.copies && err == nil && alias.Storage.Location() == t.From.Storage.Location()
	return t.stage(ctx, alias, up)
}

// stage stages the item for an alias. In one backend the storage copies it, and only the bytes that
// the checks need are read.
func (t *transferring) stage(ctx context.Context, alias *item.Alias, up *received) (err error) {
	b := t.batch
	if t.copies {
		if limit := b.req.Forced.Limit(alias.MaxSize); t.source.Size > limit {
			failure := tooLarge(limit)
			failure.Filename = t.Filename
			return failure
		}
		if err := b.reserveFile(); err != nil {
			return err
		}
		if up.staged, err = alias.Storage.StageCopy(ctx, t.source); err == nil {
			up.storage, up.size = alias.Storage, t.source.Size
			b.uploads = append(b.uploads, up)
			return nil
		}
		b.releaseFile()
		if t.copies = false; !errors.Is(err, errors.ErrUnsupported) {
			return t.failure(err)
		}
	}
	if alias.Storage != t.From.Storage && t.source.Size > maxAcross {
		return &item.Failure{
			Reason: item.TooLarge, Filename: t.Filename,
			Message: "larger than " + bytesize.Format(maxAcross) + ", the most for another storage: an administrator can copy it by caddy media copy",
		}
	}
	object, err := t.From.Storage.OpenSeeker(storagedrivers.WithoutCache(ctx), t.source.Key)
	if err != nil {
		return t.failure(err)
	}
	defer b.closeSource(object)
	if !object.Info.Same(t.source) {
		return t.failure(storagedrivers.ErrChanged)
	}
	return b.stage(ctx, up, object, t.failure)
}

// closeSource closes what an upload was read from.
func (b *batch) closeSource(source io.Closer) {
	if err := source.Close(); err != nil {
		b.uploader.Log.Warn("closing the source of an upload", "error", err)
	}
}

// stat returns the item; the zero Info if there is none, or it has expired.
func (t *transferring) stat(ctx context.Context) (storagedrivers.Info, error) {
	info, err := statIfValid(ctx, t.From, t.From.Key(t.Filename))
	if t.From.HasExpired(info, t.batch.uploader.Now()) {
		info = storagedrivers.Info{}
	}
	return info, err
}

// isItself reports whether the item would be stored onto itself, and stays unchanged then.
func (t *Transfer) isItself(alias *item.Alias, filename string) bool {
	return alias.LockName(filename) == t.From.LockName(t.Filename) && (!t.Copy || alias.Overwrite)
}

// failure returns the failure for an error of reading the item.
func (t *Transfer) failure(err error) *item.Failure {
	copied := *item.StorageFailure(err) // others may have the failure too
	failure := &copied
	switch {
	case errors.Is(err, storagedrivers.ErrChanged), errors.Is(err, fs.ErrNotExist):
		failure = replacedFailure(err)
	case failure.Reason == item.StorageFailed:
		failure.Message = "the storage could not read the item"
	}
	failure.Filename = t.Filename
	return failure
}

// replacedFailure returns the failure for an item that others replace again and again.
func replacedFailure(err error) *item.Failure {
	return &item.Failure{
		Reason: item.Conflict, Message: "the item is being replaced, try again later", Err: errors.Join(errReplaced, err),
	}
}

// changed returns the failure of a transfer whose item was replaced while it was read or copied,
// and err otherwise.
func (t *Transfer) changed(err error) error {
	if err == nil {
		return nil
	}
	for _, failure := range asFailures(err) {
		if errors.Is(failure, storagedrivers.ErrChanged) {
			return t.failure(failure.Err)
		}
	}
	return err
}

// confirm returns an error unless the item is still the one that was staged. For a move, the caller
// holds its lock.
func (t *transferring) confirm(ctx context.Context) error {
	if up := t.batch.uploads[0]; up.tries == 0 && t.isItself(t.batch.alias, up.filename) {
		return errItself // an image that gets the extension of its content
	}
	if t.Restores {
		return nil // what is in the trash does not change
	}
	info, err := t.stat(ctx)
	switch {
	case err != nil:
		return t.failure(err)
	case info.Key == "":
		return mismatch(t.Filename, info, t.Matches)
	case !info.Same(t.source):
		return t.failure(storagedrivers.ErrChanged)
	}
	return t.confirmTarget(ctx)
}

// confirmTarget returns an error if the item would replace itself under a name that differs by case
// only: some backends do not distinguish the case of names. The removal of the old name would then
// remove the new one.
func (t *transferring) confirmTarget(ctx context.Context) error {
	to, filename := t.batch.alias, t.batch.uploads[0].filename
	if !to.Overwrite || !strings.EqualFold(to.LockName(filename), t.From.LockName(t.Filename)) {
		return nil
	}
	there, err := item.Stat(ctx, to.Storage, to.Key(filename))
	if err != nil || !there.Same(t.source) {
		return err
	}
	return &item.Failure{
		Reason: item.Conflict, Filename: t.Filename,
		Message: "the storage does not distinguish the case of the two filenames: move the item to another filename first",
	}
}

// lock locks a moved item against all changes, and its new name like that of an upload.
func (t *transferring) lock(ctx context.Context, filenames []string) (unlock func(), err error) {
	return t.From.LockMove(ctx, t.Filename, t.batch.alias, filenames...)
}

// removeSource removes a moved item, whose lock the caller holds. It keeps an item that replaces
// it.
func (t *transferring) removeSource(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCommit)
	defer cancel()
	t.removed = Item{FullPath: t.From.URL(t.BaseURL, t.Filename), Filename: t.Filename}
	t.unremoved = t.batch.uploader.removeLocked(ctx, Deletion{
		Alias: t.From, Filename: t.Filename, Purge: t.Purge, Matches: func(info storagedrivers.Info) bool { return info.Same(t.source) },
	}, &t.removed)
}

// reportSource reports a moved item that was removed to the observer. It returns the failure of one
// that was not.
func (t *transferring) reportSource(ctx context.Context) item.Failures {
	observer := t.batch.uploader.Observer
	switch {
	case t.Copy:
		return nil
	case t.unremoved == nil:
		observer.Changed(ctx, Change{Action: Deleted, Alias: t.From, Item: t.removed, Actor: t.Actor, Transfer: t.Transfer})
		return nil
	}
	copied := *item.StorageFailure(t.unremoved) // others may have the failure too
	failure := &copied
	if failure.Reason != item.Unavailable && failure.Reason != item.NoSpace { // the trash needs some
		failure.Reason = item.StorageFailed
	}
	failure.Filename, failure.Message = t.Filename, "the item is stored under its new name, but the storage could not remove the old one"
	switch {
	case errors.Is(t.unremoved, item.ErrOther):
		failure.Reason, failure.Message = item.Conflict, "the item is stored under its new name; the old one was replaced meanwhile and stays"
	case errors.Is(t.unremoved, fs.ErrNotExist): // by another process, which does not know the lock
		failure.Reason, failure.Message = item.Conflict, "the item is stored under its new name; another request has moved or deleted the old one meanwhile"
	}
	failures := item.Failures{failure}
	observer.Refused(ctx, t.Operation(), failures)
	return failures
}
