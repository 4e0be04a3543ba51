package ingest

import (
	"context"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Size is the width of an address of an image.
type Size struct {
	URL string
	// Width in pixels; 0 for an SVG.
	Width int
}

// Sizes returns the address of a stored image, first, and those of its renditions with a width. It
// omits renditions that the image cannot have.
//
// The error is fs.ErrNotExist if there is no such image, that of an image that cannot be read, of the
// storage, or of ctx.
func (u *Uploader) Sizes(ctx context.Context, a *Alias, filename string) ([]Size, error) {
	if a.IsVariant(filename) || storagedrivers.ValidKey(filename) != nil {
		return nil, fs.ErrNotExist
	}
	picture, err := a.Storage.Stat(ctx, a.Key(filename))
	if err != nil {
		return nil, err
	}
	itself := Size{URL: a.URL("", filename)}
	if naming.Extension(filename) == "svg" {
		return []Size{itself}, nil
	}
	info, err := a.header(ctx, filename, picture)
	if err != nil {
		return nil, err
	}
	upright := info.UprightSize()
	itself.Width = upright.X
	sizes := []Size{itself}
	if !a.IsRendered(filename) {
		return sizes, nil
	}
	for i := range a.Renditions {
		r := &a.Renditions[i]
		if r.Box.Width > 0 && u.Pictures.Feasible(info, r.fileOf(filename, false).output()) == nil {
			width := r.Box.View(upright.X, upright.Y).Size.X
			sizes = append(sizes, Size{a.RenditionURL("", r.Name, filename), width})
		}
	}
	return sizes, nil
}

// header returns the properties in the header of a picture.
func (a *Alias) header(ctx context.Context, filename string, picture storagedrivers.Info) (imaging.Info, error) {
	if info, ok := knownHeaders().Get(a.headerKey(filename, picture)); ok {
		return info, nil
	}
	object, err := a.Storage.OpenSeeker(ctx, picture.Key)
	if err != nil {
		return imaging.Info{}, err
	}
	defer object.Close()
	info, err := imaging.ReadHeader(object, picture.Size, naming.Extension(filename), a.Imaging)
	if err != nil {
		return imaging.Info{}, err
	}
	if object.Info.Same(picture) {
		knownHeaders().Add(a.headerKey(filename, picture), info)
	}
	return info, nil
}

func (a *Alias) headerKey(filename string, picture storagedrivers.Info) string {
	return a.Location().Join(filename).String() + " " + generation(picture)
}

// maxKnownHeaders is the number of pictures whose headers are remembered, some 400 bytes each.
const maxKnownHeaders = 10_000

// knownHeaders remembers the headers of the pictures that were used last, by location and
// generation.
var knownHeaders = remembered[imaging.Info](maxKnownHeaders)
