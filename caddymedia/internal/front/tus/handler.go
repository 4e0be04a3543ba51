// Package tus serves resumable uploads by the protocol tus 1.0.0,
// https://tus.io/protocols/resumable-upload, over a service.Service. It knows no credentials: those
// who make an endpoint say how requests are authenticated. Begin with [Endpoint.Serve].
package tus

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// The version and the abilities of the protocol.
const (
	version    = "1.0.0"
	extensions = "creation,creation-with-upload,creation-defer-length,expiration,checksum,termination,concatenation"
	checksums  = "sha1,sha256"
	bodyType   = "application/offset+octet-stream"

	// statusChecksum is "460 Checksum Mismatch" of the protocol.
	statusChecksum = 460
)

// Headers of the protocol and of this service.
const (
	headerResumable   = "Tus-Resumable"
	headerVersion     = "Tus-Version"
	headerOffset      = "Upload-Offset"
	headerLength      = "Upload-Length"
	headerDeferLength = "Upload-Defer-Length"
	headerMetadata    = "Upload-Metadata"
	headerConcat      = "Upload-Concat"
	headerExpires     = "Upload-Expires"
	headerChecksum    = "Upload-Checksum"
	headerOverride    = "X-Http-Method-Override"

	headerFullPath = "Media-Full-Path"
	headerFilename = "Media-Filename"
	headerWebP     = "Media-Webp"
	headerHeld     = "Media-Held"
)

// Endpoint is the endpoint of the resumable uploads of a kind, as one request finds it.
type Endpoint struct {
	*caller.Gate
	// Kind of the items.
	Kind item.Kind
	// Path of the endpoint, as the client sees it.
	Path string
	// BaseURL is the start of public addresses if an alias has none.
	BaseURL string
	// Origin of the items.
	Origin item.Origin
	// Authenticate returns the caller according to a service. It is called before anything else, and
	// again before an item is stored.
	Authenticate op.Authenticator
}

// Serve responds to a request for the upload of an ID; for an empty ID, to one for the endpoint
// itself. The error is an *[httpx.Error]; then nothing was written.
func (e *Endpoint) Serve(running *service.Service, w http.ResponseWriter, r *http.Request, id string) error {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if running.Uploads() == nil {
		return &httpx.Error{Status: http.StatusNotFound, Err: errors.New("resumable uploads are off")}
	}
	header.Set(headerResumable, version)
	q := &request{Endpoint: e, running: running, id: id, w: w, r: r, method: cmp.Or(joined(r.Header, headerOverride), r.Method)}
	return q.respond(r.Context())
}

// request is one request of the protocol.
type request struct {
	*Endpoint
	running *service.Service
	id      string // of the upload; empty for the endpoint itself
	w       http.ResponseWriter
	r       *http.Request
	method  string // which may be another one than that of r
	*caller.Permit
}

// respond is [Endpoint.Serve].
func (q *request) respond(ctx context.Context) error {
	header := q.w.Header()
	if q.method == http.MethodOptions {
		return q.abilities()
	}
	if q.method != http.MethodGet && joined(q.r.Header, headerResumable) != version {
		header.Set(headerVersion, version)
		return q.refuse(ctx, &requestError{http.StatusPreconditionFailed, "send the header Tus-Resumable: " + version})
	}
	if allowed := q.allowed(); !slices.Contains(allowed, q.method) {
		allow := strings.Join(allowed, ", ")
		header.Set("Allow", allow)
		return q.refuse(ctx, &requestError{http.StatusMethodNotAllowed, "use " + allow})
	}
	if q.Permit = q.Gate.Permit(q.running, q.r, q.Origin, q.Authenticate); q.Refused != nil {
		return q.refuse(ctx, q.Refused)
	}
	ctx = storagedrivers.WithOwner(ctx, q.Actor.Owner())
	q.r = q.r.WithContext(ctx)
	if err := q.serve(ctx); err != nil {
		return q.refuse(ctx, err)
	}
	return nil
}

// allowed returns the methods of the endpoint, or of an upload.
func (q *request) allowed() []string {
	if q.id == "" {
		return []string{http.MethodOptions, http.MethodPost}
	}
	return []string{http.MethodOptions, http.MethodHead, http.MethodGet, http.MethodPatch, http.MethodDelete}
}

