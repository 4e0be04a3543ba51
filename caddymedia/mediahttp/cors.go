package mediahttp

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
)

// Values of the headers of CORS, which are the same for all endpoints.
var (
	corsMethods = strings.Join(allMethods(), ", ")
	// corsRequest are the headers that programs for the service send: credentials, those of tus and
	// of its clients, those of requests for items, and the key of a request that may be repeated.
	// So one preflight request covers them. Others are allowed when they are asked for.
	corsRequest = strings.Join([]string{
		"Authorization", "HTTP_SERVICE_API_KEY", "HTTP_SERVICE_ACCESS_TOKEN", caller.HeaderKey, caller.HeaderToken,
		"Content-Type", "X-Requested-With", "X-Request-ID", "X-HTTP-Method-Override",
		"Tus-Resumable", "Upload-Length", "Upload-Defer-Length", "Upload-Offset", "Upload-Metadata",
		"Upload-Concat", "Upload-Checksum",
		"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Cache-Control",
		caller.HeaderRetryKey,
	}, ", ")
	// corsResponse are the headers that a page may read: of tus, of finished uploads, of items.
	corsResponse = strings.Join([]string{
		"Location", "Upload-Offset", "Upload-Length", "Upload-Defer-Length", "Upload-Metadata", "Upload-Concat",
		"Upload-Expires", "Tus-Version", "Tus-Resumable", "Tus-Max-Size", "Tus-Extension", "Tus-Checksum-Algorithm",
		"Media-Full-Path", "Media-Filename", "Media-WebP", "Media-Held", "Retry-After",
		"Accept-Ranges", "Content-Disposition", "Content-Length", "Content-Range", "ETag",
		caller.HeaderReplayed,
	}, ", ")
)

// allMethods returns the methods of the endpoints.
func allMethods() []string {
	var all []string
	for _, e := range routes {
		all = append(all, e.methods...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isPreflight reports whether an OPTIONS request is a preflight request, and CORS is configured.
// The request that it announces must be one of the service: others are for the next handler.
func (h *Handler) isPreflight(r *http.Request) bool {
	method := r.Header.Get("Access-Control-Request-Method")
	if method == "" || r.Header.Get("Origin") == "" {
		return false
	}
	announced := r.WithContext(r.Context())
	announced.Method = method
	if h.route(announced) == nil {
		return false
	}
	running, release, err := h.gate.Acquire()
	if err != nil {
		return false
	}
	defer release()
	return running.Origins() != nil
}

// preflight is the endpoint of preflight requests, which need no credentials.
func preflight(running *service.Service, w http.ResponseWriter, r *http.Request) error {
	origins, header := running.Origins(), w.Header()
	if origins != nil && caller.AllowOrigin(origins, header, r) { // a reload may have removed them
		header.Set("Access-Control-Allow-Methods", corsMethods)
		header.Set("Access-Control-Allow-Headers", strings.Join(append([]string{corsRequest}, r.Header["Access-Control-Request-Headers"]...), ", "))
		header.Set("Access-Control-Max-Age", caller.CORSMaxAge)
	}
	httpx.NoContent(w, r)
	return nil
}

// exposeResponse lets the page that sends a request read the response, if its origin is allowed.
func exposeResponse(origins *service.Origins, header http.Header, r *http.Request) {
	if caller.AllowOrigin(origins, header, r) {
		header.Set("Access-Control-Expose-Headers", corsResponse)
	}
}
