package ingest

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/caddymedia/media/caddymedia/imaging/render"
)

// madeRendition is a file of an eager rendition, until its picture is committed. It waits in memory,
// because its key depends on the generation of the stored picture.
type madeRendition struct {
	renditionFile
	file   []byte
	result RenditionResult
}

// renderPictures decodes a picture, stages its variant and makes its eager renditions, from one
// decoding. If no variant can be made, the picture is stored without one. Nothing is made if another
// upload of the request has failed.
func (b *batch) renderPictures(ctx context.Context, up *upload) error {
	if b.doomed.Load() {
		return b.pictures().Check(ctx, up.staged, up.picture)
	}
	files := b.alias.renditionFiles(up.filename, true)
	outputs := make([]render.Output, 0, len(files)+1)
	for _, f := range files {
		outputs = append(outputs, f.output())
	}
	hasVariant := b.alias.WebP != nil && b.alias.MayHaveVariant(up.filename)
	if hasVariant {
		outputs = append(outputs, render.Variant(*b.alias.WebP))
	}
	b.findRenditions(up)
	err := traced(ctx, "media.variant", b.alias.attributes, func(ctx context.Context) error {
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
		if err := b.pictures().Feasible(up.picture, r.fileOf(up.filename, false).output()); err != nil {
			up.impossible = append(up.impossible, r.Name)
			b.uploader.Log.Warn("storing a picture without a rendition",
				"alias", b.alias.Name, "filename", up.filename, "rendition", r.Name, "error", err)
		}
	}
}

// keepRenditions keeps the files of renditions in memory. Those that were not made in time, or for
// which the account has no memory left, are made when they are requested.
func (b *batch) keepRenditions(up *upload, files []renditionFile, made []render.Made) {
	for i, f := range files {
		kept := madeRendition{renditionFile: f, file: made[i].File, result: RenditionMade}
		switch {
		case made[i].Err != nil:
			kept.result = renditionResult(made[i].Err)
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
		warn(b.alias.removeRenditions(ctx, o.filename))
	}
	if len(o.renditions) == 0 {
		return
	}
	present, err := b.alias.isPresent(ctx, o.info)
	warn(err)
	for _, r := range o.renditions {
		switch {
		case r.result != RenditionMade:
		case err != nil:
			r.result = RenditionFailed
		case present:
			if err := b.alias.storeRendition(ctx, o.filename, r.renditionFile, o.info, r.file); err != nil {
				warn(err)
				r.result = RenditionFailed
			}
		}
		b.uploader.Observer.Rendered(b.alias, r.rendition, r.result, o.variantTook)
	}
}
