package serve

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// elsewhere redirects a GET request of an alias that redirects to the storage, and reports whether it
// did. HEAD is not redirected, because a signature is for one method.
func (s *Server) elsewhere(w http.ResponseWriter, r *http.Request, wanted target, info storagedrivers.Info) (bool, error) {
	alias := wanted.alias
	if r.Method != http.MethodGet || active(mediaType(info)) {
		return false, nil
	}
	lifetime := wanted.redirectLifetime()
	if wanted.signed != nil && lifetime == 0 {
		return false, nil // the address has just expired
	}
	address, err := location(r, wanted, info, lifetime)
	if errors.Is(err, errors.ErrUnsupported) {
		if _, known := s.unsigned.LoadOrStore(alias.Path(), true); !known {
			s.Log.Warn("serving an item instead of redirecting", "kind", alias.Kind.Name(), "alias", alias.Name, "error", err)
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Location contains a signature, so shared caches must not store it.
	w.Header().Set("Cache-Control", wanted.redirectCacheControl(lifetime))
	w.Header().Set("Location", address)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusFound)
	return true, nil
}

// redirectCacheControl returns the Cache-Control header of a redirect to an address of that lifetime.
// A rendition has another address in the storage when its image or its settings change, and the old
// one is removed.
func (t target) redirectCacheControl(lifetime time.Duration) string {
	if t.rendition != nil {
		return "private, no-cache"
	}
	return fmt.Sprintf("private, max-age=%d", int(lifetime.Seconds()/2))
}

// redirectLifetime returns the lifetime of the address in the storage, which does not outlive that
// of the request.
func (t target) redirectLifetime() time.Duration {
	if t.signed != nil {
		return min(t.alias.Redirect.Lifetime, t.signed.rest())
	}
	return t.alias.Redirect.Lifetime
}

// location returns the address of an item in the storage, which serves it with the same headers.
func location(r *http.Request, wanted target, info storagedrivers.Info, lifetime time.Duration) (string, error) {
	alias := wanted.alias
	if alias.Redirect.Base != "" {
		return alias.Redirect.URL(info.Key), nil
	}
	opts := storagedrivers.PresignOptions{
		Lifetime: lifetime, ContentType: info.ContentType, CacheControl: wanted.cacheControl(),
	}
	if !inline(mediaType(info)) {
		opts.Disposition = attachment(path.Base(info.Key))
	}
	if wanted.signed != nil && wanted.signed.download != "" {
		opts.Disposition = attachment(wanted.signed.download)
	}
	return alias.Storage.Presign(r.Context(), info.Key, opts)
}
