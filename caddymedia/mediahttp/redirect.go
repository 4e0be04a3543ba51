package mediahttp

import (
	"errors"
	"fmt"
	"net/http"
	"path"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/storagedrivers"
)

// elsewhere sends the client to the storage for the bytes of an item where the alias wants
// that, and tells whether it did. HEAD is answered here: a signature is for one method.
func (h *Handler) elsewhere(w http.ResponseWriter, r *http.Request, alias *ingest.Alias, info storagedrivers.Info) (bool, error) {
	if alias.Redirect == nil || r.Method != http.MethodGet || active[mediaType(info)] {
		return false, nil
	}
	address, err := location(r, alias, info)
	if errors.Is(err, errors.ErrUnsupported) {
		if _, known := h.unsigned.LoadOrStore(alias.Name, true); !known {
			h.options.Log.Warn("serving an item instead of redirecting", "alias", alias.Name, "error", err)
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Location holds a signature: it is for the one who asked.
	w.Header().Set("Cache-Control", fmt.Sprintf("private, max-age=%d", int(alias.Redirect.Lifetime.Seconds()/2)))
	w.Header().Set("Location", address)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusFound)
	return true, nil
}

// location is where the storage serves an item, under the headers that it has here.
func location(r *http.Request, alias *ingest.Alias, info storagedrivers.Info) (string, error) {
	if alias.Redirect.Base != "" {
		return alias.Redirect.URL(info.Key), nil
	}
	opts := storagedrivers.PresignOptions{
		Lifetime: alias.Redirect.Lifetime, ContentType: info.ContentType, CacheControl: alias.CacheControl,
	}
	if !inline(mediaType(info)) {
		opts.Disposition = attachment(path.Base(info.Key))
	}
	return alias.Storage.Presign(r.Context(), info.Key, opts)
}
