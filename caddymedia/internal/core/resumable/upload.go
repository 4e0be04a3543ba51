package resumable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// Upload is the state of an upload when it was found. It is for one goroutine.
type Upload struct {
	// ID of the upload, in lower-case letters and digits.
	ID string
	Record

	// Outcome of a finished upload; nil before.
	Outcome *Outcome
	// Held is what is known of an upload that is held; nil for others.
	Held *Held
	// Item is the item that [Upload.Finish] has just stored; nil if it was stored before.
	Item *upload.Item
	// Sums are the checksums of a part of a multipart upload by their names, in base64, see
	// [Upload.CompletePart].
	Sums map[string]string

	store   *Store
	storage *storagedrivers.Storage
	parts   []*Upload // of a final upload
	bytes   *storagedrivers.Growing
	offset  int64     // the end of the bytes
	late    bool      // the length was not known at the creation
	changed time.Time // of the last byte
	wasDue  bool      // it was complete when it was found: an earlier request may have stored the item
	due     time.Time // since when, by the clock of the storage
}

// Storage returns the storage that holds the upload.
func (u *Upload) Storage() *storagedrivers.Storage { return u.storage }

// Offset returns the number of bytes that are stored. They survive a crash of this process. After
// [Upload.Append] they are as durable as the storage can make them.
func (u *Upload) Offset() int64 { return u.offset }

// Complete reports whether all bytes are stored. A final upload is complete if its parts are.
func (u *Upload) Complete() bool { return u.Length >= 0 && u.offset == u.Length }

// Expires returns when the upload, or its outcome, will be removed.
func (u *Upload) Expires() time.Time {
	switch {
	case u.Outcome != nil && u.Outcome.Kept != "":
		return u.Outcome.Until
	case u.Outcome != nil:
		return u.Outcome.Finished.Add(u.store.Expires)
	case u.Held != nil:
		return u.changed.Add(u.Held.For)
	case u.Form == Keep:
		return u.endOfParts()
	case u.Ticket == "":
		return u.changed.Add(u.store.Expires)
	}
	expires := later(u.changed, u.TicketExpires).Add(ticketTime)
	if u.offset == 0 {
		expires = u.changed.Add(emptyTime)
	}
	if latest := u.changed.Add(u.store.Expires); latest.Before(expires) {
		return latest
	}
	return expires
}

const (
	// ticketTime is how long an upload that a ticket began is kept after the ticket and the last
	// byte.
	ticketTime = time.Hour
	// emptyTime is how long it is kept without any byte.
	emptyTime = 15 * time.Minute
)

// least returns the shortest time for which an upload is kept without a change.
func (s *Store) least(id string, offset int64) time.Duration {
	switch {
	case isHeld(id):
		return min(s.Expires, MinHold)
	case ticketTag(id) == tag(""):
		return s.Expires
	case offset == 0:
		return min(s.Expires, emptyTime)
	default:
		return min(s.Expires, ticketTime)
	}
}

// Changed returns the time of the last byte.
func (u *Upload) Changed() time.Time { return u.changed }

// Reload finds the present state of the upload. The error is ErrUnknown if it does not exist any
// more.
func (u *Upload) Reload(ctx context.Context) error { return u.reload(ctx, nil) }

// reload is Reload with the parts of the upload, if they are known. They are as they were found:
// one that has ended since is noticed when its bytes are read.
func (u *Upload) reload(ctx context.Context, parts []*Upload) error {
	fresh, err := u.store.loadWith(ctx, u.storage, recordKey(u.Owner, u.ID), parts)
	switch {
	case errors.Is(err, ErrUnknown):
		return u.reloadOutcome(ctx)
	case err != nil:
		return err
	case fresh.Owner != u.Owner:
		return ErrUnknown
	}
	*u = *fresh
	return nil
}

// load returns the upload of a record. The error is ErrUnknown if it has ended or expired. An
// upload that a request of this process adds bytes to does not expire.
func (s *Store) load(ctx context.Context, storage *storagedrivers.Storage, key string) (*Upload, error) {
	return s.loadWith(ctx, storage, key, nil)
}

