package upload

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/bytesize"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	// maxAcross is the size in bytes of the largest item that a request transfers to another
	// storage.
	maxAcross = 1 << 30
	// transferTries is how often a transfer begins again because its item is replaced meanwhile.
	transferTries = 4
)

// Transfer is a request to move or copy an item.
type Transfer struct {
	// Alias and Filename of the item.
	Alias    *aliases.Alias
	Filename string
	// To is the wanted filename in the alias of the request, sub folder included.
	To string
	// Copy keeps the item.
	Copy bool
	// Matches, if set, reports whether a stored item is the one to move or copy.
	Matches func(storagedrivers.Info) bool
}

// Errors of a transfer.
var (
	errItself   = errors.New("the item has the wanted filename")
	errReplaced = errors.New("the item was replaced meanwhile")
	errUncopied = errors.New("the storage cannot copy the item")
)

// Transfer moves or copies the item of req.Transfer to the alias of req, with all checks of an
// upload. Onto itself the item stays unchanged, unless a copy gets another name under Append Time.
// A moved item is removed after the new one is complete. No upload, move or deletion of this
// process changes it between the last comparison and its removal.
func (u *Uploader) Transfer(ctx context.Context, req Request) (items []Item, failures aliases.Failures) {
	ctx = storagedrivers.WithOwner(ctx, req.Actor.Owner())
	ended := u.Observer.Began(req)
	defer func() { ended(items != nil) }()
	copies := true
	for try := 1; ; try++ {
		b := u.newBatch(req)
		b.copies = copies
		items, failures, err := b.transfer(ctx, try)
		switch {
		case errors.Is(err, errUncopied):
			copies = false
		case !errors.Is(err, errReplaced):
			return items, failures
		}
	}
}

// transfer returns errReplaced if the transfer should begin again, and errUncopied if it should do so
// without a copy by the storage. It closes the batch.
func (b *batch) transfer(ctx context.Context, try int) ([]Item, aliases.Failures, error) {
	defer b.close()
	t := b.req.Transfer
	err := t.changed(b.store(ctx, t))
	switch {
	case errors.Is(err, errItself):
		item := Item{FullPath: t.Alias.URL(b.req.BaseURL, t.Filename), Filename: t.Filename, Size: b.source.Size}
		b.uploader.Observer.Changed(ctx, Change{Action: Unchanged, Alias: t.Alias, Item: item, Actor: b.req.Actor, Transfer: t})
		return []Item{item}, nil, nil
	case errors.Is(err, errReplaced) && try < transferTries && ctx.Err() == nil:
		return nil, nil, errReplaced
	case b.copies && err != nil && errors.Is(asFailure(err), errors.ErrUnsupported) && len(asFailures(err)) == 1: // nothing has changed
		return nil, nil, errUncopied
	}
	items, failures := b.report(ctx, err)
	return items, failures, nil
}

