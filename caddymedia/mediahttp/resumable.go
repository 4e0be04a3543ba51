package mediahttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/resumable"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/upload"
	"github.com/caddymedia/media/storagedrivers"
)

// The protocol of resumable uploads, https://tus.io/protocols/resumable-upload.
const (
	tusVersion    = "1.0.0"
	tusExtensions = "creation,creation-with-upload,creation-defer-length,expiration,checksum,termination,concatenation"
	tusChecksums  = "sha1,sha256"
	tusType       = "application/offset+octet-stream"

	// statusChecksum is "460 Checksum Mismatch" of the protocol.
	statusChecksum = 460
)

// Headers of the protocol and of this service.
const (
	headerTusResumable = "Tus-Resumable"
	headerTusVersion   = "Tus-Version"
	headerOffset       = "Upload-Offset"
	headerLength       = "Upload-Length"
	headerDeferLength  = "Upload-Defer-Length"
	headerMetadata     = "Upload-Metadata"
	headerConcat       = "Upload-Concat"
	headerExpires      = "Upload-Expires"
	headerChecksum     = "Upload-Checksum"
	headerOverride     = "X-Http-Method-Override"

	headerFullPath = "Media-Full-Path"
	headerFilename = "Media-Filename"
	headerWebP     = "Media-Webp"
)

// resumableSuffix is the end of the paths of the endpoints, before the ID of an upload.
const resumableSuffix = "/resumable"

// resumable returns the endpoint of resumable uploads. id is that of an upload; empty for the
// endpoint itself.
func (h *Handler) resumable(kind aliases.Kind, id string) endpoint {
	return func(service *media.Service, w http.ResponseWriter, r *http.Request) error {
		prefix := h.options.MountPrefix(r)
		t := &tus{
			uploadRequest: uploadRequest{
				Handler: h, kind: kind, origin: aliases.OriginHTTP, baseURL: h.baseURL(r) + prefix,
				authenticate: func(ctx context.Context, service *media.Service) (tokens.Caller, *refusal) {
					return h.authenticate(ctx, service, w, r.Header)
				},
			},
			path: prefix + "/api/upload/" + kind.Name() + resumableSuffix, id: id,
		}
		return t.serve(service, w, r)
	}
}

// tus is one request of the protocol.
type tus struct {
	uploadRequest
	path string // of the endpoint, as the client sees it
	id   string // of the upload; empty for the endpoint itself

	service *media.Service
	w       http.ResponseWriter
	r       *http.Request
	method  string // which may be another one than that of r
	caller  tokens.Caller
	actor   aliases.Actor
}

// serve responds to a request.
func (t *tus) serve(service *media.Service, w http.ResponseWriter, r *http.Request) error {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if service.Uploads() == nil {
		return &Error{http.StatusNotFound, errors.New("resumable uploads are off")}
	}
	t.service, t.w, t.r = service, w, r
	header.Set(headerTusResumable, tusVersion)
	t.method = cmp.Or(joined(r.Header, headerOverride), r.Method)
	if t.method == http.MethodOptions {
		return t.abilities()
	}
	if t.method != http.MethodGet && joined(r.Header, headerTusResumable) != tusVersion {
		header.Set(headerTusVersion, tusVersion)
		return t.refuse(http.StatusPreconditionFailed, "send the header Tus-Resumable: "+tusVersion)
	}
	serve, allow := t.function() //nolint:contextcheck // the request has it
	if serve == nil {
		header.Set("Allow", allow)
		return t.refuse(http.StatusMethodNotAllowed, "use "+allow)
	}
	var refused *refusal
	if t.caller, refused = t.authenticate(r.Context(), service); refused == nil && !t.caller.AllowsKind(t.kind.Name()) {
		refused = ticketRefusal(t.caller, t.kind)
	}
	if refused != nil {
		return t.refuseWith(refused)
	}
	t.actor = aliases.Actor{Origin: t.origin, Account: t.caller.Account.APIKey, Client: t.options.Client(r)}
	t.r = r.WithContext(storagedrivers.WithOwner(r.Context(), t.actor.Owner()))
	return serve()
}

// joined returns the values of a header as one, RFC 9110 section 5.3.
func joined(header http.Header, name string) string { return strings.Join(header.Values(name), ",") }

// function returns the function of the method, or nil and the methods that are allowed.
func (t *tus) function() (serve func() error, allow string) {
	if t.id == "" {
		if t.method == http.MethodPost {
			return t.create, ""
		}
		return nil, "OPTIONS, POST"
	}
	switch t.method {
	case http.MethodHead:
		return t.found(t.head), ""
	case http.MethodGet:
		return t.found(t.get), ""
	case http.MethodPatch:
		return t.found(t.patch), ""
	case http.MethodDelete:
		return t.found(t.terminate), ""
	}
	return nil, "OPTIONS, HEAD, GET, PATCH, DELETE"
}

