package mediahttp

import (
	"io"
	"net/http"
	"time"
)

// Bounds of [Linger]. A client that sends a picture, or reads the response while it sends, receives
// the response.
const (
	lingerTime  = 3 * time.Second
	lingerBytes = 96 << 20
)

// Linger reads a bounded part of a refused body after the response. Closing the connection at once
// would reset it, and the client could lose a response that it has not read yet, RFC 9112 section
// 9.6. After other responses Linger does nothing. The caller should hold no resources meanwhile.
func Linger(w http.ResponseWriter, r *http.Request, now func() time.Time) {
	if !hasUnread(r) || w.Header().Get("Connection") != "close" {
		return
	}
	control := http.NewResponseController(w)
	waits := r.Header.Get("Expect") != "" && !bodyBegun(r)
	if control.Flush() == nil && !waits && control.SetReadDeadline(now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, r.Body, lingerBytes) // it ends as it may
	}
}

// watchedBody records whether the body has been read from.
type watchedBody struct {
	io.ReadCloser
	begun bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.begun = true
	return b.ReadCloser.Read(p)
}

func bodyBegun(r *http.Request) bool {
	body, ok := r.Body.(*watchedBody)
	return ok && body.begun
}

func hasUnread(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody
}
