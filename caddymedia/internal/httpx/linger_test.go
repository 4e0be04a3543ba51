package httpx

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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

// TestLinger: what is left of a refused body is read where the end of the request would cost the client
// the response.
func TestLinger(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_900_000_000, 0)
	for name, c := range map[string]struct {
		version        int
		method, expect string
		answered       bool // without reading the body
		left           int  // bytes of the body
	}{
		"HTTP/1":           {version: 1, method: http.MethodPost, answered: true},
		"HTTP/1, waiting":  {version: 1, method: http.MethodPost, expect: "100-continue", answered: true, left: 4},
		"HTTP/1, read":     {version: 1, method: http.MethodPost, left: 4},
		"HTTP/2":           {version: 2, method: http.MethodPost, answered: true, left: 4},
		"HTTP/3":           {version: 3, method: http.MethodPatch, answered: true},
		"HTTP/3, waiting":  {version: 3, method: http.MethodPut, expect: "100-continue", answered: true, left: 4},
		"HTTP/3, download": {version: 3, method: http.MethodGet, left: 4},
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
			if body.Len() != c.left {
				t.Errorf("%d bytes are left, want %d", body.Len(), c.left)
			}
			if read := c.left == 0; read != w.last.Equal(now.Add(3*time.Second)) || read && !w.Flushed {
				t.Errorf("deadline %s, flushed %t", w.last, w.Flushed)
			}
		})
	}
}
