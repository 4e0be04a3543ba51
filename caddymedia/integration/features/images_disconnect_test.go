package features_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/internal/imaging/webp"
)

// leaver sends a whole form, waits until it is processed, and then disconnects without reading the
// answer.
type leaver func(t *testing.T, c *site.Child, token, form string)

var leavers = map[string]leaver{
	"closed over HTTP/1.1": func(t *testing.T, c *site.Child, token, form string) {
		leaveRaw(t, c, token, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(form), form), false)
	},
	"reset over HTTP/1.1": func(t *testing.T, c *site.Child, token, form string) {
		leaveRaw(t, c, token, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(form), form), true)
	},
	"closed over HTTP/1.1, chunked": func(t *testing.T, c *site.Child, token, form string) {
		leaveRaw(t, c, token, "Transfer-Encoding: chunked\r\n\r\n"+inChunks(form), false)
	},
	"cancelled over HTTP/2": func(t *testing.T, c *site.Child, token, form string) {
		leave(t, c, c.HTTP2(), token, form)
	},
	"cancelled over HTTP/3": func(t *testing.T, c *site.Child, token, form string) {
		leave(t, c, c.HTTP3(), token, form)
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
func leaveRaw(t *testing.T, c *site.Child, token, rest string, reset bool) {
	t.Helper()
	conn, err := net.Dial("tcp", c.Plain)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	before := c.Images()
	head := fmt.Sprintf("POST /api/upload/image HTTP/1.1\r\nHost: %s\r\nHTTP_SERVICE_API_KEY: %s\r\nHTTP_SERVICE_ACCESS_TOKEN: %s\r\n"+
		"Content-Type: multipart/form-data; boundary=%s\r\n", c.Plain, site.APIKey, token, site.StreamBoundary)
	if _, err := conn.Write([]byte(head + rest)); err != nil {
		t.Fatal(err)
	}
	site.Eventually(t, "the image is taken in", func() bool { return c.Images() > before })
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

func leave(t *testing.T, c *site.Child, client *site.Client, token, form string) {
	t.Helper()
	_, content, _ := strings.Cut(form, "application/octet-stream\r\n\r\n")
	p := c.BeginImage(t, client, token, "big.jpg", strings.TrimSuffix(content, "\r\n--"+site.StreamBoundary+"--\r\n"))
	if !p.Going() {
		t.Fatalf("it was answered before the client disconnected: %v %v", p.Answer, p.Err)
	}
	p.Cancel()
	<-p.Done
}

// TestLeaving: the client of a big image disconnects while the only encoder works on it. The
// encoder stops, the next image does not wait, and nothing of the big one is stored.
func TestLeaving(t *testing.T) {
	c := site.NewTLSChild(t)
	c.Start(site.ImageConfig("image_workers 1\n" + site.PatientLimits + site.BigImage))
	client := c.HTTP1()
	token := client.MustLogin(t)
	big := site.ImageForm("big.jpg", sample.SlowImage())
	next := site.ImageForm("next.jpg", sample.PhotoJPEG(1100, 1000)) // a small one would not wait
	whole, err := client.SendImage(t.Context(), token, strings.NewReader(big))
	if err != nil || whole.Status != http.StatusOK || whole.Result[0].WebP == "" {
		t.Fatal(whole, err)
	}
	t.Logf("the big image takes %v", whole.Took)
	encoder, err := webp.New()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"big.jpg"}
	for name, left := range leavers {
		t.Run(name, func(t *testing.T) {
			left(t, c, token, big)
			r, err := client.SendImage(t.Context(), token, strings.NewReader(next))
			if err != nil || r.Status != http.StatusOK || r.Result[0].WebP == "" {
				t.Fatal(r, err)
			}
			t.Logf("the next image takes %v", r.Took)
			if encoder.Stops() && r.Took > whole.Took*3/4 {
				t.Errorf("the next image takes %v, the whole big one %v", r.Took, whole.Took)
			}
			names = append(names, r.Result[0].Filename)
			c.MustHaveImages(t, names...)
		})
	}
	if log := c.Output(); strings.Contains(log, `"level":"error"`) {
		t.Error("clients that leave are errors in the log")
	}
	c.Stop()
	if left := site.Hidden(t, c.Root); left != nil {
		t.Errorf("leftovers: %q", left)
	}
}

// failedImages returns how many uploads of images have failed since the last reload.
func failedImages(c *site.Child) float64 {
	c.T.Helper()
	return c.Metric("caddy_media_failed_requests_total", `endpoint="image"`)
}

// TestLeavingTheQueue: a client that disconnects while it waits makes room for another.
func TestLeavingTheQueue(t *testing.T) {
	c := site.NewTLSChild(t)
	c.Start(site.ImageConfig("image_workers 1\nimage_queue 1\n" + site.PatientLimits + site.BigImage))
	client := c.HTTP1()
	token := client.MustLogin(t)
	large := sample.PhotoJPEG(1100, 1000)
	for _, leaving := range []*site.Client{c.HTTP1(), c.HTTP2(), c.HTTP3()} {
		t.Run(leaving.Version, func(t *testing.T) {
			first := c.BeginImage(t, client, token, "big.jpg", sample.SlowImage())
			second := c.BeginImage(t, leaving, token, "left.jpg", large)
			r, err := client.SendImage(t.Context(), token, strings.NewReader(site.ImageForm("third.jpg", large)))
			if err != nil || !r.Busy() {
				t.Errorf("while one waits another is answered with %v %v, want 503", r, err)
			}
			failed := failedImages(c)
			second.Cancel()
			<-second.Done
			site.Eventually(t, "the Caddy knows that the second has left", func() bool { return failedImages(c) > failed })
			if second.Err == nil {
				t.Errorf("the second did not wait: %v", second.Answer)
			}
			third := c.BeginImage(t, client, token, "third.jpg", large)
			if !first.Going() {
				t.Fatal("the first image was done too soon to show anything")
			}
			if !third.Going() {
				t.Errorf("after the second disconnected the third does not wait: %v %v", third.Answer, third.Err)
			}
			first.Cancel() // it takes long
			third.MustSucceed(t)
		})
	}
	for _, name := range site.FilesBelow(t, c.Root) {
		if strings.Contains(name, "left") {
			t.Errorf("%s is stored", name)
		}
	}
}
