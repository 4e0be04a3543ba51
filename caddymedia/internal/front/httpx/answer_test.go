package httpx

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
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
		reason item.Reason
		status int
	}{
		{item.BadRequest, 400},
		{item.Unauthorized, 401},
		{item.Forbidden, 403},
		{item.Missing, 404},
		{item.Conflict, 409},
		{item.Changed, 412},
		{item.TooLarge, 413},
		{item.BadContent, 415},
		{item.OtherRequest, 422},
		{item.Internal, 500},
		{item.StorageFailed, 502},
		{item.RemoteFailed, 502},
		{item.Unavailable, 503},
		{item.Busy, 503},
		{item.RemoteSlow, 504},
		{item.NoSpace, 507},
	}
	if len(ascending) != len(statuses) {
		t.Errorf("%d reasons have a status, want %d", len(statuses), len(ascending))
	}
	for i, high := range ascending {
		for _, low := range ascending[:i+1] {
			one, other := &item.Failure{Reason: high.reason}, &item.Failure{Reason: low.reason}
			for _, failures := range []item.Failures{{one}, {one, other}, {other, one}, {other, one, other}} {
				if got := StatusOf(failures); got != high.status {
					t.Errorf("%d and %d give %d", high.status, low.status, got)
				}
			}
		}
	}
}