// receive stages the item. In one backend the storage copies it, and only the bytes that the checks
// need are read.
func (t *Transfer) receive(ctx context.Context, b *batch) error {
	alias, err := b.target()
	if err != nil {
		return err
	}
	slash := strings.LastIndexByte(t.To, '/')
	up, folder := &upload{submitted: t.Filename, name: t.To[slash+1:]}, "/"
	if slash >= 0 {
		folder = t.To[:slash]
	}
	if up.name == "" || folder == "" || strings.HasPrefix(t.To, "/") || strings.Contains(t.To, "//") {
		return &aliases.Failure{
			Reason: aliases.BadRequest, Filename: t.Filename, Message: "the new filename is relative to the alias, and begins and ends without a slash",
		}
	}
	b.fields["alias"], b.fields["sub_folder"] = b.aliasName(), folder
	if err := b.req.Forced.checkSubFolder(folder); err != nil {
		return err
	}
	if b.source, err = t.stat(ctx); err != nil {
		return t.failure(err)
	}
	if failure := mismatch(t.Filename, b.source, t.Matches); failure != nil {
		return failure
	}
	filename, err := b.storedName(alias, up, folder)
	if err == nil && t.isItself(alias, filename) {
		return errItself
	}
	b.copies = b.copies && err == nil && alias.Storage.Location() == t.Alias.Storage.Location()
	if b.copies {
		if limit := b.req.Forced.Limit(alias.MaxSize); b.source.Size > limit {
			failure := tooLarge(limit)
			failure.Filename = t.Filename
			return failure
		}
		if err := b.reserveFile(); err != nil {
			return err
		}
		if up.staged, err = alias.Storage.StageCopy(ctx, b.source); err == nil {
			up.storage, up.size = alias.Storage, b.source.Size
			b.uploads = append(b.uploads, up)
			return nil
		}
		b.releaseFile()
		if b.copies = false; !errors.Is(err, errors.ErrUnsupported) {
			return t.failure(err)
		}
	}
	if alias.Storage != t.Alias.Storage && b.source.Size > maxAcross {
		return &aliases.Failure{
			Reason: aliases.TooLarge, Filename: t.Filename,
			Message: "larger than " + bytesize.Format(maxAcross) + ", the most for another storage: an administrator can copy it by caddy media copy",
		}
	}
	object, err := t.Alias.Storage.OpenSeeker(storagedrivers.WithoutCache(ctx), b.source.Key)
	if err != nil {
		return t.failure(err)
	}
	defer b.closeSource(object)
	if !object.Info.Same(b.source) {
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

// stat returns the item; the zero Info if there is none.
func (t *Transfer) stat(ctx context.Context) (storagedrivers.Info, error) {
	info, err := aliases.Stat(ctx, t.Alias.Storage, t.Alias.Key(t.Filename))
	if errors.Is(err, storagedrivers.ErrInvalidKey) {
		return storagedrivers.Info{}, nil
	}
	return info, err
}

// isItself reports whether the item would be stored onto itself, and stays unchanged then.
func (t *Transfer) isItself(alias *aliases.Alias, filename string) bool {
	return alias.LockName(filename) == t.Alias.LockName(t.Filename) && (!t.Copy || alias.Overwrite)
}

// failure returns the failure for an error of reading the item.
func (t *Transfer) failure(err error) *aliases.Failure {
	failure := aliases.StorageFailure(err)
	switch {
	case errors.Is(err, storagedrivers.ErrChanged), errors.Is(err, fs.ErrNotExist):
		failure = replacedFailure(err)
	case failure.Reason == aliases.StorageFailed:
		failure.Message = "the storage could not read the item"
	}
	failure.Filename = t.Filename
	return failure
}

// replacedFailure returns the failure for an item that others replace again and again.
func replacedFailure(err error) *aliases.Failure {
	return &aliases.Failure{
		Reason: aliases.Conflict, Message: "the item is being replaced, try again later", Err: errors.Join(errReplaced, err),
	}
}

// changed returns the failure of a transfer whose item was replaced while it was read or copied, and
// err otherwise.
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

// confirmSource returns an error unless the item is still the one that was staged. For a move, the
// caller holds its lock.
func (b *batch) confirmSource(ctx context.Context) error {
	t := b.req.Transfer
	if t == nil {
		return nil
	}
	if up := b.uploads[0]; up.tries == 0 && t.isItself(b.alias, up.filename) {
		return errItself // an image that gets the extension of its content
	}
	info, err := t.stat(ctx)
	switch {
	case err != nil:
		return t.failure(err)
	case info.Key == "":
		return mismatch(t.Filename, info, t.Matches)
	case !info.Same(b.source):
		return t.failure(storagedrivers.ErrChanged)
	}
	return b.confirmTarget(ctx)
}

// confirmTarget returns an error if the item would replace itself under a name that differs by case
// only: some backends do not distinguish the case of names. The removal of the old name would then
// remove the new one.
func (b *batch) confirmTarget(ctx context.Context) error {
	t, filename := b.req.Transfer, b.uploads[0].filename
	if !b.alias.Overwrite || !strings.EqualFold(b.alias.LockName(filename), t.Alias.LockName(t.Filename)) {
		return nil
	}
	there, err := aliases.Stat(ctx, b.alias.Storage, b.alias.Key(filename))
	if err != nil || !there.Same(b.source) {
		return err
	}
	return &aliases.Failure{
		Reason: aliases.Conflict, Filename: t.Filename,
		Message: "the storage does not distinguish the case of the two filenames: move the item to another filename first",
	}
}

// removeSource removes a moved item, whose lock the caller holds. It keeps an item that replaces
// it.
func (b *batch) removeSource(ctx context.Context) {
	t := b.req.Transfer
	if t == nil || t.Copy {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCommit)
	defer cancel()
	b.removed = Item{FullPath: t.Alias.URL(b.req.BaseURL, t.Filename), Filename: t.Filename}
	b.unremoved = removeLocked(ctx, Deletion{
		Alias: t.Alias, Filename: t.Filename, Matches: func(info storagedrivers.Info) bool { return info.Same(b.source) },
	}, &b.removed)
}

// reportSource reports a moved item that was removed to the observer. It returns the failure of one
// that was not.
func (b *batch) reportSource(ctx context.Context) aliases.Failures {
	t := b.req.Transfer
	switch {
	case t == nil || t.Copy:
		return nil
	case b.unremoved == nil:
		b.uploader.Observer.Changed(ctx, Change{Action: Deleted, Alias: t.Alias, Item: b.removed, Actor: b.req.Actor, Transfer: t})
		return nil
	}
	failure := aliases.StorageFailure(b.unremoved)
	if failure.Reason != aliases.Unavailable {
		failure.Reason = aliases.StorageFailed
	}
	failure.Filename, failure.Message = t.Filename, "the item is stored under its new name, but the storage could not remove the old one"
	switch {
	case errors.Is(b.unremoved, ErrOtherItem):
		failure.Reason, failure.Message = aliases.Conflict, "the item is stored under its new name; the old one was replaced meanwhile and stays"
	case errors.Is(b.unremoved, fs.ErrNotExist): // by another process, which does not know the lock
		failure.Reason, failure.Message = aliases.Conflict, "the item is stored under its new name; another request has moved or deleted the old one meanwhile"
	}
	failures := aliases.Failures{failure}
	b.uploader.Observer.Refused(ctx, b.req, failures)
	return failures
}
