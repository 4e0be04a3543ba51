package media

import (
	"context"
	"errors"
	"io"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// maxImports is how many addresses are fetched at once for the uploads of an account.
const maxImports = 4

// Importer returns the importer of an actor's uploads, within the limits of [Downloads]. Imports
// beyond the limit of the account wait.
func (s *Service) Importer(actor aliases.Actor) upload.Importer {
	return func(ctx context.Context, address string, alias *aliases.Alias) (string, io.ReadCloser, *aliases.Failure) {
		slot, err := s.bounds.imports.Acquire(ctx, queue.Request{Owner: actor.Owner(), Most: maxImports})
		if err != nil {
			return "", nil, remoteFailure(err)
		}
		from, err := s.remote.Get(ctx, address)
		if err != nil {
			slot.Release()
			return "", nil, remoteFailure(err)
		}
		content := &imported{download: from.Body, slot: slot}
		name, body, failure := open(from, alias)
		if failure != nil {
			if err := content.Close(); err != nil {
				failure.Err = errors.Join(failure.Err, err)
			}
			return "", nil, failure
		}
		content.Reader = body
		return name, content, nil
	}
}

// imported is the content of an address that is being fetched.
type imported struct {
	io.Reader
	download io.Closer
	slot     *queue.Slot
}

// Close ends the download and releases its slot.
func (i *imported) Close() error {
	defer i.slot.Release()
	return i.download.Close()
}
