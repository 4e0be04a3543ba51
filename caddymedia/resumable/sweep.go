package resumable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Sweep removes the expired uploads of a storage, and data without a record. It returns the number
// of the uploads. For each other upload to which no byte was added for the time of quiet it calls
// wanted with the ID and the time of the last change, and idle if that returns true. An error does
// not stop it, unless the storage cannot be listed.
func (s *Store) Sweep(
	ctx context.Context, storage *storagedrivers.Storage, quiet time.Duration,
	wanted func(id string, changed time.Time) bool, idle func(*Upload),
) (expired int, err error) {
	data, err := s.dataOf(ctx, storage) // before the records: an upload has a record before its data
	if err != nil {
		return 0, err
	}
	for rec, err := range storage.All(ctx, openFolder) {
		if err != nil {
			return expired, fmt.Errorf("listing resumable uploads: %w", err)
		}
		id, ok := idOfRecord(rec.Key)
		if !ok {
			continue
		}
		changed := rec.ModTime
		if last := data[id]; last.After(changed) {
			changed = last
		}
		delete(data, id)
		age := s.Now().Sub(changed)
		switch {
		case age > s.Expires:
			var of Record
			_, _ = get(ctx, storage, rec.Key, &of) // a damaged one has no kind
			if s.hasExpired(ctx, storage, rec.Key) && s.remove(ctx, storage, rec.Key) {
				s.observe(of.Kind, Expired)
				s.removeData(ctx, storage, id)
				expired++
			}
		case age >= quiet && wanted(id, changed):
			if u, err := s.load(ctx, storage, rec.Key); err == nil {
				idle(u)
			}
		}
	}
	for id := range data {
		s.removeData(ctx, storage, id)
	}
	return expired, nil
}

// hasExpired reports whether the upload of a record has expired, or cannot be read any more. The
// times of a listing are not enough: the clock of the storage may be another one.
func (s *Store) hasExpired(ctx context.Context, storage *storagedrivers.Storage, key string) bool {
	_, err := s.load(ctx, storage, key)
	_, broken := errors.AsType[*json.SyntaxError](err)
	return errors.Is(err, ErrUnknown) || broken
}

// dataOf returns the time of the last change of the data of each upload.
func (s *Store) dataOf(ctx context.Context, storage *storagedrivers.Storage) (map[string]time.Time, error) {
	last := map[string]time.Time{}
	for info, err := range storage.All(ctx, dataFolder) {
		if err != nil {
			return nil, fmt.Errorf("listing the data of resumable uploads: %w", err)
		}
		if id, ok := idOfData(info.Key); ok && !info.ModTime.Before(last[id]) {
			last[id] = info.ModTime
		}
	}
	return last, nil
}

// SweepOutcomes removes the outcomes of a storage that have expired, and returns their number. It
// lists those of two days at least.
func (s *Store) SweepOutcomes(ctx context.Context, storage *storagedrivers.Storage) (removed int, err error) {
	before := s.Now().Add(-s.Expires)
	for info, err := range storage.All(ctx, doneFolder) {
		if err != nil {
			return removed, fmt.Errorf("listing finished resumable uploads: %w", err)
		}
		if len(info.Key) > len(doneFolder)+dayLength && info.Key[len(doneFolder):][:dayLength] > day(before) {
			return removed, nil // this one and those behind it were created later
		}
		if info.ModTime.Before(before) {
			s.remove(ctx, storage, info.Key)
			removed++
		}
	}
	return removed, nil
}
