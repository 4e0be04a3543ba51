package mediahttp

import (
	"errors"
	"fmt"
	"net/http"
	"path"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/storagedrivers"
)

// elsewhere redirects a GET request to the storage if the alias redirects, and reports whether it
// did. HEAD is not redirected, because a signature is for one method.
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
	// Location contains a signature, so shared caches must not store it.
	w.Header().Set("Cache-Control", fmt.Sprintf("private, max-age=%d", int(alias.Redirect.Lifetime.Seconds()/2)))
	w.Header().Set("Location", address)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusFound)
	return true, nil
}

// location returns the address of an item in the storage, which serves it with the same headers.
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
