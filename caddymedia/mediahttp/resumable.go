package mediahttp

import (
	"context"
	"net/http"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/tus"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// resumableSuffix is the end of the paths of the endpoints, before the ID of an upload.
const resumableSuffix = "/resumable"

// resumable returns the endpoint of resumable uploads. id is that of an upload; empty for the
// endpoint itself.
func (h *Handler) resumable(kind aliases.Kind, id string) endpoint {
	return func(service *media.Service, w http.ResponseWriter, r *http.Request) error {
		path := h.options.MountPrefix(r) + uploadPath + kind.Name() + resumableSuffix
		return h.uploadFrom(w, r, kind, tokens.Upload).resumable(r, path, id)(service, w, r)
	}
}

// UploadResumable serves resumable uploads of a caller like their endpoints, but without a token.
// path is that of the endpoint as the client sees it, and id that of an upload; empty for the
// endpoint itself. The caller's origin and account own the uploads. HEAD and GET may store an item,
// and a header may name another method, so the permission must not depend on the method. The error
// is an *[Error]; then nothing was written. Its status is 404 if resumable uploads are off.
func (h *Handler) UploadResumable(w http.ResponseWriter, r *http.Request, kind aliases.Kind, path, id string, caller Caller) error {
	return h.serveWith(w, r, h.uploadOf(r, kind, caller).resumable(r, path, id))
}

// resumable returns the endpoint of resumable uploads for the caller of u.
func (u *uploadRequest) resumable(r *http.Request, path, id string) endpoint {
	e := &tus.Endpoint{
		Kind: u.kind, Path: path, BaseURL: u.baseURL, Origin: u.origin, Client: u.options.Client(r),
		Running: u.source.Running, Log: u.options.Log,
		Authenticate: func(ctx context.Context, service *media.Service) (tokens.Caller, *aliases.Failure) {
			caller, refused := u.authenticate(ctx, service)
			if refused == nil && !caller.AllowsKind(u.kind.Name()) {
				refused = ticketRefusal(caller, u.kind)
			}
			if refused != nil {
				return caller, &aliases.Failure{Reason: refused.reason, Message: refused.message}
			}
			return caller, nil
		},
	}
	return func(service *media.Service, w http.ResponseWriter, r *http.Request) error {
		return e.Serve(service, w, r, id)
	}
}
