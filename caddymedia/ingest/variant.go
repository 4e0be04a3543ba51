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

// pictures returns the maker of variants, on the quota of the request's account.
func (b *batch) pictures() *variant.Maker { return b.uploader.Pictures.For(b.req.Actor.Owner()) }

// makeVariant decodes a picture and stages its variant. If no variant can be made, the picture is
// stored without one.
func (b *batch) makeVariant(ctx context.Context, up *upload) error {
	err := traced(ctx, "media.variant", b.alias.attributes, func(ctx context.Context) error {
		start := b.uploader.Now()
		file, err := b.pictures().Make(ctx, up.staged, up.picture, *b.alias.WebP)
		up.variantTook = b.uploader.Now().Sub(start)
		if err != nil {
			return err
		}
		if up.variant, err = b.newStaged(ctx, up.storage); err == nil {
			_, err = up.variant.Write(file)
		}
		return err
	})
	if errors.Is(err, variant.ErrNone) {
		b.uploader.Log.Warn("storing a picture without its variant", "alias", b.alias.Name, "filename", up.filename, "error", err)
		return nil
	}
	return err
}

// commitVariant commits the variant beside its picture.
func (b *batch) commitVariant(ctx context.Context, o *object) error {
	if o.variant == nil {
		return nil
	}
	info, err := o.variant.Commit(ctx, b.alias.VariantKey(o.filename), b.alias.variantOptions())
	if err == nil {
		o.committedVariant, o.hasVariant = &info, true
	}
	return err
}

// reconcileAll reconciles the variants of the request. Only pictures that may be replaced need it.
func (b *batch) reconcileAll(ctx context.Context) (err error) {
	for _, o := range b.objects {
		if !b.alias.Overwrite || o.committedVariant == nil {
			continue
		}
		o.hasVariant, err = b.uploader.reconcile(ctx, b.alias, o.filename, o.info, *o.committedVariant)
		if err != nil {
			failure := contentFailure(err)
			failure.Filename = o.submitted
			return failure
		}
	}
	return nil
}

// rounds limits how often a variant is made again because its picture was replaced meanwhile.
const rounds = 5

// reconcile ensures that own, a variant that was just committed, belongs to the picture beside it.
// Names are locked within a process only. If several processes replace a picture at the same time,
// the picture may come from one process and the variant from another. Then reconcile makes the
// variant again, or removes it. It reports whether the picture has a variant in the end.
func (u *Uploader) reconcile(
	ctx context.Context, alias *Alias, filename string, picture, own storagedrivers.Info,
) (hasVariant bool, err error) {
	for range rounds {
		now, err := stat(ctx, alias.Storage, picture.Key)
		if err != nil || now.Same(picture) {
			return err == nil, err
		}
		beside, err := stat(ctx, alias.Storage, own.Key)
		if err != nil || !beside.Same(own) {
			return beside.Key != "", err // another process has stored or removed it, and reconciles it
		}
		if now.Key == "" {
			break // the picture is deleted
		}
		made, err := u.remake(ctx, alias, filename)
		if errors.Is(err, variant.ErrNone) {
			break
		}
		if err != nil {
			return false, err
		}
		picture, own = now, made
	}
	if err := removeOwn(ctx, alias.Storage, own); err != nil {
		return false, err
	}
	left, err := alias.pair(ctx, filename)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return left.state() == VariantCurrent, err
}

// removeStale removes stale variants beside the pictures of the request. Some storages cannot roll
// back a removal, so it comes last. If it fails, the stale variant stays but is never served.
func (b *batch) removeStale(ctx context.Context, group storagedrivers.Group) {
	for _, o := range b.objects {
		if !b.mayHaveStale(o.upload) {
			continue
		}
		if err := b.removeVariant(ctx, o, group.Remove); err != nil {
			b.uploader.Log.Error("removing the variant of an earlier picture",
				"alias", b.alias.Name, "filename", o.filename, "error", err)
		}
	}
}

// mayHaveStale reports whether the variant of an earlier picture of the name may exist.
func (b *batch) mayHaveStale(up *upload) bool {
	return up.variant == nil && up.isRaster() && (b.alias.Overwrite || b.alias.WebP != nil)
}

// removeVariant removes the variant beside a picture that was stored without one. It does nothing
// if another process has replaced the picture, because that process reconciles the variant itself.
func (b *batch) removeVariant(ctx context.Context, o *object, remove func(ctx context.Context, key string) error) error {
	now, err := stat(ctx, b.alias.Storage, o.info.Key)
	if err != nil || !now.Same(o.info) {
		return err
	}
	return remove(ctx, b.alias.VariantKey(o.filename))
}

// remake makes the variant of a stored picture again.
func (u *Uploader) remake(ctx context.Context, alias *Alias, filename string) (made storagedrivers.Info, err error) {
	err = traced(ctx, "media.variant", alias.attributes, func(ctx context.Context) error {
		picture, size, err := fetch(ctx, alias.Storage, alias.Key(filename))
		if err != nil {
			return err
		}
		defer picture.Close()
		info, err := imaging.CheckImage(picture, size, naming.Extension(filename), alias.Imaging)
		if err != nil {
			return err
		}
		file, err := u.Pictures.Make(ctx, picture, info, *alias.WebP)
		if err != nil {
			return err
		}
		made, err = alias.Storage.Put(ctx, alias.VariantKey(filename), bytes.NewReader(file), alias.variantOptions())
		return err
	})
	return made, err
}

// fetch copies an object to a staged one, so that it can be read again without a remote connection.
// It restarts if the object changes. The caller must close the copy.
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
