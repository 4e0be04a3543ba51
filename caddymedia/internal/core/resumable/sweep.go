package resumable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// SweepOptions select leftovers, and whether they are removed.
type SweepOptions struct {
	// DryRun finds leftovers without removing them.
	DryRun bool
	// OlderThan is the time since the last change of a leftover. 0 is any.
	OlderThan time.Duration
	// Found, if set, is called for each leftover, after its removal. info has the size of all its
	// bytes.
	Found func(kind Leftover, info storagedrivers.Info, err error)

	// Quiet is the time after which an upload that receives no byte is idle.
	Quiet time.Duration
	// Wanted, if set, is called with the ID and the time of the last change of each idle upload. If
	// it returns false, the sweep leaves that upload alone.
	Wanted func(id string, changed time.Time) bool
	// Idle, if set, is called for the others that have not expired.
	Idle func(*Upload)
}

// Leftover is a kind of data that a sweep removes.
type Leftover int

// All kinds of leftovers.
const (
	ExpiredUpload Leftover = iota
	ExpiredOutcome
	DataWithoutRecord
)

// selects reports whether a leftover is old enough.
func (o *SweepOptions) selects(now, changed time.Time) bool {
	return o.OlderThan == 0 || now.Sub(changed) >= o.OlderThan
}

// found calls Found.
func (o *SweepOptions) found(kind Leftover, info storagedrivers.Info, err error) {
	if o.Found != nil {
		o.Found(kind, info, err)
	}
}

// Open is the number of the unfinished uploads of a storage, and their bytes.
type Open struct {
	Uploads int
	Bytes   int64
}

// Sweep removes the expired uploads of a storage, data without a record, and idle final uploads
// that miss a part. It returns how many others there are. An error does not stop it, unless the
// storage cannot be listed or is closed.
func (s *Store) Sweep(ctx context.Context, storage *storagedrivers.Storage, opts SweepOptions) (open Open, err error) {
	data, err := s.dataOf(ctx, storage) // before the records: an upload has a record before its data
	if err != nil {
		return open, err
	}
	for rec, err := range storage.All(ctx, openFolder) {
		if err != nil {
			return open, fmt.Errorf("listing resumable uploads: %w", err)
		}
		id, ok := idOfRecord(rec.Key)
		if !ok {
			continue
		}
		upload := data[id]
		delete(data, id)
		upload.Key, upload.ModTime = rec.Key, later(rec.ModTime, upload.ModTime)
		age := s.Now().Sub(upload.ModTime)
		look := age > s.least(id, upload.Size) && opts.selects(s.Now(), upload.ModTime)
		if opts.Wanted != nil {
			look = age >= opts.Quiet && opts.Wanted(id, upload.ModTime)
		}
		if look {
			u, err := s.load(ctx, storage, rec.Key)
			switch {
			case errors.Is(err, errExpired), errors.Is(err, ErrUnknown) && age > s.Expires:
				failed := s.removeExpired(ctx, storage, id, rec.Key, opts.DryRun)
				opts.found(ExpiredUpload, upload, failed)
				if isOver(ctx, failed) {
					return open, failed
				}
				continue
			case isOver(ctx, err):
				return open, err
			case errors.Is(err, ErrUnknown) && !opts.DryRun:
				s.removeEnded(ctx, storage, rec.Key)
			case err == nil && opts.Idle != nil:
				opts.Idle(u)
			}
		}
		open.Uploads++
		open.Bytes += upload.Size
	}
	return open, s.sweepData(ctx, storage, data, opts)
}

// sweepData removes data without a record.
func (s *Store) sweepData(ctx context.Context, storage *storagedrivers.Storage, data map[string]storagedrivers.Info, opts SweepOptions) error {
	for id, left := range data {
		if !opts.selects(s.Now(), left.ModTime) {
			continue
		}
		var failed error
		if !opts.DryRun {
			failed = s.removeData(ctx, storage, id)
		}
		opts.found(DataWithoutRecord, left, failed)
		if isOver(ctx, failed) {
			return failed
		}
	}
	return nil
}

// removeExpired removes an upload.
func (s *Store) removeExpired(ctx context.Context, storage *storagedrivers.Storage, id, key string, dryRun bool) error {
	if dryRun {
		return nil
	}
	var of Record
	_, _ = get(ctx, storage, key, &of) // a damaged one has no kind
	if err := s.remove(ctx, storage, key); err != nil {
		return err
	}
	s.observe(&of, Expired)
	return s.removeData(ctx, storage, id)
}

