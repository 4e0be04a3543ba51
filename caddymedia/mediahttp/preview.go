package mediahttp

import (
	"bytes"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/storagedrivers"
)

const pdfType = "application/pdf"

// Preview serves an item to a page of the panel: an image, a film, a sound, a PDF or a text, which is
// plain text then. With thumbnail it serves the thumbnail of an image, and makes it if necessary. No
// browser runs the answer or keeps it for others. The request is authenticated, so it needs no
// signature. path is as for [Handler.Items]. The error is an *[Error]; then nothing was written.
func (h *Handler) Preview(w http.ResponseWriter, r *http.Request, kind item.Kind, path string, thumbnail bool) error {
	return h.serveWith(w, r, func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		address, problem := addressBelow(path)
		alias, ok := running.Alias(kind, address.alias)
		if problem != "" || !ok {
			return staticError(w, http.StatusNotFound, fs.ErrNotExist)
		}
		wanted := previewOf(alias, address.filename)
		if thumbnail {
			wanted.rendition = thumbnailOf(running)
		}
		if !wanted.mayExist() || !isPreviewed(mediaType(alias.Typed(storagedrivers.Info{
			Key: address.filename, ContentType: storagedrivers.ContentType(address.filename),
		}))) {
			return staticError(w, http.StatusNotFound, fs.ErrNotExist)
		}
		return h.serveStatic(running, w, r, wanted)
	})
}

// previewOf returns a target that is served here, whatever the alias does with its public addresses.
func previewOf(alias *item.Alias, filename string) target {
	shown := *alias
	shown.Redirect = nil
	shown.CacheControl = "private, max-age=300"
	if alias.Overwrite {
		shown.CacheControl = "private, no-cache"
	}
	shown.RenditionCacheControl = shown.CacheControl
	return target{alias: &shown, filename: filename, preview: true}
}

// thumbnailOf returns the rendition for lists: a WebP if there is an encoder.
func thumbnailOf(running *service.Service) *item.Rendition {
	thumbnail := item.Thumbnail
	if running.Uploader().Derived.Images.EncodesWebP() {
		thumbnail.Format = imaging.WebP
	}
	return &thumbnail
}

// isPreviewed reports whether pages show a media type.
func isPreviewed(mediaType string) bool {
	class, _, _ := strings.Cut(mediaType, "/")
	return class == "image" || class == "audio" || class == "video" || mediaType == pdfType || isText(mediaType)
}

// isText reports whether a media type is shown as plain text, like HTML and XML.
func isText(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || mediaType == "application/json" || mediaType == "application/xml" ||
		mediaType == "application/x-subrip"
}

// setPreviewHeaders sets the headers of a preview. A PDF is shown in a frame of the page: the viewers of
// Chromium and Firefox work with a sandbox in the header, but not with one in the attribute of the frame.
func setPreviewHeaders(header http.Header, info storagedrivers.Info) {
	framedBy := "'none'"
	switch name := mediaType(info); {
	case isText(name):
		header.Set("Content-Type", "text/plain; charset=utf-8")
	case name == pdfType:
		framedBy = "'self'"
	}
	header.Set("Content-Security-Policy", sandbox+"; frame-ancestors "+framedBy)
	header.Del("Content-Disposition")
}

// sendUnstored sends a thumbnail that was made but cannot be stored. It has no tag, and is made again
// for the next request.
func (t target) sendUnstored(w http.ResponseWriter, r *http.Request, file []byte) {
	extension := t.rendition.FileOf(t.filename, false).Format.Extension()
	setHeaders(w.Header(), t, storagedrivers.Info{ContentType: storagedrivers.ContentType("." + extension)})
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
}
