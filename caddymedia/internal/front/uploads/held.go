package uploads

import (
	"context"
	"net/http"
	"strconv"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/front/serve"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// HeldSuffix is the end of the paths of held uploads, before the ID of one.
const HeldSuffix = "/held"

// Held returns the endpoint of the held upload of an ID.
func Held(g *caller.Gate, kind item.Kind, id string) caller.Endpoint {
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		u := requestFrom(g, w, r, kind, access.Upload)
		h := &heldRequest{Permit: g.Permit(running, r, u.origin, u.ofKind), gate: g, kind: kind, w: w, r: r}
		refused := h.serve(storagedrivers.WithOwner(r.Context(), h.Actor.Owner()), id)
		if refused == nil {
			return nil
		}
		running.Observer().Failed(r.Context(), kind.Name(), strconv.Itoa(refused.Status))
		return httpx.Refuse(w, r, g.Log, refused.Status, item.Failures{refused.Failure})
	}
}

// heldRequest is a request for a held upload.
type heldRequest struct {
	*caller.Permit
	gate *caller.Gate
	kind item.Kind
	w    http.ResponseWriter
	r    *http.Request
}

// serve responds to the request, unless it is refused.
func (h *heldRequest) serve(ctx context.Context, id string) *caller.Refusal {
	store := h.Service.Uploads()
	switch {
	case h.Refused != nil:
		return caller.Refused(h.Refused)
	case store == nil:
		return caller.Refused(resumable.ErrNotHeld)
	}
	u, err := store.FindHeld(ctx, h.Actor.Owner(), id, h.TicketID())
	switch {
	case err == nil && u.Kind != h.kind.Name():
		return caller.Refused(resumable.ErrNotHeld)
	case err == nil && h.r.Method == http.MethodDelete:
		if err = h.Service.TerminateUpload(ctx, u, h.Actor); err == nil {
			httpx.NoContent(h.w, h.r)
			return nil
		}
	}
	if err != nil {
		return caller.Refused(item.OperationFailure("find or end the held upload", err))
	}
	switch values := h.r.URL.Query()["content"]; {
	case len(values) == 0 || len(values) == 1 && values[0] == "0":
		_ = httpx.AnswerHeld(h.w, http.StatusOK, u) // of plain values
		return nil
	case len(values) == 1 && values[0] == "1":
		return h.content(ctx, u)
	}
	return caller.Refuse(http.StatusBadRequest, item.BadRequest, "the parameter content is 1 or 0")
}

// content responds with the bytes of an upload.
func (h *heldRequest) content(ctx context.Context, u *resumable.Upload) *caller.Refusal {
	ended, refused := h.BeginUpload(h.w)
	if refused != nil {
		return refused
	}
	defer ended()
	header := h.w.Header()
	header.Set("Content-Type", u.Held.ContentType)
	header.Set("Content-Length", strconv.FormatInt(u.Length, 10))
	header.Set("Content-Disposition", serve.Attachment(u.Filename))
	if h.r.Method == http.MethodHead {
		return nil
	}
	sent := &sending{ResponseWriter: h.w}
	err := u.CopyTo(ctx, sent)
	switch {
	case err == nil:
		return nil
	case sent.hasBegun:
		h.gate.Log.Warn("sending a held upload", "storage", u.Storage().Name(), "error", err)
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
	header.Del("Content-Disposition")
	return caller.Refused(item.OperationFailure("read the held upload", err))
}

// sending is a response that may still be another one until its first byte is sent.
type sending struct {
	http.ResponseWriter
	hasBegun bool
}

// Write implements [http.ResponseWriter].
func (s *sending) Write(p []byte) (int, error) {
	s.hasBegun = true
	return s.ResponseWriter.Write(p)
}
