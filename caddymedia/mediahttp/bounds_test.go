package mediahttp_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestMaxUploads: an account's second upload is refused while its first one is running, and allowed
// later. The refused body is not read.
func TestMaxUploads(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{MaxUploads: 1})
	token := s.Token(t)
	body := form(file("a.txt", "text"))
	s.Upload(t, token, meanwhile(body, func() {
		second := strings.NewReader(body)
		got := s.Upload(t, token, second)
		if got.Status != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" || second.Len() != len(body) {
			t.Errorf("the second: %+v, %d bytes unread", got, second.Len())
		}
	})).Want(t, 200, "")
	s.Upload(t, token, strings.NewReader(body)).Want(t, 200, "")
}

// drip is a body that never ends.
type drip struct{ n atomic.Int64 }

func (d *drip) Read(p []byte) (int, error) {
	d.n.Add(1)
	p[0] = 'x'
	return 1, nil
}

func TestMaxUploadTime(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{MaxUploadTime: options.Duration(30 * time.Millisecond)})
	body := form(file("a.txt", "text"))
	got := s.Upload(t, s.Token(t), io.MultiReader(strings.NewReader(body[:strings.Index(body, "text")]), new(drip)))
	if got.Status != http.StatusBadRequest || !strings.Contains(got.Body, "longer than 30ms") {
		t.Errorf("%+v", got)
	}
}

// TestMaxUploadTimeOfSilence: an upload that sends nothing more is ended.
func TestMaxUploadTimeOfSilence(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{MaxUploadTime: options.Duration(30 * time.Millisecond)})
	token := s.Token(t)
	server := httptest.NewServer(s.Handler)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /api/upload/file?alias=one HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nContent-Type: "+
		multipartType+"\r\nAuthorization: Bearer "+token+"\r\n\r\n--x\r\n")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 400")) {
		t.Errorf("%s %v", answer, err)
	}
}

// counted counts the bytes read of a body.
type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// TestOptionsWithBody: a request without credentials whose body is not read does not keep its
// connection.
func TestOptionsWithBody(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.CORS = []string{"*"} })
	for _, c := range []struct{ target, header string }{
		{resumablePath, ""},
		{filePath, "Origin: https://www.example.com\nAccess-Control-Request-Method: POST\n"},
	} {
		for body, want := range map[string]string{"x": "close", "": ""} {
			w := httptest.NewRecorder()
			s.Handler.ServeHTTP(w, s.Request(t, http.MethodOptions, c.target, c.header, body))
			if got := w.Header().Get("Connection"); w.Code != 204 || got != want {
				t.Errorf("%s with %q: status %d, Connection: %q", c.target, body, w.Code, got)
			}
		}
	}
}

// TestLingerEnds: only a bounded part of a refused body is read.
func TestLingerEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{})
	var read atomic.Int64
	answered := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = counted{r.Body, &read}
		s.Handler.ServeHTTP(w, r)
		close(answered)
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /api/upload/file HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\nContent-Type: "+multipartType+"\r\n\r\n")
	for chunk := make([]byte, 1<<20); err == nil; {
		_, err = conn.Write(chunk) // until the server closes
	}
	<-answered
	if n := read.Load(); n < 1<<20 || n > 98<<20 {
		t.Errorf("%d bytes were read", n)
	}
}
