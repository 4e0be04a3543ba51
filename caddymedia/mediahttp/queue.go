package mediahttp

import (
	"net/http"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/media"
)

const (
	// maxListed is about the largest list of items in bytes.
	maxListed = 1 << 20
	// maxHeld is how long a request may hold memory while its client sends a form and reads the
	// answer. The time of a set begins when it is deleted.
	maxHeld = 3 * time.Minute
)

var tooManyCalls = &refusal{http.StatusTooManyRequests, aliases.Busy, "the account has too many requests under way, try again later"}

// enterQueue waits until a request may hold n bytes for its form or its answer, as
// [media.Service.Enter]. leave must be called when the answer is written. Writes fail after
// [maxHeld]; those of a set only after [Handler.boundAnswer], as HTTP/2 aborts a request whose
// deadline passes.
func (h *Handler) enterQueue(
	service *media.Service, w http.ResponseWriter, r *http.Request, actor aliases.Actor, call media.Call, n int64,
) (leave func(), refused *refusal) {
	left, ok := service.Enter(r.Context(), actor, call, n)
	if !ok {
		httpx.RetryAfter(w, httpx.BusyRetry)
		return nil, tooManyCalls
	}
	if call != media.DeletedSet {
		h.boundAnswer(w)
	}
	return repetitionOf(r.Context()).untilSent(func() {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		left()
	}), nil
}

// boundAnswer makes writes of the answer fail after [maxHeld].
func (h *Handler) boundAnswer(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(h.options.Now().Add(maxHeld)) // without deadlines those of the server hold
}

// memory returns the largest body that the form of a request may have.
func (l formLimits) memory(r *http.Request) int64 {
	if r.ContentLength < 0 {
		return l.bytes
	}
	return min(r.ContentLength, l.bytes)
}
