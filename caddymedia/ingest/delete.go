package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Delete removes an item of the alias and, for a picture, its variant. The variant goes
// first, so that it never stays alone; one that was left alone is removed when its picture
// is asked for. Delete waits for uploads of the name in this process.
//
// What is no name, names a variant or does not exist is fs.ErrNotExist. All other errors
// are those of the storage, or of ctx while it waits; then the item is still there, without
// its variant perhaps, and can be deleted again.
func (g *Gate) Delete(ctx context.Context, alias *Alias, filename string) error {
	missing := fmt.Errorf("deleting %q of the alias %s: %w", filename, alias.Name, fs.ErrNotExist)
	if alias.IsVariant(filename) {
		return missing
	}
	unlock, err := alias.lock(ctx, filename)
	if err != nil {
		return fmt.Errorf("deleting %q of the alias %s: %w", filename, alias.Name, err)
	}
	defer unlock()
	var found []string
	for _, key := range alias.keys(filename) {
		there, err := exists(ctx, alias.Storage, key)
		if err != nil {
			return err
		}
		if there {
			found = append(found, key)
		}
	}
	if found == nil {
		return missing
	}
	// Not stopped half-way by a caller who leaves; the storage bounds each of the two.
	ctx = context.WithoutCancel(ctx)
	for _, key := range found {
		if err := remove(ctx, alias.Storage, key); err != nil {
			return err
		}
	}
	return nil
}

// IsVariant tells whether filename (relative to the alias) is where the variant of a picture
// lies. That is no item of its own.
func (a *Alias) IsVariant(filename string) bool {
	picture, ok := strings.CutSuffix(filename, variant.Suffix)
	return ok && a.Kind == Image && a.Extensions[naming.Extension(picture)]
}

// keys are where the parts of an item are, in the order in which they may go.
func (a *Alias) keys(filename string) []string {
	if a.Kind == Image {
		return []string{a.VariantKey(filename), a.Key(filename)}
	}
	return []string{a.Key(filename)}
}

// exists tells whether there is an object; there is none where its key cannot be.
func exists(ctx context.Context, s *storagedrivers.Storage, key string) (bool, error) {
	info, err := stat(ctx, s, key)
	if errors.Is(err, storagedrivers.ErrInvalidKey) {
		return false, nil
	}
	return info.Key != "", err
}
