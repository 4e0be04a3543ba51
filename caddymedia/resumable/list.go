package resumable

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/caddymedia/media/storagedrivers"
)

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
	found, errs := make([]*Upload, len(page.Objects)), make([]error, len(page.Objects))
	var opening errgroup.Group // each upload keeps its own error
	opening.SetLimit(maxOpening)
	for i, record := range page.Objects {
		opening.Go(func() error {
			found[i], errs[i] = s.load(ctx, storage, record.Key)
			return nil
		})
	}
	_ = opening.Wait() // nothing above fails
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
