package ingest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// settle sees to it that no variant of this request lies beside a picture that is not its
// own. Within this process names are locked, but of several processes that replace a
// picture at the same time the last to store the picture need not be the last to store
// the variant.
func (b *batch) settle(ctx context.Context, alias *Alias) error {
	for _, it := range b.items {
		if !alias.Overwrite || it.variant == nil {
			continue
		}
		if err := b.uploader.settle(ctx, alias, it); err != nil {
			failure := contentFailure(err)
			failure.Filename = it.submitted
			return failure
		}
	}
	return nil
}

// rounds is how often a variant is made again because its picture was replaced meanwhile,
// before it is given up. Then the answer says what lies beside the picture.
const rounds = 5

func (u *Uploader) settle(ctx context.Context, alias *Alias, it *item) error {
	picture, mine := it.placed, it.variantPlaced
	for range rounds {
		now, err := stat(ctx, alias.Storage, picture.Key)
		if err != nil || now.Same(picture) {
			return err
		}
		beside, err := stat(ctx, alias.Storage, mine.Key)
		if err != nil || !beside.Same(mine) {
			it.withoutVariant = beside.Key == ""
			return err // that of another process, which settles it
		}
		if now.Key == "" {
			break // deleted meanwhile
		}
		made, err := u.remake(ctx, alias, it.filename)
		if errors.Is(err, variant.ErrNone) {
			break
		}
		if err != nil {
			return err
		}
		picture, mine = now, made
	}
	it.withoutVariant = true
	if err := removeOwn(ctx, alias.Storage, mine); err != nil {
		return err
	}
	left, err := alias.pair(ctx, it.filename)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	it.withoutVariant = left.state() != VariantCurrent
	return err
}

// removeStale removes the variants beside the pictures of this request that have none: those of
// an earlier picture of the name. Where the storage cannot roll that back, it must come last. A
// failure only leaves a variant that negotiation passes over.
func (b *batch) removeStale(ctx context.Context, alias *Alias, group storagedrivers.Group) {
	for _, it := range b.items {
		if !it.mayHaveStale(alias) {
			continue
		}
		if err := it.removeStale(ctx, alias, group.Remove); err != nil {
			b.uploader.Log.Error("removing the variant of an earlier picture",
				"alias", alias.Name, "filename", it.filename, "error", err)
		}
	}
}

// mayHaveStale reports whether the variant of an earlier picture may lie beside the item.
func (it *item) mayHaveStale(alias *Alias) bool {
	return it.variant == nil && it.isRaster() && (alias.Overwrite || alias.WebP != nil)
}

func (it *item) removeStale(
	ctx context.Context, alias *Alias, remove func(ctx context.Context, key string) error,
) error {
	now, err := stat(ctx, alias.Storage, it.placed.Key)
	if err != nil || !now.Same(it.placed) {
		return err // replaced already by another process, which settles it
	}
	return remove(ctx, alias.VariantKey(it.filename))
}

// removeOwn removes an object unless somebody has replaced it.
func removeOwn(ctx context.Context, s *storagedrivers.Storage, own storagedrivers.Info) error {
	now, err := stat(ctx, s, own.Key)
	if err != nil || !now.Same(own) {
		return err
	}
	return remove(ctx, s, own.Key)
}

// stat is Storage.Stat with the zero Info for what is not there.
func stat(ctx context.Context, s *storagedrivers.Storage, key string) (storagedrivers.Info, error) {
	info, err := s.Stat(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return storagedrivers.Info{}, nil
	}
	return info, err
}

// remove is Storage.Delete for what may be gone already.
func remove(ctx context.Context, s *storagedrivers.Storage, key string) error {
	if err := s.Delete(ctx, key); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// remake makes the variant of a picture as it is stored now.
func (u *Uploader) remake(ctx context.Context, alias *Alias, filename string) (made storagedrivers.Info, err error) {
	err = traced(ctx, "media.variant", alias.attributes, func(ctx context.Context) error {
		made, err = u.remakeVariant(ctx, alias, filename)
		return err
	})
	return made, err
}

func (u *Uploader) remakeVariant(ctx context.Context, alias *Alias, filename string) (storagedrivers.Info, error) {
	picture, size, err := fetch(ctx, alias.Storage, alias.Key(filename))
	if err != nil {
		return storagedrivers.Info{}, err
	}
	defer picture.Close()
	info, err := imaging.CheckImage(picture, size, naming.Extension(filename), alias.Imaging)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	file, err := u.Pictures.Make(ctx, picture, info, *alias.WebP)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	return alias.Storage.Put(ctx, alias.VariantKey(filename), bytes.NewReader(file), alias.variantOptions())
}

// fetch stages what is stored under key, for who reads it more than once, or while others wait:
// the storage may be far away. What is replaced meanwhile is begun anew. The caller must Close it.
func fetch(ctx context.Context, s *storagedrivers.Storage, key string) (storagedrivers.Staged, int64, error) {
	for round := 1; ; round++ {
		staged, size, err := fetchOnce(ctx, s, key)
		if !errors.Is(err, storagedrivers.ErrChanged) || round == rounds {
			return staged, size, err
		}
	}
}

func fetchOnce(ctx context.Context, s *storagedrivers.Storage, key string) (storagedrivers.Staged, int64, error) {
	object, err := s.OpenSeeker(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	defer object.Close()
	staged, err := s.Stage(ctx)
	if err != nil {
		return nil, 0, err
	}
	if _, err := copyBuffered(staged, object, storageFailure); err != nil {
		return nil, 0, errors.Join(err, staged.Close())
	}
	return staged, object.Info.Size, nil
}
