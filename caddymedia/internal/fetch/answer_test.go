package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestIncompleteOrEncodedAnswersAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxHeader)
	for answer, want := range map[string]string{
		"204 No Content\r\n\r\n": "the server answered 204",
		"206 Partial Content\r\nContent-Range: bytes 0-1/5\r\n\r\nhe": "the server answered 206",
		"300 Multiple Choices\r\nLocation: /x\r\n\r\n":                "the server answered 300",
		"301 Moved Permanently\r\n\r\n":                               "the server answered 301",
		"304 Not Modified\r\nLocation: /x\r\n\r\n":                    "the server answered 304",
		"307 Temporary Redirect\r\nLocation:\r\n\r\n":                 "the server answered 307",
		"404 Not Found\r\nContent-Length: 5\r\n\r\nhello":             "the server answered 404",
		"500 Oh\r\n\r\n":   "the server answered 500",
		"999 What\r\n\r\n": "the server answered 999",
		"200 OK\r\nContent-Encoding: gzip\r\n\r\nhello":                         "the server sent the item compressed, which was not asked for",
		"200 OK\r\nContent-Encoding: identity\r\nContent-Encoding: br\r\n\r\nx": "the server sent the item compressed, which was not asked for",
		"200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n":           "the server gave no proper answer",
		"200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhe":            "the server gave no proper answer",
		"200 OK\r\nContent-Length: -1\r\n\r\nhello":                             "the server gave no proper answer",
		"200 OK\r\nX: " + long + "\r\n\r\nhello":                                "the server gave no proper answer",
		"200 OK\r\nContent-":                                                    "the server gave no proper answer",
	} {
		address, o := serveRaw(t, "HTTP/1.1 "+answer, false)
		_, err := get(newClient(t, o, nil), address)
		if err == nil {
			t.Errorf("%.60q was accepted", answer)
			continue
		}
		wantMessage(t, err, want)
	}
	address, o := serveRaw(t, "SSH-2.0-OpenSSH_9.9\r\n", false)
	_, err := get(newClient(t, o, nil), address)
	wantMessage(t, err, "the server gave no proper answer")
}

func TestTruncatedBodyIsAnError(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"shorter than announced": "Content-Length: 6\r\n\r\nhello",
		"nothing of it":          "Content-Length: 6\r\n\r\n",
		"chunk cut off":          "Transfer-Encoding: chunked\r\n\r\n6\r\nhello",
		"last chunk missing":     "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"last line missing":      "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
		"chunk longer":           "Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
		"length is no number":    "Transfer-Encoding: chunked\r\n\r\nx\r\nhello\r\n0\r\n\r\n",
	} {
		address, o := serveRaw(t, "HTTP/1.1 200 OK\r\n"+answer, false)
		_, err := get(newClient(t, o, nil), address)
		if err == nil {
			t.Errorf("%s: the body ended without an error", name)
			continue
		}
		wantMessage(t, err, "the server broke off the download")
	}
}

// TestUnannouncedBodyEndsWithTheConnection: old servers announce no length.
func TestUnannouncedBodyEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.0", "1.1"} {
		address, o := serveRaw(t, "HTTP/"+version+" 200 OK\r\n\r\nhello", false)
		if body, err := get(newClient(t, o, nil), address); err != nil || body != "hello" {
			t.Errorf("HTTP/%s: got %q, %v", version, body, err)
		}
	}
}

// TestBytesAfterTheAnnouncedLengthAreIgnored: in HTTP a body ends at its announced length.
func TestBytesAfterTheAnnouncedLengthAreIgnored(t *testing.T) {
	t.Parallel()
	address, o := serveRaw(t, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\nworld", true)
	if body, err := get(newClient(t, o, nil), address); err != nil || body != "hello" {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestTimeoutEndsADownload(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"before the header": "",
		"in the header":     "HTTP/1.1 200 OK\r\nContent-Le",
		"before the body":   "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n",
		"in the body":       "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
		"in a body without": "HTTP/1.1 200 OK\r\n\r\nhello",
	} {
		address, o := serveRaw(t, answer, true)
		o.Timeout = 100 * time.Millisecond
		_, err := get(newClient(t, o, nil), address)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want the time-out", name, err)
			continue
		}
		wantMessage(t, err, "the server took too long")
	}
}

func TestSlowHeaderEndsBeforeTheTimeout(t *testing.T) {
	t.Parallel()
	address, o := serveRaw(t, "HTTP/1.1 200 OK\r\n", true)
	o.Timeout = never
	c := newClient(t, o, nil)
	c.transport.ResponseHeaderTimeout /= 20_000 // of 20 seconds
	_, err := get(c, address)
	wantMessage(t, err, "the server took too long")
}

func TestCallerCancels(t *testing.T) {
	t.Parallel()
	address, o := serveRaw(t, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", true)
	o.Timeout = never
	c := newClient(t, o, nil)
	ctx, cancel := context.WithCancel(context.Background())
	d, err := c.Get(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Body.Close()
	if _, err := io.ReadFull(d.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err = io.ReadAll(d.Body)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancel", err)
	}
	wantMessage(t, err, "the download was cancelled")
	_, err = c.Get(ctx, address)
	wantMessage(t, err, "the download was cancelled")
}

// TestClosingTheBodyEndsTheConnection: the leak check in TestMain fails if the connection of an
// unread body stays open.
func TestClosingTheBodyEndsTheConnection(t *testing.T) {
	t.Parallel()
	address, o := serveRaw(t, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", true)
	o.Timeout = never
	d, err := newClient(t, o, nil).Get(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Body.Close(); err != nil {
		t.Error(err)
	}
}

func TestBodyOfARedirectIsNotAwaited(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	address, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/last" {
			<-gone
			return
		}
		w.Header().Set("Location", "/last")
		w.WriteHeader(http.StatusFound)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	if _, err := get(c, address); err != nil {
		t.Error(err)
	}
}
