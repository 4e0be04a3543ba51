package media

import (
	"context"
	"errors"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/resumable"
	"github.com/caddymedia/media/storagedrivers"
)

// EndUpload terminates the unfinished upload of a name in a list of the uploads of a storage. The
// error is fs.ErrNotExist if there is no such upload.
func (s *Service) EndUpload(ctx context.Context, storage *storagedrivers.Storage, name string, actor Actor) error {
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