// loadWith is load with the parts of the upload, if they are known.
func (s *Store) loadWith(ctx context.Context, storage *storagedrivers.Storage, key string, parts []*Upload) (*Upload, error) {
	id, ok := idOfRecord(key)
	if !ok {
		return nil, ErrUnknown
	}
	// Bytes are removed after their record. What was found before the record was read is whole.
	bytes, err := storage.Growing(ctx, dataKey(id, bytesName))
	if err != nil {
		return nil, fmt.Errorf("finding the bytes of a resumable upload: %w", err)
	}
	u := &Upload{ID: id, store: s, storage: storage, bytes: bytes, offset: bytes.Size()}
	rec, err := get(ctx, storage, key, &u.Record)
	if err != nil {
		return nil, err
	}
	if rec.Key == "" || u.Version != version {
		return nil, ErrUnknown
	}
	u.changed = u.Created
	u.changedAt(rec, bytes.ModTime())
	u.due = later(rec.ModTime, bytes.ModTime()) // a final upload is complete when its record is stored
	if parts != nil {
		u.join(parts)
	} else if err := u.resolveParts(ctx); errors.Is(err, ErrParts) {
		return nil, ErrUnknown // it is being removed, after its parts
	} else if err != nil {
		return nil, err
	}
	if u.late = u.Length == Unknown; u.late {
		length, err := u.loadLength(ctx)
		if err == nil && length.Key == "" && !u.exists(ctx) { // the length was removed meanwhile
			err = ErrUnknown
		}
		if err != nil {
			return nil, err
		}
		u.changedAt(rec, length.ModTime)
		u.due = later(u.due, length.ModTime)
	}
	if u.Hold > 0 {
		if err := u.loadHeld(ctx, rec); err != nil {
			return nil, err
		}
	}
	if s.Now().After(u.Expires()) && !s.Active.writing.has(u.location()) && !u.isPartOfHeld(ctx, rec) {
		return nil, errExpired
	}
	u.wasDue = u.isDue()
	return u, nil
}

// exists reports whether the upload has a record, or may have one.
func (u *Upload) exists(ctx context.Context) bool {
	_, err := u.storage.Stat(ctx, recordKey(u.Owner, u.ID))
	return !errors.Is(err, fs.ErrNotExist)
}

// newBytes returns the bytes of an upload of which nothing need be known.
func newBytes(u *Upload) *storagedrivers.Growing {
	return u.storage.NewGrowing(dataKey(u.ID, bytesName))
}

// errExpired is the ErrUnknown of an upload that has expired.
var errExpired = fmt.Errorf("%w: expired", ErrUnknown)

func (u *Upload) reloadOutcome(ctx context.Context) error {
	var o Outcome
	key, err := u.outcomeKey(ctx)
	if err != nil {
		return err
	}
	info, err := get(ctx, u.storage, key, &o)
	if err != nil {
		return err
	}
	if info.Key == "" || o.Owner != u.Owner {
		return ErrUnknown
	}
	ended := &Upload{ID: u.ID, Record: o.Record, Outcome: &o, store: u.store, storage: u.storage, changed: o.Finished}
	ended.bytes = newBytes(ended)
	if u.store.Now().After(ended.Expires()) {
		return ErrUnknown
	}
	if ended.Length >= 0 {
		ended.offset = ended.Length
	}
	*u = *ended
	return nil
}

