package caller

import (
	"net/http"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
)

// CORSMaxAge is how many seconds browsers keep the response to a preflight request.
const CORSMaxAge = "86400"

// AllowOrigin reports whether the page that sends a request may use the service, and sets the
// headers that say so. The browser's own credentials are never allowed, so every page needs a token
// or a signature.
func AllowOrigin(origins *service.Origins, header http.Header, r *http.Request) bool {
	header.Add("Vary", "Origin") // also for "*", which a reload may replace
	allowed := origins.Allow(r.Header["Origin"])
	if allowed == "" {
		return false
	}
	header.Set("Access-Control-Allow-Origin", allowed)
	return true
}