// removeEnded removes the record of a final upload that misses a part: its removal was interrupted,
// or the part was terminated. If it was finished, removeEnded removes its other parts too. Held
// uploads that it has not kept may be kept by another one.
func (s *Store) removeEnded(ctx context.Context, storage *storagedrivers.Storage, key string) {
	u := &Upload{store: s, storage: storage}
	u.ID, _ = idOfRecord(key)
	u.bytes = newBytes(u)
	if rec, err := get(ctx, storage, key, &u.Record); err != nil || rec.Key == "" || u.Version != version || !u.Form.hasParts() {
		return
	}
	ended := *u
	err := ended.reloadOutcome(ctx)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return
	}
	isFinished := err == nil
	if isFinished || u.Form == Keep {
		for _, id := range u.Record.Parts {
			if part, err := s.Find(ctx, u.Owner, id); err == nil {
				u.parts = append(u.parts, part)
			}
		}
	}
	if !isFinished && u.Form == Keep {
		u.abandon(ctx)
		return
	}
	u.removeFinished(ctx, u.parts, ended.Outcome)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// dataOf returns the beginning of the keys, the size and the time of the last change of the data of
// each upload.
func (s *Store) dataOf(ctx context.Context, storage *storagedrivers.Storage) (map[string]storagedrivers.Info, error) {
	data := map[string]storagedrivers.Info{}
	for info, err := range storage.All(ctx, dataFolder) {
		if err != nil {
			return nil, fmt.Errorf("listing the data of resumable uploads: %w", err)
		}
		if id, ok := idOfData(info.Key); ok {
			of := data[id]
			data[id] = storagedrivers.Info{
				Key: dataKey(id, ""), Size: of.Size + info.Size, ModTime: later(of.ModTime, info.ModTime),
			}
		}
	}
	return data, nil
}

// SweepOutcomes removes the outcomes of a storage that have expired. It lists all.
func (s *Store) SweepOutcomes(ctx context.Context, storage *storagedrivers.Storage, opts SweepOptions) error {
	before := s.Now().Add(-max(s.Expires, opts.OlderThan))
	for info, err := range storage.All(ctx, doneFolder) {
		if err != nil {
			return fmt.Errorf("listing finished resumable uploads: %w", err)
		}
		hasExpired := info.ModTime.Before(before)
		if end, isHeld := endOfOutcome(info.Key); isHeld {
			hasExpired = s.Now().After(end) && opts.selects(s.Now(), info.ModTime)
		}
		if hasExpired {
			var err error
			if !opts.DryRun {
				err = s.remove(ctx, storage, info.Key)
			}
			opts.found(ExpiredOutcome, info, err)
			if isOver(ctx, err) {
				return err
			}
		}
	}
	return nil
}

// maxOpening is the number of uploads whose state a listing finds at a time.
const maxOpening = 8

// Name returns the name of an unfinished upload on its storage, for [Store.Named].
func (u *Upload) Name() string { return recordKey(u.Owner, u.ID)[len(openFolder):] }

// List returns a page of the unfinished uploads of a storage, from at most limit records, in the
// order of their names. next is the cursor of the next page, empty after the last one. Uploads that
// end meanwhile are left out. If the state of some cannot be found, the error is about these, and
// the page has the others.
func (s *Store) List(
	ctx context.Context, storage *storagedrivers.Storage, cursor string, limit int,
) (uploads []*Upload, next string, err error) {
	page, err := storage.List(ctx, storagedrivers.ListOptions{Prefix: openFolder, Cursor: cursor, Limit: limit})
	if err != nil {
		return nil, "", fmt.Errorf("listing resumable uploads: %w", err)
	}
	found := make([]*Upload, len(page.Objects))
	errs := guard.Each(len(found), maxOpening, func(i int) (err error) {
		found[i], err = s.load(ctx, storage, page.Objects[i].Key)
		return err
	})
	for i, u := range found {
		switch {
		case errors.Is(errs[i], ErrUnknown): // ended meanwhile, or no record
			errs[i] = nil
		case errs[i] == nil:
			uploads = append(uploads, u)
		}
	}
	return uploads, page.Next, errors.Join(errs...)
}

// HasOpen reports whether a storage has unfinished uploads, with one list request.
func (s *Store) HasOpen(ctx context.Context, storage *storagedrivers.Storage) (bool, error) {
	page, err := storage.List(ctx, storagedrivers.ListOptions{Prefix: openFolder, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("listing resumable uploads: %w", err)
	}
	return len(page.Objects) > 0 || page.Next != "", nil
}

// Named returns an unfinished upload of a storage by its [Upload.Name]. The error is ErrUnknown if
// there is none.
func (s *Store) Named(ctx context.Context, storage *storagedrivers.Storage, name string) (*Upload, error) {
	return s.load(ctx, storage, openFolder+name)
}
