package ingest

import (
	"context"
	"errors"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/storagedrivers"
)

// checkPicture looks at the structure of a picture, then decodes it whole. What the alias
// wants besides is made on the way: the variant, and the picture without metadata.
func (it *item) checkPicture(ctx context.Context, g *Gate, alias *Alias, ext string) error {
	info, err := imaging.CheckImage(it.staged, it.size, ext, alias.Imaging)
	if err != nil {
		return contentFailure(err)
	}
	if info.Format == imaging.SVG {
		return nil
	}
	it.picture = true
	if alias.WebP == nil {
		err = g.Pictures.Check(ctx, it.staged, info)
	} else {
		err = it.makeVariant(ctx, g, alias, info)
	}
	if err != nil {
		return contentFailure(err)
	}
	if alias.StripMetadata && info.HasMetadata() {
		return it.strip(ctx, info)
	}
	return nil
}

// makeVariant stages the variant. Where none can be made the picture is stored without.
func (it *item) makeVariant(ctx context.Context, g *Gate, alias *Alias, info imaging.Info) error {
	file, err := g.Pictures.Make(ctx, it.staged, info, *alias.WebP)
	if errors.Is(err, variant.ErrNone) {
		g.Log.Warn("storing a picture without its variant", "alias", alias.Name, "filename", it.filename, "error", err)
		g.tellVariant(alias, VariantNone)
		return nil
	}
	if err != nil {
		return err
	}
	result := VariantMade
	if int64(len(file)) > it.size {
		result = VariantLarger
	}
	g.tellVariant(alias, result)
	if it.variant, err = it.storage.Stage(ctx); err == nil {
		_, err = it.variant.Write(file)
	}
	return err
}

func (g *Gate) tellVariant(alias *Alias, result VariantResult) {
	if g.Variant != nil {
		g.Variant(alias, result)
	}
}

// strip stages the picture anew, without metadata.
func (it *item) strip(ctx context.Context, info imaging.Info) error {
	bare, err := it.storage.Stage(ctx)
	if err != nil {
		return storageFailure(err)
	}
	size, err := copyBuffered(bare, info.Stripped(it.staged), storageFailure)
	if err != nil {
		return errors.Join(err, bare.Close())
	}
	err = it.staged.Close()
	it.staged, it.size = bare, size
	return err
}

// placeVariant commits the variant beside its picture. Whatever lies at its name belongs
// to no picture any more.
func (it *item) placeVariant(ctx context.Context, alias *Alias) error {
	if it.variant == nil {
		return nil
	}
	_, err := it.variant.Commit(ctx, alias.VariantKey(it.filename), storagedrivers.PutOptions{
		Mode: storagedrivers.Overwrite, CacheControl: alias.CacheControl,
	})
	it.variantPlaced = err == nil
	return err
}
