package media

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/derived"
	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/naming"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	// maxPreview is the maximum size of a preview in bytes.
	maxPreview = 8 << 20
	// thumbnailSide is about the width of an image in a list of items, in pixels.
	thumbnailSide = 160
	// smallFile is the size of a file for which no thumbnail is made, in bytes. A larger file may have
	// many pixels, each of which takes 4 bytes in a browser.
	smallFile = 8 << 10
	// maxUnscaled is the maximum size of a preview that is sent because no thumbnail can be made at
	// present, in bytes.
	maxUnscaled = 256 << 10
	// maxScaled is the maximum size of a file of which a thumbnail is made, in bytes.
	maxScaled = 64 << 20
)

// ErrBusy means that a thumbnail cannot be made at present, because too many images are being
// worked on.
var ErrBusy = render.ErrBusy

// Preview asks for a small form of a stored image.
type Preview struct {
	Alias *Alias
	// Filename of the image, relative to the alias.
	Filename string
	// Thumbnail prefers a form that fits a list of items. It is made if necessary.
	Thumbnail bool
	// Owner shares the bounded work of making it, such as the address of the client.
	Owner string
}

// PreviewContent is the content of a preview. The caller must close it.
type PreviewContent struct {
	io.ReadSeekCloser
	// Info describes the content.
	Info storagedrivers.Info
}

// OpenPreview opens the variant of the image if there is one, otherwise the image itself. If a
// thumbnail is wanted, it opens the smallest suitable rendition of the alias, or without one a
// thumbnail that is not stored, unless the image is small already or cannot be rendered. The error is
// fs.ErrNotExist if there is no such image or the preview is too large, storagedrivers.ErrInvalidKey,
// [ErrBusy], or that of the storage.
func (s *Service) OpenPreview(ctx context.Context, p Preview) (*PreviewContent, error) {
	if !p.Thumbnail {
		return openUnscaled(ctx, p, maxPreview)
	}
	if rendition := suitable(p.Alias.Renditions); rendition != nil && p.Alias.IsRendered(p.Filename) {
		if content, err := s.openRendition(ctx, p, rendition); err == nil {
			return content, nil
		}
		return openUnscaled(ctx, p, maxPreview)
	}
	content, err := s.openThumbnail(ctx, p)
	if err == nil {
		return content, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if !errors.Is(err, ErrBusy) || errors.Is(err, render.ErrTime) {
		return openUnscaled(ctx, p, maxPreview)
	}
	content, unscaled := openUnscaled(ctx, p, maxUnscaled)
	if errors.Is(unscaled, fs.ErrNotExist) {
		return nil, err
	}
	return content, unscaled
}

// openUnscaled opens the variant of the image, otherwise the image itself, up to a size of most bytes.
func openUnscaled(ctx context.Context, p Preview, most int64) (*PreviewContent, error) {
	alias := p.Alias
	if err := storagedrivers.ValidKey(alias.Key(p.Filename)); err != nil {
		return nil, err
	}
	if mayHaveVariant(p) {
		info, err := alias.Storage.Stat(ctx, alias.Key(p.Filename))
		if err != nil {
			return nil, err
		}
		object, err := alias.OpenVariant(ctx, p.Filename, info, alias.Storage.OpenSeeker)
		if err == nil {
			content, err := small(object, most)
			if !errors.Is(err, fs.ErrNotExist) {
				return content, err
			}
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storagedrivers.ErrInvalidKey) {
			return nil, err
		}
	}
	object, err := alias.Storage.OpenSeeker(ctx, alias.Key(p.Filename))
	if err != nil {
		return nil, err
	}
	return small(object, most)
}

// mayHaveVariant reports whether the image may have a variant. The name of a variant may be too long
// even if that of its image is not.
func mayHaveVariant(p Preview) bool {
	return p.Alias.MayHaveVariant(p.Filename) && storagedrivers.ValidKey(p.Alias.VariantKey(p.Filename)) == nil
}

// openThumbnail returns the thumbnail of an image, and makes it if necessary. The error is
// fs.ErrNotExist if the image needs none or is too large.
func (s *Service) openThumbnail(ctx context.Context, p Preview) (*PreviewContent, error) {
	if !imaging.FormatOf(naming.Extension(p.Filename)).Decodable() {
		return nil, fs.ErrNotExist
	}
	request := &derived.ThumbnailRequest{Alias: p.Alias, Filename: p.Filename, Owner: p.Owner, Hold: s.hold}
	var err error
	if request.Stored.Image, err = p.Alias.Storage.Stat(ctx, p.Alias.Key(p.Filename)); err != nil {
		return nil, err
	}
	if mayHaveVariant(p) {
		request.Stored.Variant, err = p.Alias.Storage.Stat(ctx, p.Alias.VariantKey(p.Filename))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if size := request.Source().Size; size <= smallFile || size > maxScaled {
		return nil, fs.ErrNotExist
	}
	thumbnail, err := s.uploader.Derived.Thumbnail(ctx, request)
	if err != nil {
		return nil, err
	}
	return &PreviewContent{unclosed{bytes.NewReader(thumbnail.File)}, thumbnail.Info}, nil
}

// hold keeps the service open until release is called, for work that may go on without its callers.
func (s *Service) hold() (release func(), err error) {
	_, release, err = s.Acquire()
	return release, err
}

// unclosed is a reader that need not be closed.
type unclosed struct{ io.ReadSeeker }

func (unclosed) Close() error { return nil }

// openRendition opens the rendition for a list of items, and makes it if necessary.
func (s *Service) openRendition(ctx context.Context, p Preview, rendition *aliases.Rendition) (*PreviewContent, error) {
	request := &derived.RenditionRequest{
		Alias: p.Alias, Rendition: rendition, Filename: p.Filename,
		WebP: p.Alias.Negotiates(rendition, p.Filename), Owner: p.Owner, Hold: s.hold,
	}
	object, err := request.OpenRendition(ctx, p.Alias.Storage.OpenSeeker)
	if errors.Is(err, derived.ErrNotMade) {
		if err := s.uploader.Derived.MakeRendition(ctx, request); err != nil {
			return nil, err
		}
		object, err = request.OpenRendition(ctx, p.Alias.Storage.OpenSeeker)
	}
	if err != nil {
		return nil, err
	}
	return small(object, maxPreview)
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

// small returns an opened object. It closes an object that is larger than most and returns
// fs.ErrNotExist.
func small(object *storagedrivers.Object, most int64) (*PreviewContent, error) {
	if object.Info.Size > most {
		return nil, errors.Join(fs.ErrNotExist, object.Close())
	}
	return &PreviewContent{object, object.Info}, nil
}
