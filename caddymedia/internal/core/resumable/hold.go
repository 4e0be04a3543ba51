package resumable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// The shortest and the longest time for which an upload is held.
const (
	MinHold = time.Minute
	MaxHold = 7 * 24 * time.Hour
)

// MaxKept is the most held uploads that are kept together.
const MaxKept = 200

// Held is what is known of a held upload: it is complete and has passed the checks, and its item
// does not exist until it is kept. A part of it has only the time.
type Held struct {
	// For is how long it is held, from the time of its object on.
	For time.Duration `json:"for"`
	// ContentType is that of the item that it would be.
	ContentType string `json:"content_type,omitempty"`
	// Width, Height and ThumbHash are those of [derived.Facts], if the alias has them.
	Width     int    `json:"width,omitempty"`
	Height    int    `json:"height,omitempty"`
	ThumbHash string `json:"thumbhash,omitempty"`
}

// hold holds a complete upload that has passed the checks as file, after its parts. An upload that
// is held already stays as it is.
func (u *Upload) hold(ctx context.Context, file upload.Checked) error {
	held := Held{For: u.Hold + time.Second, ContentType: file.ContentType} // records have whole seconds
	if facts := file.Facts; facts != nil {
		held.Width, held.Height, held.ThumbHash = facts.Width, facts.Height, facts.ThumbHash
	}
	for _, part := range u.parts {
		if err := part.putHeld(ctx, Held{For: held.For}); err != nil {
			return err
		}
	}
	if err := u.putHeld(ctx, held); err != nil {
		return err
	}
	u.setHeld(held)
	u.changed = u.store.Now()
	return nil
}

// setHeld notes that the upload is held, with its parts.
func (u *Upload) setHeld(held Held) {
	u.Held = &held
	for _, part := range u.parts {
		part.Held = &Held{For: held.For}
	}
}

func (u *Upload) putHeld(ctx context.Context, held Held) error {
	if err := put(ctx, u.storage, dataKey(u.ID, heldName), held); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("holding a resumable upload: %w", err)
	}
	return nil
}

// loadHeld finds whether the upload with a record is held. The error is ErrUnknown if it was
// removed meanwhile.
func (u *Upload) loadHeld(ctx context.Context, rec storagedrivers.Info) error {
	var held Held
	info, err := get(ctx, u.storage, dataKey(u.ID, heldName), &held)
	switch {
	case err != nil:
		return err
	case info.Key != "":
		u.setHeld(held)
		u.changedAt(rec, info.ModTime)
	case u.Complete() && !u.exists(ctx):
		return ErrUnknown
	}
	return nil
}

// isPartOfHeld reports whether an upload that has expired by itself is, or may be, a part of a held
// one.
func (u *Upload) isPartOfHeld(ctx context.Context, rec storagedrivers.Info) bool {
	if u.Form != Partial {
		return false
	}
	err := u.loadHeld(ctx, rec)
	return err != nil || u.Held != nil && !u.store.Now().After(u.Expires())
}

// endOfParts returns when the last part of the upload ends.
func (u *Upload) endOfParts() (end time.Time) {
	for _, part := range u.parts {
		end = later(end, part.Expires())
	}
	return end
}

// CopyTo copies the bytes of a complete upload.
func (u *Upload) CopyTo(ctx context.Context, to io.Writer) error {
	for _, object := range u.objects() {
		if err := object.CopyTo(ctx, to); err != nil {
			return err
		}
	}
	return nil
}

// outcomeKey returns the key of the outcome, which for a held upload is looked up.
func (u *Upload) outcomeKey(ctx context.Context) (string, error) {
	key := outcomeKey(u.ID)
	if !isHeld(u.ID) {
		return key, nil
	}
	page, err := u.storage.List(ctx, storagedrivers.ListOptions{Prefix: key, Limit: 1})
	if err != nil {
		return "", fmt.Errorf("finding the outcome of a held upload: %w", err)
	}
	if len(page.Objects) == 1 {
		key = page.Objects[0].Key
	}
	return key, nil
}

// hold is the [upload.Holder] of an upload whose file has passed the checks.
func (a *attempt) hold(ctx context.Context, files []upload.Checked) error {
	if _, failure := a.authorize(ctx, upload.Commitment{}); failure != nil {
		return failure
	}
	return a.Upload.hold(ctx, files[0])
}

