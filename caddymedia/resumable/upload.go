package resumable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Upload is the state of an upload when it was found. It is for one goroutine.
type Upload struct {
	// ID of the upload, in lower-case letters and digits.
	ID string
	Record

	// Outcome of a finished upload; nil before.
	Outcome *Outcome

	store    *Store
	storage  *storagedrivers.Storage
	parts    []*Upload // of a final upload
	segments []storagedrivers.Info
	grown    bool  // the only segment is an object that grows
	offset   int64 // the end of the bytes
	claims   int
	changed  time.Time // of the last byte
}

// Storage returns the storage that holds the upload.
func (u *Upload) Storage() *storagedrivers.Storage { return u.storage }

// Offset returns the number of bytes that are stored. They survive a crash.
func (u *Upload) Offset() int64 { return u.offset }

// Complete reports whether all bytes are stored. A final upload is complete if its parts are.
func (u *Upload) Complete() bool { return u.Length >= 0 && u.offset == u.Length }

// Claimed reports whether the item may have been stored already.
func (u *Upload) Claimed() bool { return u.claims > 0 }

// Expires returns when the upload, or its outcome, will be removed.
func (u *Upload) Expires() time.Time {
	if u.Outcome != nil {
		return u.Outcome.Finished.Add(u.store.Expires)
	}
	return u.changed.Add(u.store.Expires)
}

// Changed returns the time of the last byte.
func (u *Upload) Changed() time.Time { return u.changed }

// Reload finds the present state of the upload. The error is ErrUnknown if it does not exist any
// more.
func (u *Upload) Reload(ctx context.Context) error {
	fresh := &Upload{ID: u.ID, store: u.store, storage: u.storage}
	rec, err := get(ctx, u.storage, recordKey(u.Owner, u.ID), &fresh.Record)
	if err != nil {
		return err
	}
	if rec.Key == "" {
		return u.reloadOutcome(ctx)
	}
	if fresh.Owner != u.Owner {
		return ErrUnknown
	}
	if err := fresh.load(ctx, rec); err != nil {
		return err
	}
	*u = *fresh
	return nil
}

// load finds the state of an upload whose record was read. rec is the object of the record.
func (u *Upload) load(ctx context.Context, rec storagedrivers.Info) error {
	u.changed = u.Created
	switch err := u.resolveParts(ctx); {
	case errors.Is(err, ErrParts):
		return u.reloadOutcome(ctx) // it is being removed, after its parts
	case err != nil:
		return err
	}
	if err := u.loadData(ctx, rec); err != nil {
		return err
	}
	if u.store.Now().After(u.Expires()) {
		return ErrUnknown
	}
	return nil
}

func (u *Upload) reloadOutcome(ctx context.Context) error {
	var o Outcome
	info, err := get(ctx, u.storage, outcomeKey(u.ID), &o)
	if err != nil {
		return err
	}
	if info.Key == "" || o.Owner != u.Owner {
		return ErrUnknown
	}
	ended := &Upload{ID: u.ID, Record: o.Record, Outcome: &o, store: u.store, storage: u.storage, changed: o.Finished}
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
	if len(u.Record.Parts) == 0 {
		return nil
	}
	u.Length, u.offset = 0, 0
	found := map[string]*Upload{} // a part may occur more than once
	for _, id := range u.Record.Parts {
		part := found[id]
		if part == nil {
			var err error
			part, err = u.store.Find(ctx, u.Owner, id)
			if errors.Is(err, ErrUnknown) {
				return ErrParts
			}
			if err != nil {
				return err
			}
			found[id] = part
		}
		u.parts = append(u.parts, part)
		u.Length += part.Length
		u.offset += part.offset
	}
	return nil
}

// loadData finds the segments, the length and the claims. Only differences to the time of the record
// count, because the clock of the storage, or its time zone, may be another one.
func (u *Upload) loadData(ctx context.Context, rec storagedrivers.Info) error {
	prefix := dataKey(u.ID, "")
	for info, err := range u.storage.All(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("finding the bytes of a resumable upload: %w", err)
		}
		if later := u.Created.Add(info.ModTime.Sub(rec.ModTime)); !rec.ModTime.IsZero() && later.After(u.changed) {
			u.changed = later
		}
		name := info.Key[len(prefix):]
		switch {
		case name == lengthName:
			err = u.loadLength(ctx)
		case name == grownName:
			err = u.loadGrown(ctx, info.Key)
		case strings.HasPrefix(name, claimPrefix):
			u.claims++
		default:
			u.addSegment(name, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addSegment adds a segment that begins at the end of those before. The listing is sorted.
func (u *Upload) addSegment(name string, info storagedrivers.Info) {
	offset, err := strconv.ParseInt(name, 10, 64)
	if err != nil || offset != u.offset || info.Size == 0 {
		return
	}
	u.segments = append(u.segments, info)
	u.offset += info.Size
}

func (u *Upload) loadLength(ctx context.Context) error {
	info, err := get(ctx, u.storage, dataKey(u.ID, lengthName), &u.Length)
	if err == nil && info.Key == "" {
		err = ErrUnknown
	}
	return err
}

// SetLength sets the length of an upload that was created without one. The error is ErrLength if it
// has another one.
func (u *Upload) SetLength(ctx context.Context, length int64) error {
	if u.Length == Unknown {
		err := put(ctx, u.storage, dataKey(u.ID, lengthName), length)
		if err == nil {
			u.Length = length
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("storing the length of a resumable upload: %w", err)
		}
		if err := u.loadLength(ctx); err != nil {
			return err
		}
	}
	if u.Length != length {
		return ErrLength
	}
	return nil
}
