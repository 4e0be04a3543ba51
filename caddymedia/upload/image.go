package upload

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/derived"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

// madeRendition is a file of an eager rendition, until its picture is committed. It waits in memory,
// because its key depends on the generation of the stored picture.
type madeRendition struct {
	aliases.RenditionFile
	file   []byte
	result derived.RenditionResult
}

// renderPictures decodes a picture, stages its variant and makes its eager renditions, from one
// decoding. If no variant can be made, the picture is stored without one. Nothing is made if another
// upload of the request has failed.
func (b *batch) renderPictures(ctx context.Context, up *upload) error {
	if b.doomed.Load() {
		return b.pictures().Check(ctx, up.staged, up.picture)
	}
	files := b.alias.RenditionFiles(up.filename, true)
	outputs := make([]render.Output, 0, len(files)+1)
	for _, f := range files {
		outputs = append(outputs, f.Output())
	}
	hasVariant := b.alias.WebP != nil && b.alias.MayHaveVariant(up.filename)
	if hasVariant {
		outputs = append(outputs, render.Variant(*b.alias.WebP))
	}
	b.findRenditions(up)
	err := aliases.Traced(ctx, "media.variant", b.alias.Attributes, func(ctx context.Context) error {
		start := b.uploader.Now()
		made, err := b.pictures().Make(ctx, up.staged, up.picture, outputs...)
		up.variantTook = b.uploader.Now().Sub(start)
		if err != nil {
			return err
		}
		b.keepRenditions(up, files, made)
		if !hasVariant {
			return nil
		}
		return b.stageVariant(ctx, up, made[len(files)])
	})
	if errors.Is(err, render.ErrNone) {
		b.uploader.Log.Warn("storing a picture without its variant", "alias", b.alias.Name, "filename", up.filename, "error", err)
		return nil
	}
	return err
}

// findRenditions records the renditions that the picture cannot have.
func (b *batch) findRenditions(up *upload) {
	for i := range b.alias.Renditions {
		r := &b.alias.Renditions[i]
		if err := b.pictures().Feasible(up.picture, r.FileOf(up.filename, false).Output()); err != nil {
			up.impossible = append(up.impossible, r.Name)
			b.uploader.Log.Warn("storing a picture without a rendition",
				"alias", b.alias.Name, "filename", up.filename, "rendition", r.Name, "error", err)
		}
	}
}

// keepRenditions keeps the files of renditions in memory. Those that were not made in time, or for
// which the account has no memory left, are made when they are requested.
func (b *batch) keepRenditions(up *upload, files []aliases.RenditionFile, made []render.Made) {
	for i, f := range files {
		kept := madeRendition{RenditionFile: f, file: made[i].File, result: derived.RenditionMade}
		switch {
		case made[i].Err != nil:
			kept.result = derived.ResultOf(made[i].Err)
		case !b.reserveMemory(int64(len(kept.file))):
			continue
		}
		up.renditions = append(up.renditions, kept)
	}
}

// renditionWriters is the number of pictures whose renditions are stored concurrently.
const renditionWriters = 8

// storeRenditions stores the eager renditions of the request, and removes those of replaced
// pictures. The request has succeeded before: a rendition that cannot be stored is made when it is
// requested.
func (b *batch) storeRenditions(ctx context.Context) {
	if len(b.alias.Renditions) == 0 {
		return
	}
	var group errgroup.Group
	group.SetLimit(renditionWriters)
	for _, o := range b.objects {
		group.Go(func() error {
			b.storeRenditionsOf(ctx, o)
			return nil
		})
	}
	_ = group.Wait() // nothing above fails
}

func (b *batch) storeRenditionsOf(ctx context.Context, o *object) {
	warn := func(err error) {
		if err != nil {
			b.uploader.Log.Warn("storing the renditions of a picture",
				"alias", b.alias.Name, "filename", o.filename, "error", err)
		}
	}
	if o.replaced {
		warn(b.alias.RemoveRenditions(ctx, o.filename))
	}
	if len(o.renditions) == 0 {
		return
	}
	present, err := derived.IsPresent(ctx, b.alias, o.info)
	warn(err)
	for _, r := range o.renditions {
		switch {
		case r.result != derived.RenditionMade:
		case err != nil:
			r.result = derived.RenditionFailed
		case present:
			if err := derived.StoreRendition(ctx, b.alias, o.filename, r.RenditionFile, o.info, r.file); err != nil {
				warn(err)
				r.result = derived.RenditionFailed
			}
		}
		b.uploader.Observer.Rendered(b.alias, r.Rendition, r.result, o.variantTook)
	}
}

// pictures returns the maker of variants, on the quota of the request's account.
func (b *batch) pictures() *render.Maker { return b.uploader.Derived.Images.For(b.req.Actor.Owner()) }

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
		Staged: o.variant, Key: b.alias.VariantKey(o.filename), Options: b.alias.VariantOptions(o.info),
	}
}

// uncover removes the variant of old, an image that is about to be replaced, if [Alias.uncovers].
func (b *batch) uncover(ctx context.Context, o *object, old storagedrivers.Info) error {
	if !o.replaced || !o.mayHaveVariant() || !b.alias.Uncovers(old) {
		return nil
	}
	o.uncovered = true
	return aliases.Remove(ctx, b.alias.Storage, b.alias.VariantKey(o.filename))
}

// coverAgain makes the variants of images again that were uncovered for a commit that failed.
func (b *batch) coverAgain(ctx context.Context, objects []*object) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCommit)
	defer cancel()
	for _, o := range objects {
		if !o.uncovered || b.alias.WebP == nil {
			continue
		}
		if _, err := b.uploader.Derived.RenewLocked(ctx, b.alias, o.filename, false); err != nil && !errors.Is(err, render.ErrNone) {
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
		o.hasVariant, err = b.uploader.Derived.Reconcile(ctx, b.alias, o.filename, o.info, *o.committedVariant)
		if err != nil {
			b.uploader.Log.Error("reconciling the variant of a replaced image",
				"alias", b.alias.Name, "filename", o.filename, "error", err)
		}
	}
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
	now, err := aliases.Stat(ctx, b.alias.Storage, o.info.Key)
	if err != nil || !now.Same(o.info) {
		return err
	}
	return aliases.Remove(ctx, b.alias.Storage, b.alias.VariantKey(o.filename))
}