// HoldFile creates an upload of the bytes of a file that has passed the checks, and holds it. It is
// counted on the ticket of the rights, if there is one. If the upload exists, because of
// [Creation.Same], it is completed. After an error it is removed, unless another attempt may have
// taken it over; see [storagedrivers.WithLease].
func (s *Store) HoldFile(
	ctx context.Context, storage *storagedrivers.Storage, c Creation, file upload.Checked, rights Rights, reserve func() (func(), error),
) (*Upload, error) {
	c.Length = file.Size
	u, err := s.Create(ctx, storage, c)
	if err != nil || u.Outcome != nil || u.Held != nil {
		return u, err
	}
	if err = u.fill(ctx, file, rights, reserve); err != nil && !storagedrivers.LeaseLost(ctx) {
		if dropped := u.discard(context.WithoutCancel(ctx), Terminated, false); dropped != nil {
			s.Log.Warn("removing a held upload", "storage", storage.Name(), "error", dropped)
		}
	}
	return u, err
}

// fill adds the bytes of a file behind those of the upload, and holds it.
func (u *Upload) fill(ctx context.Context, file upload.Checked, rights Rights, reserve func() (func(), error)) error {
	_, err := file.Content.Seek(u.Offset(), io.SeekStart)
	if err == nil && u.Offset() < u.Length {
		err = u.Append(ctx, Body{Reader: file.Content, Offset: u.Offset(), Interrupt: func() {}, Reserve: reserve})
	}
	if err == nil && rights.Ticket != nil {
		if err = rights.Issuer.Take(ctx, rights.Ticket, u.ID, 1); err != nil {
			return u.store.uncounted(err)
		}
	}
	if err == nil {
		err = u.hold(ctx, file)
	}
	return err
}

// ended is the claim of an upload that is not kept any more.
const ended = "ended"

// errKept is the failure of a request for a held upload that another one keeps.
var errKept = item.Failf(item.Conflict, "it is kept, or was, together with others: send the same held uploads in the same order")

// ErrNotHeld is the failure of a request for an upload that is not held.
var ErrNotHeld = item.Failf(item.Missing, "there is no such held upload, or its time is over")

