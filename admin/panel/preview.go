package panel

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	// maxPreview is the most bytes that are sent for a picture on a page.
	maxPreview   = 8 << 20
	cachePreview = "private, max-age=300"
	cacheAsk     = "private, no-cache"
	sandbox      = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
)

// previewTypes are what is shown on a page.
var previewTypes = map[string]string{
	".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".gif": "image/gif",
	".webp": "image/webp", ".svg": "image/svg+xml",
}

// preview serves a picture for a page: the variant where there is one, or itself. The rest
// of the route is "<kind>/<alias>/<filename>".
func (p *Panel) preview(w http.ResponseWriter, r *http.Request, rest string) {
	if !p.allowed(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	word, rest, _ := strings.Cut(rest, "/")
	name, filename, _ := strings.Cut(rest, "/")
	kind, ok := kindOf(word)
	if !ok || previewTypes[ext(filename)] == "" || storagedrivers.ValidKey(filename) != nil {
		p.noPreview(w, r)
		return
	}
	app, done, ok := p.use(w, r)
	if !ok {
		return
	}
	defer done()
	alias, ok := app.Alias(kind, name)
	if !ok {
		p.noPreview(w, r)
		return
	}
	object, contentType, err := picture(r, alias, filename)
	if err != nil {
		p.failPreview(w, r, err)
		return
	}
	defer object.Close()
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Security-Policy", sandbox)
	h.Set("Cache-Control", cachePreview)
	if alias.Overwrite {
		h.Set("Cache-Control", cacheAsk)
	}
	h.Set("ETag", tagOf(object.Info))
	http.ServeContent(w, r, "", object.Info.ModTime, object)
}

func ext(filename string) string { return strings.ToLower(path.Ext(filename)) }

// picture opens what is shown for an item. The error is fs.ErrNotExist for a picture that
// is too large.
func picture(r *http.Request, alias *ingest.Alias, filename string) (*storagedrivers.Object, string, error) {
	if err := storagedrivers.ValidKey(alias.Key(filename)); err != nil {
		return nil, "", err
	}
	if hasVariant(alias, filename) {
		object, err := variantOf(r, alias, filename)
		// The name of a variant may be too long where that of its picture is not.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storagedrivers.ErrInvalidKey) {
			return object, previewTypes[variant.Suffix], err
		}
	}
	object, err := small(alias.Storage.OpenSeeker(r.Context(), alias.Key(filename)))
	return object, previewTypes[ext(filename)], err
}

// variantOf opens the variant of a picture.
func variantOf(r *http.Request, alias *ingest.Alias, filename string) (*storagedrivers.Object, error) {
	if err := storagedrivers.ValidKey(alias.VariantKey(filename)); err != nil {
		return nil, err
	}
	info, err := alias.Storage.Stat(r.Context(), alias.Key(filename))
	if err != nil {
		return nil, err
	}
	return small(alias.OpenVariant(r.Context(), filename, info, alias.Storage.OpenSeeker))
}

// hasVariant tells whether a variant may lie beside an item.
func hasVariant(alias *ingest.Alias, filename string) bool {
	switch ext(filename) {
	case ".jpg", ".jpeg", ".png", ".gif":
		return alias.Kind == ingest.Image
	default:
		return false
	}
}

// small passes on an object that was opened. One that is too large for a page is fs.ErrNotExist.
func small(object *storagedrivers.Object, err error) (*storagedrivers.Object, error) {
	if err != nil {
		return nil, err
	}
	if object.Info.Size > maxPreview {
		return nil, errors.Join(fs.ErrNotExist, object.Close())
	}
	return object, nil
}

// tagOf is the tag of the storage, or where that has none one of size and time.
func tagOf(info storagedrivers.Info) string {
	if info.ETag != "" {
		return info.ETag
	}
	return fmt.Sprintf(`W/"%x-%x"`, info.Size, info.ModTime.UnixNano())
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
