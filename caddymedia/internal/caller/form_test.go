package caller

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/httpx"
)

// TestSmallFormDrips: a body is refused in time if its last bytes never arrive.
func TestSmallFormDrips(t *testing.T) {
	t.Parallel()
	almost := func() time.Time { return time.Now().Add(50*time.Millisecond - SmallForm.Time) }
	for mediaType, body := range map[string]string{
		"application/x-www-form-urlencoded": "user=x&password=",
		"multipart/form-data; boundary=x":   "--x\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\n",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, status, message := SmallForm.Read(w, r, almost, "user", "password")
			_ = httpx.AnswerUnread(w, r, status, message)
			httpx.Linger(w, r, almost)
		}))
		defer server.Close()
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: "+mediaType+"\r\nContent-Length: 65536\r\n\r\n"+body)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body) // until the connection is closed
		if answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "10 seconds") || err != nil {
			t.Errorf("%s: %d %s, %v", mediaType, answer.StatusCode, text, err)
		}
	}
}

// deadlines records the read deadlines of a request.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(deadline time.Time) error {
	d.set = append(d.set, deadline)
	return nil
}

// TestSmallFormDeadline: the handler has no deadline after the body is read.
func TestSmallFormDeadline(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_900_000_000, 0)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("a=b"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	form, _, message := SmallForm.Read(w, r, func() time.Time { return now }, "a")
	if message != "" || form.Get("a") != "b" {
		t.Errorf("%q %v", message, form)
	}
	if len(w.set) != 2 || !w.set[0].Equal(now.Add(10*time.Second)) || !w.set[1].IsZero() {
		t.Errorf("deadlines %v", w.set)
	}
}