// claim claims a held upload for the upload that keeps it. The storage decides which one does. The
// error is errKept for any other, and ErrNotHeld if the held one has ended.
func (u *Upload) claim(ctx context.Context, by string) error {
	key := dataKey(u.ID, keptName)
	err := put(ctx, u.storage, key, by)
	if err == nil && !u.exists(ctx) { // the claim of another one was removed, after the record
		_ = u.store.remove(ctx, u.storage, key)
		if u.reloadOutcome(ctx) == nil {
			return errKept
		}
		return ErrNotHeld
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	var first string
	switch _, err := get(ctx, u.storage, key, &first); {
	case err != nil:
		return err
	case first == by:
		return nil
	case first == ended:
		return ErrNotHeld
	}
	return errKept
}

// Keep stores the items of the held uploads of one alias whose IDs are the parts of rec, all in
// their order or none. It returns them with their outcomes. However often it is called with the
// same parts, by any process that shares the storage and the token store, the items are stored
// once, until the uploads would have ended. rec may have a sub folder and, for one part, a filename
// that take the place of those of the uploads.
//
// These steps make it so, besides those of [Upload.Finish]:
//   - An upload of the form Keep has the parts. Its ID is made of theirs, so that the same parts
//     have the same one.
//   - It claims each part, and only then are the items stored. If nothing is, the claims end.
//   - The outcomes of the parts are stored, then its own, and only then are the parts removed.
//   - The service finishes it without its client after a crash, like any other complete upload.
func (s *Store) Keep(ctx context.Context, rec Record, f Finishing) (kept []*Upload, failures item.Failures) {
	f.Refusals = RecordNone
	for end := s.Now().Add(maxFinishWait); ; {
		kept, failures = s.keep(ctx, rec, f)
		isRunning := failures != nil && errors.Is(failures[0].Err, access.ErrRunning)
		if !isRunning || s.Now().After(end) {
			return kept, failures
		}
		select {
		case <-ctx.Done():
			return nil, failures
		case <-time.After(keepInterval):
		}
	}
}

// keepInterval is the time between two looks at uploads that another process keeps.
const keepInterval = 250 * time.Millisecond

func (s *Store) keep(ctx context.Context, rec Record, f Finishing) ([]*Upload, item.Failures) {
	parts, failures := s.partsOf(ctx, &rec)
	if failures != nil {
		s.Uploader.Observer.Refused(ctx, upload.Operation{Kind: rec.ItemKind(), Alias: rec.Alias, Actor: rec.actor()}, failures)
		return nil, failures
	}
	u, failures := s.keeping(ctx, rec, parts)
	if failures == nil {
		failures = u.Finish(ctx, f)
	}
	if failures != nil {
		return nil, failures
	}
	return parts, eachOf(parts, func(part *Upload) error {
		if part.Outcome != nil {
			return nil
		}
		return part.reloadOutcome(ctx)
	})
}

// partsOf returns the uploads that rec keeps, or the failures of those that are none.
func (s *Store) partsOf(ctx context.Context, rec *Record) ([]*Upload, item.Failures) {
	parts := make([]*Upload, len(rec.Parts))
	for i, id := range rec.Parts {
		parts[i] = &Upload{ID: id}
	}
	return parts, eachOf(parts, func(part *Upload) error {
		found, err := s.Find(ctx, rec.Owner, part.ID)
		switch {
		case errors.Is(err, ErrUnknown):
			return ErrNotHeld
		case err != nil:
			return err
		case found.Kind != rec.Kind, found.Alias != rec.Alias, found.Held == nil && (found.Outcome == nil || found.Outcome.Kept == ""), found.Form == Keep:
			return ErrNotHeld
		}
		*part = *found
		return nil
	})
}

// eachOf calls f for each of some uploads, several at a time. The failures have the IDs of theirs.
func eachOf(uploads []*Upload, f func(*Upload) error) (failures item.Failures) {
	for i, err := range guard.Each(len(uploads), besides, func(i int) error { return f(uploads[i]) }) {
		for _, failure := range failuresOf(err) {
			named := *failure
			named.Filename = uploads[i].ID
			failures = append(failures, &named)
		}
	}
	return failures
}

// keeping returns the upload that keeps the parts, which it creates if there is none.
func (s *Store) keeping(ctx context.Context, rec Record, parts []*Upload) (*Upload, item.Failures) {
	storage := parts[0].storage
	rec.Version, rec.Form, rec.Created = version, Keep, s.Now().UTC().Truncate(time.Second)
	u := &Upload{Record: rec, store: s, storage: storage, ID: finalID(&rec, storage.Name())}
	found, err := s.Find(ctx, rec.Owner, u.ID)
	if !errors.Is(err, ErrUnknown) {
		return found, failuresOf(err)
	}
	if failures := eachOf(parts, func(part *Upload) error {
		if part.Outcome != nil {
			return errKept
		}
		return nil
	}); failures != nil {
		return nil, failures
	}
	u.bytes, u.changed = newBytes(u), u.Created
	u.join(parts)
	err = put(ctx, storage, recordKey(u.Owner, u.ID), &u.Record)
	if errors.Is(err, fs.ErrExist) {
		u, err = s.Find(ctx, rec.Owner, u.ID)
	}
	return u, failuresOf(err)
}

// SubFolders returns the sub folders of the items of the upload, as submitted.
func (u *Upload) SubFolders() []string {
	if u.Form != Keep {
		return []string{u.SubFolder}
	}
	folders := make([]string, len(u.parts))
	for i, part := range u.parts {
		folders[i] = cmp.Or(u.SubFolder, part.SubFolder)
	}
	return folders
}

// recordParts stores the outcomes of held uploads whose items are stored.
func (u *Upload) recordParts(ctx context.Context, items []upload.Item) error {
	errs := guard.Each(len(u.parts), besides, func(i int) error {
		part := u.parts[i]
		outcome := outcomeOf(items[i])
		outcome.Record, outcome.Finished = part.Record, u.store.Now().UTC().Truncate(time.Second)
		outcome.Kept, outcome.Until = u.ID, part.Expires()
		if err := outcome.put(ctx, part); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("storing the outcome of a held upload: %w", err)
		}
		part.Outcome, part.Item = &outcome, &items[i]
		u.store.observe(&part.Record, Finished)
		return nil
	})
	return errors.Join(errs...)
}

// letGo removes an upload that has kept nothing, and its claims. Others may have claimed some of
// the parts. Errors are logged.
func (u *Upload) letGo(ctx context.Context) {
	for _, part := range u.parts {
		key, by := dataKey(part.ID, keptName), ""
		if _, err := get(ctx, part.storage, key, &by); err == nil && by == u.ID {
			_ = u.store.remove(ctx, part.storage, key)
		}
	}
	_ = u.store.remove(ctx, u.storage, recordKey(u.Owner, u.ID))
}

// abandon removes an upload that cannot keep its parts any more. If it may have kept some, their
// claims stay.
func (u *Upload) abandon(ctx context.Context) {
	lease, err := u.lease(ctx, func() {})
	if err != nil {
		return // another process may keep them
	}
	if lease.IsRepeated {
		u.parts = nil
	}
	u.letGo(ctx)
	_ = lease.Forget(ctx) // it has kept nothing
}

// FindHeld returns a held upload of an owner. The error is ErrNotHeld if there is none, and for a
// caller with a ticket if another one has made it.
func (s *Store) FindHeld(ctx context.Context, owner, id, ticket string) (*Upload, error) {
	u, err := s.Find(ctx, owner, id)
	if errors.Is(err, ErrUnknown) || err == nil && (u.Held == nil || !u.Form.HasItem() || ticket != "" && u.Ticket != ticket) {
		return nil, ErrNotHeld
	}
	return u, err
}
