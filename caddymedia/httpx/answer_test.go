package httpx

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/ingest"
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
		reason ingest.Reason
		status int
	}{
		{ingest.BadRequest, 400},
		{ingest.Unauthorized, 401},
		{ingest.Forbidden, 403},
		{ingest.Conflict, 409},
		{ingest.TooLarge, 413},
		{ingest.BadContent, 415},
		{ingest.Internal, 500},
		{ingest.StorageFailed, 502},
		{ingest.Unavailable, 503},
		{ingest.Busy, 503},
		{ingest.NoSpace, 507},
	}
	if len(ascending) != len(statuses) {
		t.Errorf("%d reasons have a status, want %d", len(statuses), len(ascending))
	}
	for i, high := range ascending {
		for _, low := range ascending[:i+1] {
			one, other := &ingest.Failure{Reason: high.reason}, &ingest.Failure{Reason: low.reason}
			for _, failures := range []ingest.Failures{{one}, {one, other}, {other, one}, {other, one, other}} {
				if got := StatusOf(failures); got != high.status {
					t.Errorf("%d and %d give %d", high.status, low.status, got)
				}
			}
		}
	}
}
