package panel

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/derived"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/upload"
	"github.com/caddymedia/media/storagedrivers"
)

// thumbnailSide is about the width of an image in a list of items, in pixels.
const thumbnailSide = 160

// thumbnail opens the rendition for a list of items, and makes it if necessary. The error is
// fs.ErrNotExist if the request wants no thumbnail, or if there is no suitable rendition.
func thumbnail(
	r *http.Request, uploader *upload.Uploader, alias *aliases.Alias, filename string,
) (*storagedrivers.Object, error) {
	rendition := suitable(alias.Renditions)
	if !r.URL.Query().Has("thumbnail") || rendition == nil || !alias.IsRendered(filename) {
		return nil, fs.ErrNotExist
	}
	request := &derived.RenditionRequest{
		Alias: alias, Rendition: rendition, Filename: filename, WebP: alias.Negotiates(rendition, filename),
		Owner: "panel " + mediaapp.ClientOf(r.Context()),
	}
	object, err := request.OpenRendition(r.Context(), alias.Storage.OpenSeeker)
	if errors.Is(err, derived.ErrNotMade) {
		if err := uploader.Derived.MakeRendition(r.Context(), request); err != nil {
			return nil, err
		}
		object, err = request.OpenRendition(r.Context(), alias.Storage.OpenSeeker)
	}
	return small(object, err)
}

// suitable returns the smallest rendition that is not smaller than a thumbnail; nil if there is none.
func suitable(renditions []aliases.Rendition) *aliases.Rendition {
	var found *aliases.Rendition
	for i := range renditions {
		r := &renditions[i]
		width, height := sides(r.Box)
		if min(width, height) < thumbnailSide {
			continue
		}
		if found != nil {
			if w, h := sides(found.Box); w*h <= width*height {
				continue
			}
		}
		found = r
	}
	return found
}

// sides returns the width and height of a box. A free side is as long as the other.
func sides(box scale.Box) (width, height int) {
	return cmp.Or(box.Width, box.Height), cmp.Or(box.Height, box.Width)
}
