package resumable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// The IDs of the parts of a multipart upload begin like its own. So one listing finds them all, and
// each of the parts that were sent under one number has an ID of its own. The item is that of the
// completion of some of them.
const (
	groupLength  = dayLength + 16
	numberLength = 3
	// maxGroup is the most numbers of the records of a multipart upload: of 10,000 parts and its own.
	maxGroup = 10_001
)

// group returns the beginning that the IDs of a multipart upload and of its parts share. Other
// uploads share none.
func group(id string) string { return id[:groupLength] }

// numberText returns the number of a part in its ID.
func numberText(id string) string { return id[groupLength : groupLength+numberLength] }

// partStart returns the beginning that the IDs of the parts of one number share.
func partStart(multipart string, number int) string {
	return group(multipart) + fmt.Sprintf("%0*s", numberLength, strconv.FormatInt(int64(number), sizeBase))
}

// partID returns the ID of a part, with the rest of a new ID.
func partID(multipart string, number int, id string) string {
	return partStart(multipart, number) + id[groupLength+numberLength:]
}

// NumberOf returns the number in the ID of a part of a multipart upload, and false for other IDs.
func NumberOf(multipart, id string) (number int, ok bool) {
	if !validID(multipart) || !validID(id) || group(id) != group(multipart) || id == multipart {
		return 0, false
	}
	n, err := strconv.ParseUint(numberText(id), sizeBase, 16)
	return int(n), err == nil
}

// besides is how many parts are read at the same time.
const besides = 8

// MultipartParts returns the complete parts of a multipart upload by their numbers, the last one of
// each number. The upload may have ended.
func (s *Store) MultipartParts(ctx context.Context, multipart *Upload) ([]*Upload, error) {
	found, err := s.partsFrom(ctx, multipart, group(multipart.ID))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b *Upload) int {
		if a.Number != b.Number {
			return a.Number - b.Number
		}
		return b.due.Compare(a.due) // by the clock of the storage
	})
	return slices.CompactFunc(found, func(a, b *Upload) bool { return a.Number == b.Number }), nil
}

// partsFrom returns the complete parts of a multipart upload whose IDs have a beginning, in any
// order.
func (s *Store) partsFrom(ctx context.Context, multipart *Upload, start string) ([]*Upload, error) {
	var (
		mu    sync.Mutex
		found []*Upload
	)
	work := guard.NewGroup(besides)
	for info, err := range multipart.storage.All(ctx, recordKey(multipart.Owner, start)) {
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listing the parts of an upload: %w", err), work.Wait())
		}
		work.Go(func() error {
			u, err := s.load(ctx, multipart.storage, info.Key)
			if errors.Is(err, ErrUnknown) {
				return nil
			}
			if err == nil && u.Form == Part && u.Multipart == multipart.ID && u.Owner == multipart.Owner && u.Complete() {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, u)
			}
			return err
		})
	}
	return found, work.Wait()
}

// CompletePart completes a part of a multipart upload that has all its bytes. It takes the place of
// the parts of its number that are complete already: they are removed. Of parts that are completed
// at the same time, all may stay. The checksums are kept for a completion. The error is ErrUnknown
// if the multipart upload has ended meanwhile.
func (u *Upload) CompletePart(ctx context.Context, multipart *Upload, sums map[string]string) error {
	before, err := u.store.partsFrom(ctx, multipart, partStart(multipart.ID, u.Number))
	if err == nil {
		err = u.setEnding(ctx, ending{Length: u.Offset(), Sums: sums})
	}
	if err == nil {
		err = multipart.Reload(ctx)
	}
	if err != nil {
		return err
	}
	for _, part := range before {
		if part.ID == u.ID { // it was created with its length
			continue
		}
		if err := part.Terminate(ctx); err != nil {
			u.store.Log.Warn("removing a part that was sent again", "storage", u.storage.Name(), "error", err)
		}
	}
	return nil
}

// FindFinal returns the final upload of a record, if there is one. The error is ErrUnknown
// otherwise.
func (s *Store) FindFinal(ctx context.Context, storage *storagedrivers.Storage, rec Record) (*Upload, error) {
	return s.Find(ctx, rec.Owner, finalID(&rec, storage.Name()))
}

// Multiparts returns the multipart uploads of an owner, but for those of a storage that cannot be
// reached.
func (s *Store) Multiparts(ctx context.Context, owner string) ([]*Upload, error) {
	var all []*Upload
	seen := map[storagedrivers.Location]bool{}
	for _, storage := range s.Storages {
		if seen[storage.Location()] {
			continue
		}
		seen[storage.Location()] = true
		for info, err := range storage.All(ctx, recordKey(owner, "")) {
			var u *Upload
			if err == nil {
				u, err = s.load(ctx, storage, info.Key)
			}
			switch {
			case errors.Is(err, ErrUnknown):
			case errors.Is(err, storagedrivers.ErrUnavailable):
				s.Log.Warn("listing multipart uploads", "storage", storage.Name(), "error", err)
			case err != nil:
				return nil, fmt.Errorf("listing multipart uploads: %w", err)
			case u.Owner == owner && u.Form == Multipart:
				all = append(all, u)
			}
		}
	}
	return all, nil
}

// EndMultipart removes a multipart upload and all its parts. After an error it can be repeated.
func (u *Upload) EndMultipart(ctx context.Context) error {
	err := u.endParts(ctx)
	if err == nil {
		err = u.Terminate(ctx)
	}
	if err == nil {
		err = u.endParts(ctx) // those that were begun before
	}
	return err
}

// endParts removes the parts of a multipart upload. It goes on after an error.
func (u *Upload) endParts(ctx context.Context) error {
	work := guard.NewGroup(besides)
	for info, err := range u.storage.All(ctx, recordKey(u.Owner, group(u.ID))) {
		if err != nil {
			return errors.Join(err, work.Wait())
		}
		if info.Key == recordKey(u.Owner, u.ID) {
			continue
		}
		work.Go(func() error {
			part, err := u.store.load(ctx, u.storage, info.Key)
			if errors.Is(err, ErrUnknown) {
				return nil
			} else if err != nil {
				return err
			}
			return part.Terminate(ctx)
		})
	}
	return work.Wait()
}