// abilities responds with the abilities of the service. It needs no credentials.
func (t *tus) abilities() error {
	header := t.w.Header()
	header.Set(headerTusVersion, tusVersion)
	header.Set("Tus-Extension", tusExtensions)
	header.Set("Tus-Checksum-Algorithm", tusChecksums)
	header.Set("Tus-Max-Size", strconv.FormatInt(t.maxSize(), 10))
	noContent(t.w, t.r)
	return nil
}

// maxSize returns the largest item of the kind in bytes.
func (t *tus) maxSize() int64 {
	var largest int64
	for _, alias := range t.service.Aliases() {
		if alias.Kind == t.kind {
			largest = max(largest, alias.MaxSize)
		}
	}
	return largest
}

// found returns a function that finds the upload and calls serve.
func (t *tus) found(serve func(*resumable.Upload) error) func() error {
	return func() error {
		u, err := t.service.Uploads().Find(t.r.Context(), t.actor.Owner(), t.id)
		switch {
		case err != nil:
			return t.refuseError(err)
		case u.Kind != t.kind.Name():
			return t.refuseError(resumable.ErrUnknown)
		case !t.caller.Scope().Covers(u.Scope):
			return t.refuseError(resumable.ErrScope)
		case isRefused(u) && t.method != http.MethodDelete:
			return t.refuseError(&endedError{u.Outcome.Refused})
		}
		return serve(u)
	}
}

// isRefused reports whether the item of the upload was refused.
func isRefused(u *resumable.Upload) bool { return u.Outcome != nil && u.Outcome.Refused != "" }

// head responds with the offset of the upload, and finishes a complete one.
func (t *tus) head(u *resumable.Upload) error {
	if err := t.finish(u); err != nil {
		return t.refuseError(err)
	}
	t.describe(u)
	t.w.WriteHeader(http.StatusOK)
	return nil
}

// get responds with the item of a finished upload, or with the state of another one.
func (t *tus) get(u *resumable.Upload) error {
	if err := t.finish(u); err != nil {
		return t.refuseError(err)
	}
	if item, ok := t.service.ItemOf(u, t.baseURL); ok {
		return answer(t.w, http.StatusOK, uploadAnswerOf([]upload.Item{item}))
	}
	a := resumableAnswer{Success: true, Offset: u.Offset(), ExpiresAt: u.Expires().Unix()}
	if u.Length != resumable.Unknown {
		a.Length = &u.Length
	}
	return answer(t.w, http.StatusOK, a)
}

// terminate removes the upload, never its item.
func (t *tus) terminate(u *resumable.Upload) error {
	if u.Outcome == nil { // another request may be storing its item
		unlock, err := u.LockFinish(t.r.Context())
		if err != nil {
			return t.refuseError(media.Finishing(err))
		}
		defer unlock()
		if err := u.Reload(t.r.Context()); err != nil {
			return t.refuseError(err)
		}
	}
	if err := t.service.TerminateUpload(t.r.Context(), u, t.actor); err != nil {
		return t.refuseError(err)
	}
	t.w.WriteHeader(http.StatusNoContent)
	return nil
}

// finish stores the item of a complete upload that is not finished. It does nothing for others. The
// error is an [*endedError] if the item was refused, by another request too.
func (t *tus) finish(u *resumable.Upload) error { return t.finishBy(u, t.service.FinishUpload) }

// finishBy is finish by a method of the service.
func (t *tus) finishBy(
	u *resumable.Upload, finish func(context.Context, *resumable.Upload, media.ConfirmFunc, string) aliases.Failures,
) error {
	if u.Outcome == nil && !u.Partial && u.Complete() {
		t.finishing = u
		if failures := finish(t.r.Context(), u, t.confirm, t.baseURL); failures != nil {
			if t.id != "" && errors.Is(failures[0], resumable.ErrUnknown) {
				return resumable.ErrUnknown // it has expired, or was terminated
			}
			t.service.CountRefusal(t.r.Context(), t.caller.Ticket, failures)
			return failures
		}
	}
	if isRefused(u) {
		return &endedError{u.Outcome.Refused}
	}
	return nil
}

// endedError means that the item of an upload was refused earlier.
type endedError struct{ message string }

// Error returns why the item was refused.
func (e *endedError) Error() string { return e.message }
