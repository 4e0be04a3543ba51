package media

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/resumable"
	"github.com/caddymedia/media/caddymedia/upload"
	"github.com/caddymedia/media/storagedrivers"
)

// newUploads returns the store of resumable uploads. Every storage may hold some, of an earlier
// configuration.
func (s *Service) newUploads() *resumable.Store {
	store := &resumable.Store{
		Expires: time.Duration(s.resumable.Expires), MaxOpen: s.resumable.MaxOpen, MaxBytes: s.resumable.MaxBytes, Now: s.now, Log: s.log,
	}
	store.Observe = func(kind string, event resumable.Event) { s.observer.ResumableEvent(KindOf(kind), event) }
	store.Received = func(kind string, bytes int64, resumed bool) {
		s.observer.ResumableReceived(KindOf(kind), bytes, resumed)
	}
	for _, name := range slices.Sorted(maps.Keys(s.storages)) {
		store.Storages = append(store.Storages, s.storages[name])
		s.opened[name] = make(chan struct{}, 1)
	}
	store.Opened = func(storage *storagedrivers.Storage) {
		select {
		case s.opened[storage.Name()] <- struct{}{}:
		default: // it is known already
		}
	}
	return store
}

// Uploads returns the store of resumable uploads; nil if they are refused.
func (s *Service) Uploads() *resumable.Store {
	if s.resumable.Off {
		return nil
	}
	return s.uploads
}

// UploadStorage returns the storage for the unfinished uploads of an alias, or of the default alias
// if there is none of that name.
func (s *Service) UploadStorage(kind aliases.Kind, alias string) *storagedrivers.Storage {
	if s.resumable.Storage != "" {
		return s.storages[s.resumable.Storage]
	}
	for _, name := range []string{alias, aliases.DefaultAlias} {
		if a, ok := s.Alias(kind, name); ok {
			return a.Storage
		}
	}
	return s.Aliases()[0].Storage
}

// ReserveFile reserves a file for staged bytes of an upload. It returns false if the account has too
// many.
func (s *Service) ReserveFile(actor aliases.Actor) (release func(), ok bool) {
	return s.bounds.staging.Reserve(actor.Owner())
}

// FinishUpload passes the item of a complete upload through the checks and stores it. However often
// it is called, by any process that shares the storage, the item is stored once. Afterwards u has
// its outcome, unless the failures are temporary. Once it has begun, the end of ctx does not stop it.
//
// confirm is [upload.Request.Confirm]. baseURL is the start of public addresses.
func (s *Service) FinishUpload(
	ctx context.Context, u *resumable.Upload, confirm ConfirmFunc, baseURL string,
) aliases.Failures {
	return s.finishUpload(ctx, u, confirm, baseURL, func(_ bool, failures aliases.Failures) bool { return isFinal(failures) })
}

// FinishNew is FinishUpload for an upload whose address no client has. It records a refusal only if the
// item was claimed. Otherwise the caller must remove the upload.
func (s *Service) FinishNew(
	ctx context.Context, u *resumable.Upload, confirm ConfirmFunc, baseURL string,
) aliases.Failures {
	return s.finishUpload(ctx, u, confirm, baseURL, func(claimed bool, failures aliases.Failures) bool {
		return claimed && isFinal(failures)
	})
}

// finishUpload is FinishUpload. records reports whether a refusal is recorded; claimed means that the
// item was claimed by this attempt.
func (s *Service) finishUpload(
	ctx context.Context, u *resumable.Upload, confirm ConfirmFunc, baseURL string,
	records func(claimed bool, failures aliases.Failures) bool,
) aliases.Failures {
	unlock, err := u.LockFinish(ctx)
	if err != nil {
		return aliases.Failures{Finishing(err)}
	}
	ctx = context.WithoutCancel(ctx)
	defer unlock()
	if err := u.Reload(ctx); err != nil {
		return uploadFailures(err)
	}
	if u.Outcome != nil || u.Partial || !u.Complete() {
		return nil
	}
	claimed := u.Claimed()
	if claimed {
		if err := u.FinishCut(ctx); !errors.Is(err, resumable.ErrUnknown) {
			return uploadFailures(err)
		}
	}
	o := &once{upload: u}
	defer o.settle()
	items, failures := s.storeUpload(ctx, o, confirm, baseURL)
	// An item that was claimed has passed the checks, and may be stored. A caller without the rights
	// says nothing about the item, and another one may finish the upload.
	if failures != nil && (claimed || o.unconfirmed || !records(o.claimed, failures)) {
		if u.Reload(ctx) == nil && u.Outcome != nil {
			return nil // another process has finished it
		}
		return failures
	}
	if err := u.Finish(ctx, outcomeOf(items, failures)); err != nil {
		return uploadFailures(err)
	}
	return failures
}

// storeUpload stores the item of an upload. The caller must settle o.
func (s *Service) storeUpload(
	ctx context.Context, o *once, confirm ConfirmFunc, baseURL string,
) (items []upload.Item, failures aliases.Failures) {
	u := o.upload
	content, done, err := contentOf(ctx, u)
	if err != nil {
		return nil, uploadFailures(err)
	}
	defer done()
	req := upload.Request{
		Kind: KindOf(u.Kind), Alias: u.Alias, SubFolder: u.SubFolder, BaseURL: baseURL, Once: o,
		Actor: aliases.Actor{Origin: aliases.Origin(u.Origin), Account: u.Account, Client: u.Client},
	}
	if confirm != nil {
		req.Confirm = func(ctx context.Context, alias string, items int) (_ func(bool), failure *aliases.Failure) {
			o.settleWith, failure = confirm(ctx, alias, items)
			o.unconfirmed = failure != nil
			return nil, failure
		}
	}
	return s.uploader.Upload(ctx, req, content)
}

