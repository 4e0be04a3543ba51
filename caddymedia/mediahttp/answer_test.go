package mediahttp

import (
	"net/http/httptest"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		-time.Second: "1", 0: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60",
	} {
		w := httptest.NewRecorder()
		if retryAfter(w, wait); w.Header().Get("Retry-After") != want {
			t.Errorf("%s returns %q, want %q", wait, w.Header().Get("Retry-After"), want)
		}
	}
}