// resolveParts finds the parts of a final upload.
func (u *Upload) resolveParts(ctx context.Context) error {
	if !u.Form.hasParts() {
		return nil
	}
	ids := slices.Compact(slices.Sorted(slices.Values(u.Record.Parts))) // a part may occur more than once
	found := make([]*Upload, len(ids))
	work, ctx := guard.WithContext(ctx, besides)
	for i, id := range ids {
		work.Go(func() error {
			part, err := u.store.Find(ctx, u.Owner, id)
			if errors.Is(err, ErrUnknown) || err == nil && part.Outcome != nil {
				return ErrParts
			}
			found[i] = part
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	parts := make([]*Upload, len(u.Record.Parts))
	for i, id := range u.Record.Parts {
		at, _ := slices.BinarySearch(ids, id)
		parts[i] = found[at]
	}
	u.join(parts)
	return nil
}

// join sets the parts of a final upload, in their order.
func (u *Upload) join(parts []*Upload) {
	u.parts, u.Length, u.offset = parts, 0, 0
	for _, part := range parts {
		u.Length += part.Length
		u.offset += part.offset
	}
}

// changedAt makes at the time of the last change, if it is later. Only its difference to the time
// of the record counts, because the clock of the storage, or its time zone, may be another one.
func (u *Upload) changedAt(rec storagedrivers.Info, at time.Time) {
	if !rec.ModTime.IsZero() && !at.IsZero() {
		u.changed = later(u.changed, u.Created.Add(at.Sub(rec.ModTime)))
	}
}

// loadLength finds the length that was set after the creation. Without one, the Info is zero.
func (u *Upload) loadLength(ctx context.Context) (storagedrivers.Info, error) {
	var end ending
	info, err := get(ctx, u.storage, dataKey(u.ID, lengthName), &end)
	if err == nil && info.Key != "" {
		u.Length, u.Sums = end.Length, end.Sums
	}
	return info, err
}

// ending is what is known at the end of an upload without a length.
type ending struct {
	Length int64             `json:"length"`
	Sums   map[string]string `json:"sums,omitempty"`
}

// MarshalJSON returns the length alone if there is nothing else.
func (e ending) MarshalJSON() ([]byte, error) {
	if len(e.Sums) == 0 {
		return json.Marshal(e.Length)
	}
	type plain ending
	return json.Marshal(plain(e))
}

// UnmarshalJSON reads both forms of MarshalJSON.
func (e *ending) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &e.Length) == nil {
		return nil
	}
	type plain ending
	return json.Unmarshal(b, (*plain)(e))
}

// SetLength sets the length of an upload that was created without one. The error is ErrLength if it
// has another one.
func (u *Upload) SetLength(ctx context.Context, length int64) error {
	return u.setEnding(ctx, ending{Length: length})
}

func (u *Upload) setEnding(ctx context.Context, end ending) error {
	if u.Length == Unknown {
		err := put(ctx, u.storage, dataKey(u.ID, lengthName), end)
		if err == nil {
			u.Length, u.Sums = end.Length, end.Sums
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("storing the length of a resumable upload: %w", err)
		}
		stored, err := u.loadLength(ctx)
		if err == nil && stored.Key == "" { // it was removed meanwhile
			err = ErrUnknown
		}
		if err != nil {
			return err
		}
	}
	if u.Length != end.Length {
		return ErrLength
	}
	return nil
}

// objects returns the objects that have the bytes, in their order.
func (u *Upload) objects() []*storagedrivers.Growing {
	if len(u.parts) == 0 {
		return []*storagedrivers.Growing{u.bytes}
	}
	objects := make([]*storagedrivers.Growing, len(u.parts))
	for i, part := range u.parts {
		objects[i] = part.bytes
	}
	return objects
}

// source returns the bytes of a complete upload for the uploader.
func (u *Upload) source() upload.Source {
	if u.Form != Keep {
		return upload.Staged(u.file())
	}
	files, folders := make([]upload.StagedFile, len(u.parts)), u.SubFolders()
	for i, part := range u.parts {
		files[i] = part.file()
		files[i].Name, files[i].SubFolder = cmp.Or(u.Filename, part.Filename), folders[i]
	}
	return upload.Staged(files...)
}

// file returns the file of a complete upload for the uploader.
func (u *Upload) file() upload.StagedFile {
	return upload.StagedFile{Name: u.Filename, Size: u.Length, Stage: func(
		ctx context.Context, storage *storagedrivers.Storage, stage upload.Stage,
	) (storagedrivers.Staged, error) {
		staged, err := storage.StageGrown(ctx, stage, u.objects()...)
		if errors.Is(err, storagedrivers.ErrChanged) { // another process has finished the upload, or it was removed
			err = &item.Failure{Reason: item.Unavailable, Message: "the upload has changed, ask for its offset", Err: err}
		}
		return staged, err
	}}
}
