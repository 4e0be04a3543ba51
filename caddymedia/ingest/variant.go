package ingest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

// pictures returns the maker of variants, on the quota of the request's account.
func (b *batch) pictures() *render.Maker { return b.uploader.Pictures.For(b.req.Actor.Owner()) }

// stageVariant stages the variant of a picture. Its error wraps [render.ErrNone] if there is none.
func (b *batch) stageVariant(ctx context.Context, up *upload, made render.Made) (err error) {
	if made.Err != nil {
		return made.Err
	}
	if up.variant, err = b.newStaged(ctx, up.storage); err == nil {
		_, err = up.variant.Write(made.File)
	}
	return err
}

// commitVariant commits the variant beside its picture.
func (b *batch) commitVariant(ctx context.Context, o *object) error {
	if o.variant == nil {
		return nil
	}
	info, err := o.variant.Commit(ctx, b.alias.VariantKey(o.filename), b.alias.variantOptions(o.info))
	if err == nil {
		o.committedVariant, o.hasVariant = &info, true
	}
	return err
}

// uncovers reports whether the variant of an image is removed before the image is replaced: where the
// storage has its times in whole seconds. Within a second, the variant would not be older than the new
// image and would count as its own. A storage that can restore replaced objects has finer times.
func (a *Alias) uncovers(old storagedrivers.Info) bool {
	return old.Key != "" && old.ModTime.Nanosecond() == 0 && !a.Storage.Features().Restore
}

// uncover removes the variant of old, an image that is about to be replaced, if [Alias.uncovers].
func (b *batch) uncover(ctx context.Context, o *object, old storagedrivers.Info) error {
	if !o.replaced || !o.mayHaveVariant() || !b.alias.uncovers(old) {
		return nil
	}
	o.uncovered = true
	return remove(ctx, b.alias.Storage, b.alias.VariantKey(o.filename))
}

// coverAgain makes the variant of an image again that was uncovered and then not replaced.
func (b *batch) coverAgain(ctx context.Context, o *object) {
	if !o.uncovered || b.alias.WebP == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollBackTime)
	defer cancel()
	if _, err := b.uploader.renew(ctx, b.alias, o.filename, false); err != nil && !errors.Is(err, render.ErrNone) {
		b.uploader.Log.Warn("making the variant of an image again that was not replaced",
			"alias", b.alias.Name, "filename", o.filename, "error", err)
	}
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
			// Another process has stored or removed it, and reconciles it. A removed one is stored again
			// if its image is about to be replaced.
			return beside.Key != "" || alias.uncovers(now), err
		}
		if now.Key == "" {
			break // the picture is deleted
		}
		made, err := u.remake(ctx, alias, filename)
		if errors.Is(err, render.ErrNone) {
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
	return up.variant == nil && up.mayHaveVariant() && (b.alias.Overwrite || b.alias.WebP != nil)
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
		image, variant, err := u.makeOf(ctx, alias, filename, u.Pictures, render.Variant(*alias.WebP))
		if err != nil {
			return err
		}
		if variant[0].Err != nil {
			return variant[0].Err
		}
		file := bytes.NewReader(variant[0].File)
		made, err = alias.Storage.Put(ctx, alias.VariantKey(filename), file, alias.variantOptions(image))
		return err
	})
	return made, err
}

// fetch copies an object to a staged one, so that it can be read again without a remote connection.
// It restarts if the object changes. The caller must close the copy.
func fetch(ctx context.Context, s *storagedrivers.Storage, key string) (storagedrivers.Staged, storagedrivers.Info, error) {
	for round := 1; ; round++ {
		staged, info, err := fetchOnce(ctx, s, key)
		if !errors.Is(err, storagedrivers.ErrChanged) || round == rounds {
			return staged, info, err
		}
	}
}

func fetchOnce(ctx context.Context, s *storagedrivers.Storage, key string) (storagedrivers.Staged, storagedrivers.Info, error) {
	object, err := s.OpenSeeker(ctx, key)
	if err != nil {
		return nil, storagedrivers.Info{}, err
	}
	defer object.Close()
	staged, err := s.Stage(ctx)
	if err != nil {
		return nil, storagedrivers.Info{}, err
	}
	if _, err := copyBuffered(staged, object, StorageFailure); err != nil {
		return nil, storagedrivers.Info{}, errors.Join(err, staged.Close())
	}
	return staged, object.Info, nil
}
