package mediahttp

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// timedBody is the body of an upload, all of which must come within a time. The server's own limits are
// for a client that is silent; one that sends a byte now and then would hold the upload, and the
// configuration under which it began, for as long as it likes.
type timedBody struct {
	io.ReadCloser
	limit time.Duration
	over  atomic.Bool
}

// newTimedBody returns body with a limit. The caller must call stop when the body has been read.
func newTimedBody(w http.ResponseWriter, body io.ReadCloser, limit time.Duration) (timed *timedBody, stop func()) {
	b := &timedBody{ReadCloser: body, limit: limit}
	timer := time.AfterFunc(limit, func() {
		b.over.Store(true)
		// This ends a Read that waits. Where it cannot be, the server's limit for silence does.
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	})
	return b, func() { timer.Stop() }
}

func (b *timedBody) Read(p []byte) (int, error) {
	if b.over.Load() {
		return 0, b.failure()
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.over.Load() {
		return n, b.failure()
	}
	return n, err
}

func (b *timedBody) failure() error {
	return &ingest.Failure{Reason: ingest.BadRequest, Message: "the upload took longer than " + b.limit.String()}
}
