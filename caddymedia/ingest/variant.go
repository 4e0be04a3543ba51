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

// variantChange returns the change that stores the variant of an object.
func (b *batch) variantChange(o *object) storagedrivers.Change {
	return storagedrivers.Change{
		Staged: o.variant, Key: b.alias.VariantKey(o.filename), Options: b.alias.variantOptions(o.info),
	}
}

// uncovers reports whether the variant of an image is removed before the image is replaced: where the
// storage has its times in whole seconds. Within a second, the variant would not be older than the new
// image and would count as its own. A storage that commits both together leaves no such variant.
func (a *Alias) uncovers(old storagedrivers.Info) bool {
	return old.Key != "" && old.ModTime.Nanosecond() == 0 && a.Storage.Features().Together != storagedrivers.Atomic
}

// uncover removes the variant of old, an image that is about to be replaced, if [Alias.uncovers].
func (b *batch) uncover(ctx context.Context, o *object, old storagedrivers.Info) error {
	if !o.replaced || !o.mayHaveVariant() || !b.alias.uncovers(old) {
		return nil
	}
	o.uncovered = true
	return remove(ctx, b.alias.Storage, b.alias.VariantKey(o.filename))
}

// coverAgain makes the variants of images again that were uncovered for a commit that failed.
func (b *batch) coverAgain(ctx context.Context, objects []*object) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCommit)
	defer cancel()
	for _, o := range objects {
		if !o.uncovered || b.alias.WebP == nil {
			continue
		}
		if _, err := b.uploader.renew(ctx, b.alias, o.filename, false); err != nil && !errors.Is(err, render.ErrNone) {
			b.uploader.Log.Warn("making the variant of an image again after a failed commit",
				"alias", b.alias.Name, "filename", o.filename, "error", err)
		}
	}
}

// reconcileAll reconciles the variants of the request. Only images that may be replaced need it. If it
// fails, the variant may be of another image until it is made again.
func (b *batch) reconcileAll(ctx context.Context) {
	for _, o := range b.objects {
		if !b.alias.Overwrite || o.committedVariant == nil {
			continue
		}
		var err error
		o.hasVariant, err = b.uploader.reconcile(ctx, b.alias, o.filename, o.info, *o.committedVariant)
		if err != nil {
			b.uploader.Log.Error("reconciling the variant of a replaced image",
				"alias", b.alias.Name, "filename", o.filename, "error", err)
		}
	}
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

// removeStale removes stale variants beside the images of the request. If it fails, the stale variant
// stays but is never served.
func (b *batch) removeStale(ctx context.Context) {
	for _, o := range b.objects {
		if o.variant != nil || !o.mayHaveVariant() || !b.alias.Overwrite && b.alias.WebP == nil {
			continue
		}
		if err := b.removeVariant(ctx, o); err != nil {
			b.uploader.Log.Error("removing the variant of an earlier picture",
				"alias", b.alias.Name, "filename", o.filename, "error", err)
		}
	}
}

// removeVariant removes the variant beside an image that was stored without one. It does nothing if
// another process has replaced the image, because that process reconciles the variant itself.
func (b *batch) removeVariant(ctx context.Context, o *object) error {
	now, err := stat(ctx, b.alias.Storage, o.info.Key)
	if err != nil || !now.Same(o.info) {
		return err
	}
	return remove(ctx, b.alias.Storage, b.alias.VariantKey(o.filename))
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
