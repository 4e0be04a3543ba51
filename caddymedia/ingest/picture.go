package ingest

import (
	"context"
	"errors"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/variant"
)

// checkPixels decodes a picture whole. What the alias wants besides is made on the way:
// the variant, and the picture without metadata.
func (it *item) checkPixels(ctx context.Context, b *batch, alias *Alias) error {
	if !it.isRaster() {
		return nil
	}
	var err error
	if alias.WebP == nil || b.doomed.Load() { // then nothing will be stored
		err = b.pictures().Check(ctx, it.staged, it.picture)
	} else {
		err = it.makeVariant(ctx, b, alias)
	}
	if err != nil {
		return contentFailure(err)
	}
	if alias.StripMetadata && it.picture.HasMetadata() {
		return it.strip(ctx, b)
	}
	return nil
}

// pictures returns the maker of variants, whose work counts for the account of the request.
func (b *batch) pictures() *variant.Maker { return b.uploader.Pictures.For(b.req.Actor.Owner()) }

// isRaster tells whether the item is a picture of pixels, which may have a variant.
func (it *item) isRaster() bool {
	return it.picture.Format != "" && it.picture.Format != imaging.SVG
}

// makeVariant stages the variant. Where none can be made the picture is stored without.
func (it *item) makeVariant(ctx context.Context, b *batch, alias *Alias) error {
	err := traced(ctx, "media.variant", alias.attributes, func(ctx context.Context) error {
		return it.stageVariant(ctx, b, alias)
	})
	if errors.Is(err, variant.ErrNone) {
		b.uploader.Log.Warn("storing a picture without its variant", "alias", alias.Name, "filename", it.filename, "error", err)
		return nil
	}
	return err
}

func (it *item) stageVariant(ctx context.Context, b *batch, alias *Alias) error {
	start := b.uploader.Now()
	file, err := b.pictures().Make(ctx, it.staged, it.picture, *alias.WebP)
	it.variantTook = b.uploader.Now().Sub(start)
	if err != nil {
		return err
	}
	if it.variant, err = b.begin(ctx, it.storage); err == nil {
		_, err = it.variant.Write(file)
	}
	return err
}

// hasVariant tells whether a stored item has a variant beside it.
func (it *item) hasVariant() bool { return it.variant != nil && !it.withoutVariant }

// variantResult is what became of the variant of a stored item.
func (it *item) variantResult() VariantResult {
	switch {
	case !it.hasVariant():
		return VariantNone
	case it.variantPlaced.Size > it.size:
		return VariantLarger
	default:
		return VariantMade
	}
}

// strip stages the picture anew, without metadata.
func (it *item) strip(ctx context.Context, b *batch) error {
	bare, err := b.begin(ctx, it.storage)
	if err != nil {
		return err
	}
	whole := it.staged
	it.staged = bare
	it.size, err = copyBuffered(bare, it.picture.Stripped(whole), storageFailure)
	closeErr := whole.Close()
	b.end()
	switch {
	case err != nil:
		return err
	case closeErr != nil:
		return storageFailure(closeErr)
	}
	return nil
}

// placeVariant commits the variant beside its picture.
func (it *item) placeVariant(ctx context.Context, alias *Alias) error {
	if it.variant == nil {
		return nil
	}
	placed, err := it.variant.Commit(ctx, alias.VariantKey(it.filename), alias.variantOptions())
	if err == nil {
		it.variantPlaced = placed
	}
	return err
}
