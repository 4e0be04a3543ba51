package media

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/derived"
	"github.com/caddymedia/media/caddymedia/internal/imaging/scale"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	// maxPreview is the maximum size of a preview in bytes.
	maxPreview = 8 << 20
	// thumbnailSide is about the width of an image in a list of items, in pixels.
	thumbnailSide = 160
)

// Preview asks for a small form of a stored image.
type Preview struct {
	Alias *Alias
	// Filename of the image, relative to the alias.
	Filename string
	// Thumbnail prefers a rendition that fits a list of items. It is made if necessary.
	Thumbnail bool
	// Owner shares the bounded work of making it, such as the address of the client.
	Owner string
}

// OpenPreview opens a thumbnail if it is wanted and there is a suitable rendition, otherwise the
// variant of the image, otherwise the image itself. The error is fs.ErrNotExist if there is no such
// image or the preview is too large, storagedrivers.ErrInvalidKey, or that of the storage.
func (s *Service) OpenPreview(ctx context.Context, p Preview) (*storagedrivers.Object, error) {
	alias := p.Alias
	if p.Thumbnail {
		if object, err := s.openThumbnail(ctx, p); err == nil {
			return object, nil
		}
	}
	if err := storagedrivers.ValidKey(alias.Key(p.Filename)); err != nil {
		return nil, err
	}
	// The name of a variant may be too long even if that of its image is not.
	if alias.MayHaveVariant(p.Filename) && storagedrivers.ValidKey(alias.VariantKey(p.Filename)) == nil {
		info, err := alias.Storage.Stat(ctx, alias.Key(p.Filename))
		if err != nil {
			return nil, err
		}
		object, err := small(alias.OpenVariant(ctx, p.Filename, info, alias.Storage.OpenSeeker))
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storagedrivers.ErrInvalidKey) {
			return object, err
		}
	}
	return small(alias.Storage.OpenSeeker(ctx, alias.Key(p.Filename)))
}

// openThumbnail opens the rendition for a list of items, and makes it if necessary.
func (s *Service) openThumbnail(ctx context.Context, p Preview) (*storagedrivers.Object, error) {
	rendition := suitable(p.Alias.Renditions)
	if rendition == nil || !p.Alias.IsRendered(p.Filename) {
		return nil, fs.ErrNotExist
	}
	request := &derived.RenditionRequest{
		Alias: p.Alias, Rendition: rendition, Filename: p.Filename,
		WebP: p.Alias.Negotiates(rendition, p.Filename), Owner: p.Owner,
	}
	object, err := request.OpenRendition(ctx, p.Alias.Storage.OpenSeeker)
	if errors.Is(err, derived.ErrNotMade) {
		if err := s.uploader.Derived.MakeRendition(ctx, request); err != nil {
			return nil, err
		}
		object, err = request.OpenRendition(ctx, p.Alias.Storage.OpenSeeker)
	}
	return small(object, err)
}

// suitable returns the smallest rendition that is not smaller than a thumbnail; nil if there is
// none.
func suitable(renditions []aliases.Rendition) *aliases.Rendition {
	var found *aliases.Rendition
	area := 0
	for i := range renditions {
		width, height := sides(renditions[i].Box)
		if min(width, height) >= thumbnailSide && (found == nil || width*height < area) {
			found, area = &renditions[i], width*height
		}
	}
	return found
}

// sides returns the width and height of a box. A free side is as long as the other.
func sides(box scale.Box) (width, height int) {
	return cmp.Or(box.Width, box.Height), cmp.Or(box.Height, box.Width)
}

// small returns an opened object. It closes an object that is too large for a page and returns
// fs.ErrNotExist.
func small(object *storagedrivers.Object, err error) (*storagedrivers.Object, error) {
	if err != nil {
		return nil, err
	}
	if object.Info.Size > maxPreview {
		return nil, errors.Join(fs.ErrNotExist, object.Close())
	}
	return object, nil
}
