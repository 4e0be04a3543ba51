package panel

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	// maxPreview is the maximum size of a preview in bytes.
	maxPreview   = 8 << 20
	cachePreview = "private, max-age=300"
	cacheAsk     = "private, no-cache"
	sandbox      = mediahttp.Sandbox + "; frame-ancestors 'none'"
)

// previewTypes are the types that all browsers display.
var previewTypes = map[string]bool{
	"image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true, "image/avif": true, "image/svg+xml": true,
}

// preview serves an image for a page: its variant if there is one, otherwise the image itself.
// With the query "thumbnail" it serves a rendition, if the alias has a suitable one. rest is
// "<kind>/<alias>/<filename>".
func (p *Panel) preview(w http.ResponseWriter, r *http.Request, rest string) {
	if !p.allowed(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	word, rest, _ := strings.Cut(rest, "/")
	name, filename, _ := strings.Cut(rest, "/")
	kind, ok := kindOf(word)
	if !ok || !previewTypes[storagedrivers.ContentType(filename)] || storagedrivers.ValidKey(filename) != nil {
		p.noPreview(w, r)
		return
	}
	service, release, ok := p.use(w, r)
	if !ok {
		return
	}
	defer release()
	alias, ok := service.Alias(kind, name)
	if !ok {
		p.noPreview(w, r)
		return
	}
	object, err := thumbnail(r, service.Uploader(), alias, filename)
	if err != nil {
		object, err = openPreview(r, alias, filename)
	}
	if err != nil {
		p.failPreview(w, r, err)
		return
	}
	defer object.Close()
	h := w.Header()
	h.Set("Content-Type", object.Info.ContentType)
	h.Set("Content-Security-Policy", sandbox)
	h.Set("Cache-Control", cachePreview)
	if alias.Overwrite {
		h.Set("Cache-Control", cacheAsk)
	}
	if tag := mediahttp.EntityTag(alias, object.Info); tag != "" {
		h.Set("ETag", tag)
	}
	http.ServeContent(w, r, "", object.Info.ModTime, object)
}

// openPreview opens the preview of an item. It returns fs.ErrNotExist if the preview is too large.
func openPreview(r *http.Request, alias *aliases.Alias, filename string) (*storagedrivers.Object, error) {
	if err := storagedrivers.ValidKey(alias.Key(filename)); err != nil {
		return nil, err
	}
	if alias.MayHaveVariant(filename) {
		object, err := variantOf(r, alias, filename)
		// The name of a variant may be too long even if that of its image is not.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storagedrivers.ErrInvalidKey) {
			return object, err
		}
	}
	return small(alias.Storage.OpenSeeker(r.Context(), alias.Key(filename)))
}

// variantOf opens the variant of an image.
func variantOf(r *http.Request, alias *aliases.Alias, filename string) (*storagedrivers.Object, error) {
	if err := storagedrivers.ValidKey(alias.VariantKey(filename)); err != nil {
		return nil, err
	}
	info, err := alias.Storage.Stat(r.Context(), alias.Key(filename))
	if err != nil {
		return nil, err
	}
	return small(alias.OpenVariant(r.Context(), filename, info, alias.Storage.OpenSeeker))
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

func (p *Panel) noPreview(w http.ResponseWriter, r *http.Request) {
	p.fail(w, r, http.StatusNotFound, "there is no preview")
}

func (p *Panel) failPreview(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, storagedrivers.ErrInvalidKey):
		p.noPreview(w, r)
	case errors.Is(err, storagedrivers.ErrUnavailable), errors.Is(err, storagedrivers.ErrClosed):
		p.fail(w, r, http.StatusServiceUnavailable, "the storage cannot be reached now")
	default:
		p.fail(w, r, http.StatusBadGateway, "the storage answered with an error")
	}
}
