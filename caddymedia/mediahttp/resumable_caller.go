package mediahttp

import (
	"context"
	"net/http"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// UploadResumable serves resumable uploads of a caller like their endpoints, but without a token.
// path is that of the endpoint as the client sees it, and id that of an upload; empty for the
// endpoint itself. The caller's origin and account own the uploads. HEAD and GET may store an item,
// and a header may name another method, so the permission must not depend on the method. The error
// is an *[Error]; then nothing was written. Its status is 404 if resumable uploads are off.
func (h *Handler) UploadResumable(w http.ResponseWriter, r *http.Request, kind aliases.Kind, path, id string, caller Caller) error {
	t := &tus{uploadRequest: h.uploadOf(r, kind, caller), path: path, id: id}
	return h.serveWith(w, r, t.serve)
}

// uploadOf returns a request of a caller without a token.
func (h *Handler) uploadOf(r *http.Request, kind aliases.Kind, caller Caller) uploadRequest {
	return uploadRequest{
		Handler: h, kind: kind, origin: caller.Origin, baseURL: h.baseURL(r),
		authenticate: func(_ context.Context, running *media.Service) (tokens.Caller, *refusal) {
			if caller.Confirm != nil && !caller.Confirm(running) {
				return tokens.Caller{Account: caller.Account}, &refusal{http.StatusUnauthorized, aliases.Unauthorized, "the caller is logged out or may not upload any more"}
			}
			return tokens.Caller{Account: caller.Account}, nil
		},
	}
}
