package mediahttp

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
)

// timedBody is the body of an upload with a time limit. The server's own limits are for silent
// clients. A client that sends a byte now and then could otherwise hold the upload, and its
// configuration, without limit.
type timedBody struct {
	io.ReadCloser
	writer http.ResponseWriter
	limit  time.Duration
	over   atomic.Bool

	mu      sync.Mutex
	stopped bool // the request no longer reads the body
}

// newTimedBody returns body with a time limit. The caller must call stop after reading the body.
func newTimedBody(w http.ResponseWriter, body io.ReadCloser, limit time.Duration) (timed *timedBody, stop func()) {
	b := &timedBody{ReadCloser: body, writer: w, limit: limit}
	timer := time.AfterFunc(limit, b.end)
	return b, func() {
		timer.Stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.stopped = true
	}
}

// end makes Read fail. The deadline ends a blocked one. If it cannot be set, the server's limit for
// silence applies. After stop, the connection belongs to another request.
func (b *timedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	b.over.Store(true)
	_ = http.NewResponseController(b.writer).SetReadDeadline(time.Unix(1, 0))
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
	return &aliases.Failure{Reason: aliases.BadRequest, Message: "the upload took longer than " + b.limit.String()}
}
