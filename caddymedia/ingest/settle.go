package ingest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// rounds is how often a variant is made again because its picture was replaced meanwhile,
// before it is given up.
const rounds = 5

// settle sees to it that what lies beside each picture is its own variant, or none. Of
// several who replace a picture at the same time the last to store the picture need not
// be the last to store the variant, and a picture without one may have replaced a picture
// with one.
func (b *batch) settle(ctx context.Context, alias *Alias) error {
	if !alias.Overwrite {
		return nil
	}
	for _, it := range b.items {
		if !it.picture {
			continue
		}
		if err := b.gate.settle(ctx, alias, it); err != nil {
			return it.storageFailed(err)
		}
	}
	return nil
}

func (g *Gate) settle(ctx context.Context, alias *Alias, it *item) error {
	stored, has := it.placed, it.variant != nil
	for range rounds {
		now, err := alias.Storage.Stat(ctx, stored.Key)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil { // deleted meanwhile
			break
		}
		if now.Same(stored) && has {
			return nil
		}
		if now.Same(stored) || alias.WebP == nil {
			break
		}
		stored = now
		if err = g.remake(ctx, alias, it.filename); err != nil {
			g.Log.Warn("a picture that was replaced twice at a time has no variant",
				"alias", alias.Name, "filename", it.filename, "error", err)
		}
		has = err == nil
	}
	err := alias.Storage.Delete(ctx, alias.VariantKey(it.filename))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// remake makes the variant of a picture as it is stored now.
func (g *Gate) remake(ctx context.Context, alias *Alias, filename string) error {
	object, err := alias.Storage.OpenSeeker(ctx, alias.Key(filename))
	if err != nil {
		return err
	}
	defer object.Close()
	info, err := imaging.CheckImage(object, object.Info.Size, naming.Extension(filename), alias.Imaging)
	if err != nil {
		return err
	}
	file, err := g.Pictures.Make(ctx, object, info, *alias.WebP)
	if err != nil {
		return err
	}
	_, err = alias.Storage.Put(ctx, alias.VariantKey(filename), bytes.NewReader(file), storagedrivers.PutOptions{
		Mode: storagedrivers.Overwrite, CacheControl: alias.CacheControl,
	})
	return err
}