// TerminateUpload removes an upload for an actor, never its item.
func (s *Service) TerminateUpload(ctx context.Context, u *resumable.Upload, actor aliases.Actor) error {
	finished := u.Outcome != nil
	err := s.removeUpload(ctx, u, resumable.Terminated)
	if !finished {
		s.observer.Terminated(ctx, &u.Record, actor, err)
	}
	return err
}

// DropUpload removes an upload whose creation fails, so that no client has its address. failures are
// those of its item; nil if it was not received.
func (s *Service) DropUpload(ctx context.Context, u *resumable.Upload, failures aliases.Failures) error {
	event := resumable.Terminated
	if failures != nil && isFinal(failures) {
		event = resumable.Refused
	}
	return s.removeUpload(ctx, u, event)
}

func (s *Service) removeUpload(ctx context.Context, u *resumable.Upload, event resumable.Event) error {
	claimed, err := u.Terminate(ctx, event)
	if err == nil && !claimed && u.Ticket != "" && u.Complete() {
		s.giveBack(ctx, ticketID(u), u.ID) // it may be counted before it is claimed
	}
	return err
}

// contentOf returns the bytes of an upload. They are not moved if the storage can adopt them.
func contentOf(ctx context.Context, u *resumable.Upload) (src upload.Source, done func(), err error) {
	staged, err := u.Adopt(ctx)
	switch {
	case err == nil:
		return upload.Staged(u.Filename, u.Storage(), staged, u.Length), func() {}, nil
	case !errors.Is(err, errors.ErrUnsupported):
		return nil, nil, err
	}
	content := u.Content(ctx)
	return upload.Single(u.Filename, storedBytes{content}), func() { _ = content.Close() }, nil
}

// ConfirmFunc is [upload.Request.Confirm].
type ConfirmFunc = func(ctx context.Context, alias string, items int) (settle func(stored bool), failure *aliases.Failure)

// outcomeOf returns the outcome of an upload.
func outcomeOf(items []upload.Item, failures aliases.Failures) resumable.Outcome {
	if failures != nil {
		return resumable.Outcome{Refused: failures[0].Message}
	}
	item := items[0]
	return resumable.Outcome{Stored: item.Filename, Variant: item.WebP != "", Renditions: slices.Collect(maps.Keys(item.Renditions))}
}

// isFinal reports whether the item would be refused again.
func isFinal(failures aliases.Failures) bool {
	switch failures[0].Reason {
	case aliases.BadRequest, aliases.Forbidden, aliases.Conflict, aliases.TooLarge, aliases.BadContent:
		return true
	default:
		return false
	}
}

// Finishing returns the failure for an error of [resumable.Upload.LockFinish].
func Finishing(err error) *aliases.Failure {
	return &aliases.Failure{Reason: aliases.Busy, Message: "the upload is being finished, ask again later", Err: err}
}

// uploadFailures returns the failures for an error of the state of an upload; nil for none.
func uploadFailures(err error) aliases.Failures {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, resumable.ErrUnknown):
		return aliases.Failures{{Reason: aliases.Unavailable, Message: "the upload has ended", Err: err}}
	}
	return aliases.Failures{aliases.StorageFailure(err)}
}

// ItemOf returns the item of a finished upload, and false if it was refused.
func (s *Service) ItemOf(u *resumable.Upload, baseURL string) (upload.Item, bool) {
	o := u.Outcome
	if o == nil || o.Stored == "" {
		return upload.Item{}, false
	}
	item := upload.Item{Filename: o.Stored, Size: u.Length}
	alias, ok := s.Alias(KindOf(u.Kind), u.Alias)
	if !ok {
		return item, true // it was removed from the configuration
	}
	item.FullPath = alias.URL(baseURL, o.Stored)
	if o.Variant {
		item.WebP = item.FullPath + render.Suffix
	}
	for name, address := range alias.RenditionURLs(baseURL, o.Stored) {
		if slices.Contains(o.Renditions, name) {
			if item.Renditions == nil {
				item.Renditions = map[string]string{}
			}
			item.Renditions[name] = address
		}
	}
	return item, true
}

// KindOf returns the kind of an upload, from its record.
func KindOf(name string) aliases.Kind {
	kind, _ := aliases.KindOf(name) // only known ones are recorded
	return kind
}

// once stores the item of an upload once.
type once struct {
	upload      *resumable.Upload
	unconfirmed bool              // the confirmation has failed
	claimed     bool              // a filename was claimed
	settleWith  func(stored bool) // of the confirmation; nil for none
}

func (o *once) ID() string { return o.upload.ID }

func (o *once) Claim(ctx context.Context, n int, proposed upload.Claim) (upload.Claim, error) {
	o.claimed = true
	claim, err := o.upload.Claim(ctx, n, resumable.Claim(proposed))
	return upload.Claim(claim), err
}

// settle settles the confirmation. The item counts until it is refused or its upload is terminated:
// after a temporary failure another process may be storing it.
func (o *once) settle() {
	if o.settleWith != nil {
		o.settleWith(o.upload.Outcome == nil || o.upload.Outcome.Stored != "")
	}
}

// storedBytes are the bytes of an upload. Its errors are those of the storage.
type storedBytes struct{ io.Reader }

func (s storedBytes) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the upload, or a part of it, was removed meanwhile
		err = uploadFailures(resumable.ErrUnknown)[0]
	case err != nil && err != io.EOF: //nolint:errorlint // the end is io.EOF itself
		err = aliases.StorageFailure(err)
	}
	return n, err
}
