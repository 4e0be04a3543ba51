package httpx

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
)

// Bounds of [Linger]. A client that sends an image, or reads the response while it sends, receives
// the response.
const (
	lingerTime  = 3 * time.Second
	lingerBytes = 96 << 20
)

// EncodedBody refuses a request whose body [IsEncoded].
const EncodedBody = "send the body as it is, without Content-Encoding"

// IsEncoded reports whether the body of a request with a header is compressed.
func IsEncoded(header http.Header) bool {
	return slices.ContainsFunc(header.Values("Content-Encoding"), func(encoding string) bool {
		encoding = strings.TrimSpace(encoding)
		return encoding != "" && !strings.EqualFold(encoding, "identity")
	})
}

// Linger reads a bounded part of a refused body after the response. Closing the connection at once
// would reset it, and the client could lose a response that it has not read yet, RFC 9112 section
// 9.6. After other responses Linger does nothing. The caller should hold no resources meanwhile.
func Linger(w http.ResponseWriter, r *http.Request, now func() time.Time) {
	if !hasUnread(r) || w.Header().Get("Connection") != "close" {
		return
	}
	body, watched := r.Body.(*watchedBody)
	waits := r.Header.Get("Expect") != "" && (!watched || !body.begun)
	control := http.NewResponseController(w)
	if control.Flush() == nil && !waits && control.SetReadDeadline(now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, r.Body, lingerBytes) // it ends as it may
	}
}

func hasUnread(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody
}

// Watch makes [Linger] know whether the body of a request has been read from.
func Watch(r *http.Request) { r.Body = &watchedBody{ReadCloser: r.Body} }

// watchedBody records whether the body has been read from.
type watchedBody struct {
	io.ReadCloser
	begun bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.begun = true
	return b.ReadCloser.Read(p)
}

// TimedBody is the body of an upload with a time limit. The server's own limits are for silent
// clients. A client that sends a byte now and then could otherwise hold the upload, and its
// configuration, without limit.
type TimedBody struct {
	io.ReadCloser
	writer http.ResponseWriter
	limit  time.Duration
	over   atomic.Bool

	mu      sync.Mutex
	stopped bool // the request no longer reads the body
}

// NewTimedBody returns body with a time limit. The caller must call stop after reading the body.
func NewTimedBody(w http.ResponseWriter, body io.ReadCloser, limit time.Duration) (timed *TimedBody, stop func()) {
	b := &TimedBody{ReadCloser: body, writer: w, limit: limit}
	timer := time.AfterFunc(limit, b.End)
	return b, func() {
		timer.Stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.stopped = true
	}
}

// End makes Read fail. The deadline ends a blocked one. If it cannot be set, the server's limit for
// silence applies. After stop, the connection belongs to another request.
func (b *TimedBody) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	b.over.Store(true)
	_ = http.NewResponseController(b.writer).SetReadDeadline(time.Unix(1, 0))
}

// IsOver reports whether the body was ended.
func (b *TimedBody) IsOver() bool { return b.over.Load() }

// Read reads from the body. It fails after the time limit, and after [TimedBody.End].
func (b *TimedBody) Read(p []byte) (int, error) {
	if b.over.Load() {
		return 0, b.failure()
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.over.Load() {
		return n, b.failure()
	}
	return n, err
}

func (b *TimedBody) failure() error {
	return &aliases.Failure{Reason: aliases.BadRequest, Message: "the upload took longer than " + b.limit.String()}
}
