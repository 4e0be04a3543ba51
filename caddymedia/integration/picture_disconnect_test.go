package integration

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// leaver sends a whole form, waits until it is processed, and then disconnects without reading the
// answer.
type leaver func(t *testing.T, c *child, token, form string)

var leavers = map[string]leaver{
	"closed over HTTP/1.1": func(t *testing.T, c *child, token, form string) {
		leaveRaw(t, c, token, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(form), form), false)
	},
	"reset over HTTP/1.1": func(t *testing.T, c *child, token, form string) {
		leaveRaw(t, c, token, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(form), form), true)
	},
	"closed over HTTP/1.1, chunked": func(t *testing.T, c *child, token, form string) {
		leaveRaw(t, c, token, "Transfer-Encoding: chunked\r\n\r\n"+inChunks(form), false)
	},
	"cancelled over HTTP/2": func(t *testing.T, c *child, token, form string) {
		leave(t, c, c.http2(), token, form)
	},
	"cancelled over HTTP/3": func(t *testing.T, c *child, token, form string) {
		leave(t, c, c.http3(), token, form)
	},
}

func inChunks(body string) string {
	var b strings.Builder
	for len(body) > 0 {
		n := min(len(body), 50_000)
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

// leaveRaw sends the rest of a request after its first lines.
func leaveRaw(t *testing.T, c *child, token, rest string, reset bool) {
	t.Helper()
	conn, err := net.Dial("tcp", c.plain)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	before := c.pictures()
	head := fmt.Sprintf("POST /api/upload/image HTTP/1.1\r\nHost: %s\r\nHTTP_SERVICE_API_KEY: %s\r\nHTTP_SERVICE_ACCESS_TOKEN: %s\r\n"+
		"Content-Type: multipart/form-data; boundary=%s\r\n", c.plain, apiKey, token, childBoundary)
	if _, err := conn.Write([]byte(head + rest)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the picture is taken in", func() bool { return c.pictures() > before })
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Fatal("it was answered before the client disconnected")
	}
	if reset {
		if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
	}
}

func leave(t *testing.T, c *child, client *childClient, token, form string) {
	t.Helper()
	_, content, _ := strings.Cut(form, "application/octet-stream\r\n\r\n")
	p := c.beginPicture(t, client, token, "big.jpg", strings.TrimSuffix(content, "\r\n--"+childBoundary+"--\r\n"))
	if !p.going() {
		t.Fatalf("it was answered before the client disconnected: %v %v", p.answer, p.err)
	}
	p.cancel()
	<-p.done
}

// TestLeaving: the client of a big picture disconnects while the only encoder works on it. The
// encoder stops, the next picture does not wait, and nothing of the big one is stored.
func TestLeaving(t *testing.T) {
	c := newTLSChild(t)
	c.start(withPictures("image_workers 1\n" + patient + bigPicture))
	client := c.http1()
	token := client.mustLogin(t)
	big := pictureForm("big.jpg", slowPicture())
	small := pictureForm("small.jpg", drawnJPEG(64, 64))
	whole, err := client.sendPicture(t.Context(), token, strings.NewReader(big))
	if err != nil || whole.status != http.StatusOK || whole.Result[0].WebP == "" {
		t.Fatal(whole, err)
	}
	t.Logf("the big picture takes %v", whole.took)
	names := []string{"big.jpg"}
	for name, left := range leavers {
		t.Run(name, func(t *testing.T) {
			left(t, c, token, big)
			r, err := client.sendPicture(t.Context(), token, strings.NewReader(small))
			if err != nil || r.status != http.StatusOK || r.Result[0].WebP == "" {
				t.Fatal(r, err)
			}
			t.Logf("the next picture takes %v", r.took)
			if stopsEncoding(t) && r.took > whole.took*3/4 {
				t.Errorf("the next picture takes %v, the whole big one %v", r.took, whole.took)
			}
			names = append(names, r.Result[0].Filename)
			c.mustHavePictures(t, names...)
		})
	}
	if log := c.output(); strings.Contains(log, `"level":"error"`) {
		t.Error("clients that leave are errors in the log")
	}
	c.stop()
	if left := hidden(t, c.root); left != nil {
		t.Errorf("leftovers: %q", left)
	}
}

// failedPictures returns how many uploads of pictures have failed since the last reload.
func (c *child) failedPictures() float64 {
	c.t.Helper()
	return c.metric("caddy_media_failed_requests_total", `endpoint="image"`)
}

// TestLeavingTheQueue: a client that disconnects while it waits makes room for another.
func TestLeavingTheQueue(t *testing.T) {
	c := newTLSChild(t)
	c.start(withPictures("image_workers 1\nimage_queue 1\n" + patient + bigPicture))
	client := c.http1()
	token := client.mustLogin(t)
	large := drawnJPEG(1100, 1000)
	for _, leaving := range []*childClient{c.http1(), c.http2(), c.http3()} {
		t.Run(leaving.version, func(t *testing.T) {
			first := c.beginPicture(t, client, token, "big.jpg", slowPicture())
			second := c.beginPicture(t, leaving, token, "left.jpg", large)
			r, err := client.sendPicture(t.Context(), token, strings.NewReader(pictureForm("third.jpg", large)))
			if err != nil || !r.busy() {
				t.Errorf("while one waits another is answered with %v %v, want 503", r, err)
			}
			failed := c.failedPictures()
			second.cancel()
			<-second.done
			eventually(t, "the Caddy knows that the second has left", func() bool { return c.failedPictures() > failed })
			if second.err == nil {
				t.Errorf("the second did not wait: %v", second.answer)
			}
			third := c.beginPicture(t, client, token, "third.jpg", large)
			if !first.going() {
				t.Fatal("the first picture was done too soon to show anything")
			}
			if !third.going() {
				t.Errorf("after the second disconnected the third does not wait: %v %v", third.answer, third.err)
			}
			first.mustSucceed(t)
			third.mustSucceed(t)
		})
	}
	for _, name := range filesBelow(t, c.root) {
		if strings.Contains(name, "left") {
			t.Errorf("%s is stored", name)
		}
	}
}
