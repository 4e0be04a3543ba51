package httpx

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// deadlines is a response whose request has read deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	last time.Time
}

func (d *deadlines) SetReadDeadline(deadline time.Time) error {
	d.last = deadline
	return nil
}

// TestLinger: what is left of a refused body is read where the end of the request would cost the
// client the response.
func TestLinger(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_900_000_000, 0)
	for name, c := range map[string]struct {
		version        int
		method, expect string
		answered       bool          // without reading the body
		wait           time.Duration // for the rest of the body, which is read then
	}{
		"HTTP/1":           {version: 1, method: http.MethodPost, answered: true, wait: 3 * time.Second},
		"HTTP/1, waiting":  {version: 1, method: http.MethodPost, expect: "100-continue", answered: true},
		"HTTP/1, read":     {version: 1, method: http.MethodPost},
		"HTTP/2":           {version: 2, method: http.MethodPost, answered: true},
		"HTTP/3":           {version: 3, method: http.MethodPatch, answered: true, wait: 30 * time.Second},
		"HTTP/3, read":     {version: 3, method: http.MethodPost, wait: 30 * time.Second}, // its end may be unread
		"HTTP/3, waiting":  {version: 3, method: http.MethodPut, expect: "100-continue", answered: true},
		"HTTP/3, download": {version: 3, method: http.MethodGet},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.NewReader("body")
			r := httptest.NewRequest(c.method, "/", body)
			r.ProtoMajor = c.version
			if c.expect != "" {
				r.Header.Set("Expect", c.expect)
			}
			w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			if c.answered {
				AnswerBytes(w, r, http.StatusForbidden, []byte("{}"))
			}
			Linger(w, r, func() time.Time { return now })
			if isRead := body.Len() == 0; isRead != (c.wait > 0) {
				t.Errorf("%d bytes are left", body.Len())
			} else if isRead && (!w.last.Equal(now.Add(c.wait)) || !w.Flushed) {
				t.Errorf("deadline %s, flushed %t", w.last, w.Flushed)
			}
		})
	}
}

// TestLingerAborts: over HTTP/3, a body that does not end in time ends with an error for the
// client, which may wait for the response.
func TestLingerAborts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version int
		body    io.Reader
		aborts  bool
	}{
		"slow":           {3, io.MultiReader(strings.NewReader("body"), iotest.ErrReader(os.ErrDeadlineExceeded)), true},
		"large":          {3, io.LimitReader(zeros{}, lingerBytes+1), true},
		"ends":           {3, strings.NewReader("body"), false},
		"reset":          {3, io.MultiReader(strings.NewReader("body"), iotest.ErrReader(errors.New("reset"))), false},
		"slow on HTTP/1": {1, iotest.ErrReader(os.ErrDeadlineExceeded), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/", c.body)
			r.ProtoMajor = c.version
			w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			AnswerBytes(w, r, http.StatusForbidden, []byte("{}"))
			defer func() {
				if reason, _ := recover().(error); errors.Is(reason, http.ErrAbortHandler) != c.aborts {
					t.Errorf("panics with %v", reason)
				}
			}()
			Linger(w, r, time.Now)
		})
	}
}

// zeros is a body without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
