package upload

import (
	"context"
	"errors"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// renderImage decodes an image, stages its variant and makes its eager renditions, from one
// decoding. If no variant can be made, the image is stored without one. Nothing is made if another
// upload of the request has failed, and only the ThumbHash for one that is held.
func (b *batch) renderImage(ctx context.Context, up *received) error {
	if b.doomed.Load() || b.hold != nil && b.alias.Facts != item.FactsWithHash {
		return b.images().Check(ctx, up.content(), up.image)
	}
	var files []item.RenditionFile
	if b.hold == nil {
		files = b.alias.RenditionFiles(up.filename, true)
	}
	outputs := make([]render.Output, 0, len(files)+1)
	for _, f := range files {
		outputs = append(outputs, f.Output())
	}
	hasVariant := b.hold == nil && b.alias.WebP != nil && b.alias.MayHaveVariant(up.filename)
	if hasVariant {
		outputs = append(outputs, render.Variant(*b.alias.WebP))
	}
	if b.alias.Facts == item.FactsWithHash {
		outputs = append(outputs, render.Hash)
	}
	for i := range b.alias.Renditions {
		r := &b.alias.Renditions[i]
		if err := b.images().Feasible(up.image, r.FileOf(up.filename, false).Output()); err != nil {
			up.impossible = append(up.impossible, r.Name)
			b.uploader.Log.Warn("storing an image without a rendition",
				"alias", b.alias.Name, "filename", up.filename, "rendition", r.Name, "error", err)
		}
	}
	err := item.Traced(ctx, "media.variant", b.alias.Attributes, func(ctx context.Context) error {
		start := b.uploader.Now()
		made, err := b.images().Make(ctx, up.content(), up.image, outputs...)
		up.variantTook = b.uploader.Now().Sub(start)
		if err != nil {
			return err
		}
		b.keepRenditions(up, files, made)
		if b.alias.Facts == item.FactsWithHash {
			up.hash = made[len(made)-1].File // nil if there is none
		}
		if !hasVariant {
			return nil
		}
		variant := made[len(files)]
		if variant.Err != nil {
			return variant.Err
		}
		if up.variant, err = b.newStaged(ctx, up.storage); err == nil {
			_, err = up.variant.Write(variant.File)
		}
		return err
	})
	if errors.Is(err, render.ErrNone) {
		b.uploader.Log.Warn("storing an image without its variant", "alias", b.alias.Name, "filename", up.filename, "error", err)
		return nil
	}
	return err
}

// keepRenditions keeps the files of eager renditions in memory until their image is committed,
// because their keys depend on its generation. Those that were not made in time, or for which the
// account has no memory left, are made when they are requested.
func (b *batch) keepRenditions(up *received, files []item.RenditionFile, made []render.Made) {
	for i, f := range files {
		if made[i].Err != nil || b.reserveMemory(int64(len(made[i].File))) {
			up.renditions = append(up.renditions, derived.MadeRendition{RenditionFile: f, Made: made[i]})
		}
	}
}

// storeRenditions stores the eager renditions of an image, and removes those of the one that it
// replaced. The request has succeeded before: a rendition that cannot be stored is made when it is
// requested.
func (b *batch) storeRenditions(ctx context.Context, o *object) {
	var err error
	if o.replaced && b.alias.StoresRenditions(o.filename) {
		err = b.alias.RemoveRenditions(ctx, o.filename)
	}
	if len(o.renditions) > 0 {
		_, failed := b.uploader.Derived.StoreRenditions(ctx, b.alias, o.filename, o.info, o.renditions, o.variantTook)
		err = errors.Join(err, failed)
	}
	if err != nil {
		b.uploader.Log.Warn("storing the renditions of an image",
			"alias", b.alias.Name, "filename", o.filename, "error", err)
	}
}

// images returns the maker of variants, on the quota of the request's account.
func (b *batch) images() *render.Maker { return b.uploader.Derived.Images.For(b.party) }

// variantChange returns the change that stores the variant of an object.
func (b *batch) variantChange(o *object) storagedrivers.Change {
	return storagedrivers.Change{
		Staged: o.variant, Key: b.alias.VariantKey(o.filename), Options: b.alias.VariantOptions(o.info),
	}
}

// uncover removes the variant of old, an image that is about to be replaced, if
// [item.Alias.Uncovers].
func (b *batch) uncover(ctx context.Context, o *object, old storagedrivers.Info) error {
	if !o.replaced || !o.mayHaveVariant() || !b.alias.Uncovers(old) {
		return nil
	}
	o.uncovered = true
	return item.Remove(ctx, b.alias.Storage, b.alias.VariantKey(o.filename))
}

// coverAgain makes the variants of images again that were uncovered for a commit that failed.
func (b *batch) coverAgain(ctx context.Context, objects []*object) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCommit)
	defer cancel()
	for _, o := range objects {
		if !o.uncovered || b.alias.WebP == nil || storagedrivers.LeaseLost(ctx) {
			continue
		}
		if _, err := b.uploader.Derived.RenewLocked(ctx, b.alias, o.filename, false); err != nil && !errors.Is(err, render.ErrNone) {
			b.uploader.Log.Warn("making the variant of an image again after a failed commit",
				"alias", b.alias.Name, "filename", o.filename, "error", err)
		}
	}
}

// reconcile reconciles the variant of an image that may have replaced another one. If it fails, the
// variant may be of another image until it is made again.
func (b *batch) reconcile(ctx context.Context, o *object) {
	if !b.alias.Overwrite || o.committedVariant == nil {
		return
	}
	var err error
	o.hasVariant, err = b.uploader.Derived.Reconcile(ctx, b.alias, o.filename, o.info, *o.committedVariant)
	if err != nil {
		b.uploader.Log.Error("reconciling the variant of a replaced image",
			"alias", b.alias.Name, "filename", o.filename, "error", err)
	}
}

// removeStale removes the stale variant beside an image. If it fails, the variant stays but is
// never served.
func (b *batch) removeStale(ctx context.Context, o *object) {
	if o.variant != nil || !o.mayHaveVariant() || !b.alias.Overwrite && b.alias.WebP == nil {
		return
	}
	if err := b.removeVariant(ctx, o); err != nil {
		b.uploader.Log.Error("removing the variant of an earlier image",
			"alias", b.alias.Name, "filename", o.filename, "error", err)
	}
}

// removeVariant removes the variant beside an image that was stored without one. It does nothing if
// another process has replaced the image, because that process reconciles the variant itself.
func (b *batch) removeVariant(ctx context.Context, o *object) error {
	now, err := item.Stat(ctx, b.alias.Storage, o.info.Key)
	if err != nil || !now.Same(o.info) {
		return err
	}
	return item.Remove(ctx, b.alias.Storage, b.alias.VariantKey(o.filename))
}
