package httpx

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		-time.Second: "1", 0: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60",
	} {
		w := httptest.NewRecorder()
		if RetryAfter(w, wait); w.Header().Get("Retry-After") != want {
			t.Errorf("%s returns %q, want %q", wait, w.Header().Get("Retry-After"), want)
		}
	}
}

// TestStatusOf: of several failures the highest status counts, in any order.
func TestStatusOf(t *testing.T) {
	t.Parallel()
	ascending := []struct {
		reason aliases.Reason
		status int
	}{
		{aliases.BadRequest, 400},
		{aliases.Unauthorized, 401},
		{aliases.Forbidden, 403},
		{aliases.Missing, 404},
		{aliases.Conflict, 409},
		{aliases.Changed, 412},
		{aliases.TooLarge, 413},
		{aliases.BadContent, 415},
		{aliases.OtherRequest, 422},
		{aliases.Internal, 500},
		{aliases.StorageFailed, 502},
		{aliases.RemoteFailed, 502},
		{aliases.Unavailable, 503},
		{aliases.Busy, 503},
		{aliases.RemoteSlow, 504},
		{aliases.NoSpace, 507},
	}
	if len(ascending) != len(statuses) {
		t.Errorf("%d reasons have a status, want %d", len(statuses), len(ascending))
	}
	for i, high := range ascending {
		for _, low := range ascending[:i+1] {
			one, other := &aliases.Failure{Reason: high.reason}, &aliases.Failure{Reason: low.reason}
			for _, failures := range []aliases.Failures{{one}, {one, other}, {other, one}, {other, one, other}} {
				if got := StatusOf(failures); got != high.status {
					t.Errorf("%d and %d give %d", high.status, low.status, got)
				}
			}
		}
	}
}
