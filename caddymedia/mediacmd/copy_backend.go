package mediacmd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/storagecopy"
	"github.com/caddymedia/media/storagedrivers"
)

// differentBackends returns an error if one storage is the same backend as the other or lies within
// it, as far as the configuration shows.
func differentBackends(from, to *storagedrivers.Storage) error {
	if from.Location().Overlaps(to.Location()) {
		return fmt.Errorf("%q and %q are the same backend, or one lies within the other", from.Name(), to.Name())
	}
	return nil
}

// reachable checks that both storages can be used. Before a real run it also stores a small object
// in the destination and removes it again. This shows early whether the destination is writable,
// and whether the source is the same backend under another name.
func (s *session) reachable(ctx context.Context, opts storagecopy.Options) error {
	for _, storage := range []*storagedrivers.Storage{opts.From, opts.To} {
		if err := storage.Check(ctx); err != nil {
			return fmt.Errorf("storage %q cannot be used: %w", storage.Name(), s.explain(err))
		}
	}
	if opts.DryRun {
		return nil
	}
	key := "media-probe-" + rand.Text() + ".txt"
	_, err := opts.To.Put(ctx, key, strings.NewReader(key), storagedrivers.PutOptions{})
	if err != nil {
		_ = opts.To.Delete(context.WithoutCancel(ctx), key) // if its answer was lost
		return fmt.Errorf("storage %q cannot be written to: %w", opts.To.Name(), s.explain(err))
	}
	_, err = opts.From.Stat(ctx, key)
	switch {
	case err == nil:
		err = fmt.Errorf("%q and %q are the same backend", opts.From.Name(), opts.To.Name())
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	return errors.Join(err, opts.To.Delete(context.WithoutCancel(ctx), key))
}
