package mediahttp

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// timedBody is the body of an upload with a time limit. The server's own limits are for silent
// clients. A client that sends a byte now and then could otherwise hold the upload, and its
// configuration, without limit.
type timedBody struct {
	io.ReadCloser
	limit time.Duration
	over  atomic.Bool
}

// newTimedBody returns body with a time limit. The caller must call stop after reading the body.
func newTimedBody(w http.ResponseWriter, body io.ReadCloser, limit time.Duration) (timed *timedBody, stop func()) {
	b := &timedBody{ReadCloser: body, limit: limit}
	timer := time.AfterFunc(limit, func() {
		b.over.Store(true)
		// The deadline ends a blocked Read. If it cannot be set, the server's limit for silence
		// applies.
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