// serve responds to a request of the caller, unless it returns an error for [request.refuse].
func (q *request) serve(ctx context.Context) error {
	if q.id == "" {
		return q.create(ctx)
	}
	u, err := q.find(ctx)
	if err != nil {
		return err
	}
	switch q.method {
	case http.MethodHead:
		return q.head(ctx, u)
	case http.MethodGet:
		return q.get(ctx, u)
	case http.MethodPatch:
		return q.patch(ctx, u)
	default:
		return q.terminate(ctx, u)
	}
}

// abilities responds with the abilities of the service. It needs no credentials.
func (q *request) abilities() error {
	header := q.w.Header()
	header.Set(headerVersion, version)
	header.Set("Tus-Extension", extensions)
	header.Set("Tus-Checksum-Algorithm", checksums)
	header.Set("Tus-Max-Size", strconv.FormatInt(q.maxSize(), 10))
	httpx.NoContent(q.w, q.r)
	return nil
}

// find returns the upload of the request.
func (q *request) find(ctx context.Context) (*resumable.Upload, error) {
	u, err := q.running.Uploads().Find(ctx, q.Actor.Owner(), q.id)
	switch {
	case err != nil:
		return nil, err
	case u.Kind != q.Kind.Name():
		return nil, resumable.ErrUnknown
	case !q.Scope().Covers(u.Scope):
		return nil, resumable.ErrScope
	case q.method != http.MethodDelete:
		return u, refused(u)
	}
	return u, nil
}

// refused returns an error if the item of the upload was refused earlier.
func refused(u *resumable.Upload) error {
	if u.Outcome != nil && u.Outcome.Refused != "" {
		return &requestError{http.StatusGone, u.Outcome.Refused}
	}
	return nil
}

// head responds with the offset of the upload, and finishes a complete one.
func (q *request) head(ctx context.Context, u *resumable.Upload) error {
	if err := q.finish(ctx, u, resumable.RecordRefusals); err != nil {
		return err
	}
	q.describe(u)
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// get responds with the item of a finished upload, or with the state of another one. It has the
// headers of HEAD, since proxies that cache turn HEAD into GET.
func (q *request) get(ctx context.Context, u *resumable.Upload) error {
	if err := q.finish(ctx, u, resumable.RecordRefusals); err != nil {
		return err
	}
	q.describe(u)
	if item, ok := q.running.ItemOf(u, q.BaseURL); ok {
		item.Facts = q.running.FactsOf(ctx, u, q.BaseURL)
		return httpx.AnswerItems(q.w, http.StatusOK, []upload.Item{item})
	}
	if u.Held != nil && u.Form != resumable.Partial {
		return httpx.AnswerHeld(q.w, http.StatusOK, u)
	}
	a := stateAnswer{Success: true, Offset: u.Offset(), ExpiresAt: u.Expires().Unix()}
	if u.Length != resumable.Unknown {
		a.Length = &u.Length
	}
	return httpx.Answer(q.w, http.StatusOK, a)
}

// stateAnswer is the state of an unfinished upload.
type stateAnswer struct {
	Success bool   `json:"success"`
	Offset  int64  `json:"offset"`
	Length  *int64 `json:"length"`
	// ExpiresAt is in Unix seconds.
	ExpiresAt int64 `json:"expires_at"`
}

// terminate removes the upload, never its item. Another request may be storing it.
func (q *request) terminate(ctx context.Context, u *resumable.Upload) error {
	if u.Outcome == nil {
		unlock, err := u.LockFinish(ctx)
		if err != nil {
			return err
		}
		defer unlock()
	}
	if err := q.running.TerminateUpload(ctx, u, q.Actor); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// finish stores the item of a complete upload that is not finished. It does nothing for others. The
// error is [refused] if the item was refused, by another request too.
func (q *request) finish(ctx context.Context, u *resumable.Upload, refusals resumable.Refusals) error {
	failures := u.Finish(ctx, resumable.Finishing{
		BaseURL: q.BaseURL, Ticket: q.Ticket, Refusals: refusals,
		Authorize: func(ctx context.Context, u *resumable.Upload, _ bool) (resumable.Rights, *item.Failure) {
			return q.Rights(ctx, q.Kind, nil, u)
		},
	})
	switch {
	case failures == nil:
		return refused(u)
	case q.id != "" && errors.Is(failures[0], resumable.ErrUnknown):
		return resumable.ErrUnknown // it has expired, or was terminated
	}
	return failures
}
