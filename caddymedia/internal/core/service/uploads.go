package service

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
)

// newUploads returns the store of resumable uploads. Every storage may hold some, of an earlier
// configuration.
func (s *Service) newUploads() *resumable.Store {
	store := &resumable.Store{
		Uploader: s.uploader, Issuer: s.issuer,
		Expires: s.resumable.Expires, MaxOpen: s.resumable.MaxOpen, MaxBytes: s.resumable.MaxBytes,
		Active: &program.uploads, Observe: s.observer.ResumableEvent, Received: s.observer.ResumableReceived, Now: s.now, Log: s.log,
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
// if there is none of that name. It is nil for a service without aliases.
func (s *Service) UploadStorage(kind item.Kind, alias string) *storagedrivers.Storage {
	if s.resumable.Storage != "" {
		return s.storages[s.resumable.Storage]
	}
	for _, name := range []string{alias, item.DefaultAlias} {
		if a, ok := s.Alias(kind, name); ok {
			return a.Storage
		}
	}
	for _, a := range s.Aliases() {
		return a.Storage
	}
	return nil
}

// BeginUpload counts an upload of the caller as running until ended is called. It returns false if
// the account, its clients with tickets, or the ticket already have as many as are allowed. A
// ticket may have one for each of its files, and spare more: an upload counts until its answer is
// sent, so files that are just stored are no room for others.
func (s *Service) BeginUpload(actor item.Actor, ticket *access.Ticket, spare int) (ended func(), ok bool) {
	party := actor.Party()
	if ticket != nil {
		party.Most = int64(ticket.MaxFiles + spare)
	}
	if !s.process.uploads.AcquireWithin(party, 1, int64(s.limits.MaxUploads)) {
		return nil, false
	}
	return func() { s.process.uploads.Release(party, 1) }, true
}

// UploadTime returns how long the body of an upload may take to arrive. With a ticket it ends with
// the ticket.
func (s *Service) UploadTime(ticket *access.Ticket) time.Duration {
	most := s.limits.MaxUploadTime
	if ticket != nil {
		most = min(most, ticket.Expires.Sub(s.now()))
	}
	return most
}

// CountRefused counts the items of an upload that were refused for good on a ticket, if it has one.
func (s *Service) CountRefused(ctx context.Context, ticket *access.Ticket, failures item.Failures) {
	s.uploads.CountRefused(ctx, ticket, failures)
}

// ReserveFile reserves a file for staged bytes of an upload. The error is an [*item.Failure] if the
// account has too many.
func (s *Service) ReserveFile(actor item.Actor) (release func(), err error) {
	release, ok := s.process.staging.Reserve(actor.Party())
	if !ok {
		return nil, &item.Failure{Reason: item.Busy, Message: "too many uploads are under way, try again later"}
	}
	return release, nil
}

// TerminateUpload removes an upload for an actor, never its item.
func (s *Service) TerminateUpload(ctx context.Context, u *resumable.Upload, actor item.Actor) error {
	finished := u.Outcome != nil
	err := u.Terminate(ctx)
	if !finished {
		s.observer.Terminated(ctx, &u.Record, actor, err)
	}
	return err
}

// ItemOf returns the item of a finished upload, and false if it was refused.
func (s *Service) ItemOf(u *resumable.Upload, baseURL string) (upload.Item, bool) {
	o := u.Outcome
	switch {
	case o == nil || o.Stored == "":
		return upload.Item{}, false
	case u.Item != nil:
		return *u.Item, true
	}
	item := upload.Item{Filename: o.Stored, Size: u.Length, Trash: o.Trash}
	alias, ok := s.Alias(u.ItemKind(), u.Alias)
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

// FactsOf returns the facts of the item of a finished upload; nil if it is no image, its alias does
// not want them, or they cannot be read.
func (s *Service) FactsOf(ctx context.Context, u *resumable.Upload, baseURL string) *derived.Facts {
	alias, ok := s.Alias(u.ItemKind(), u.Alias)
	if !ok || alias.Facts == item.NoFacts {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, factsTime)
	defer cancel()
	image, err := alias.Storage.Stat(ctx, alias.Key(u.Outcome.Stored))
	if err != nil {
		return nil // it was deleted, or the storage is down, and the answer has its address all the same
	}
	facts, err := s.uploader.Derived.StoredFacts(ctx, alias, baseURL, image, u.Owner, false)
	if err != nil {
		s.log.Warn("reading the facts of a stored image", "alias", alias.Name, "filename", u.Outcome.Stored, "error", err)
	}
	return facts
}

// factsTime bounds how long the answer to a finished upload waits for the facts of its item.
const factsTime = 10 * time.Second

// Charge counts items of a request that are about to be stored on a ticket, under the name use. If
// isRepeated is set, an earlier attempt may have stored them under that name, so they stay counted
// after an error. The caller must call settle, and the service must stay open until then. The
// errors are those of [access.Issuer.Take].
func (s *Service) Charge(
	ctx context.Context, ticket *access.Ticket, use string, items int, isRepeated bool,
) (settle func(stored bool), err error) {
	settle = func(stored bool) {
		if !stored {
			s.uploads.GiveBack(ctx, s.issuer, ticket.ID, use)
		}
	}
	if err := s.issuer.Take(ctx, ticket, use, items); err != nil {
		if errors.Is(err, tokens.ErrUnavailable) && !isRepeated { // they may be counted
			settle(false)
		}
		return nil, err
	}
	return settle, nil
}

// ForcedBy returns what the caller's ticket, or the folder of a user, forces on an upload.
func ForcedBy(caller access.Caller) upload.Forced {
	t := caller.Ticket
	if t == nil {
		return upload.Forced{Below: caller.Account.Folder}
	}
	return upload.Forced{Alias: t.Alias, SubFolder: t.SubFolder, Filename: t.Filename, MaxSize: t.MaxSize, MaxFiles: t.Left()}
}

// EndUpload terminates the unfinished upload of a name in a list of the uploads of a storage. The
// error is fs.ErrNotExist if there is no such upload.
func (s *Service) EndUpload(ctx context.Context, storage *storagedrivers.Storage, name string, actor item.Actor) error {
	store := s.Uploads()
	if store == nil {
		return fs.ErrNotExist
	}
	u, err := store.Named(ctx, storage, name)
	if err == nil {
		err = s.TerminateUpload(ctx, u, actor)
	}
	if errors.Is(err, resumable.ErrUnknown) || errors.Is(err, storagedrivers.ErrInvalidKey) {
		return fs.ErrNotExist
	}
	return err
}
