package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// cutter sends one part of an upload and then breaks the connection. It calls staged to wait until
// the Caddy stores data.
type cutter func(t *testing.T, c *site.Child, token, alias string, form []byte, part int, staged func())

var cutters = map[string]cutter{
	"closed over HTTP/1.1": func(t *testing.T, c *site.Child, token, alias string, form []byte, part int, staged func()) {
		conn := sendPart(t, c, token, form, part)
		staged()
		conn.Close()
	},
	"reset over HTTP/1.1": func(t *testing.T, c *site.Child, token, alias string, form []byte, part int, staged func()) {
		conn := sendPart(t, c, token, form, part)
		staged()
		if err := conn.SetLinger(0); err != nil {
			t.Error(err)
		}
		conn.Close()
	},
	"half-closed over HTTP/1.1": func(t *testing.T, c *site.Child, token, alias string, form []byte, part int, staged func()) {
		conn := sendPart(t, c, token, form, part)
		staged()
		if err := conn.CloseWrite(); err != nil {
			t.Error(err)
		}
		if answer, err := io.ReadAll(conn); err == nil && bytes.Contains(answer, []byte("200 OK")) {
			t.Errorf("half a request is answered with %q", answer)
		}
		conn.Close()
	},
	"cancelled over HTTP/2": func(t *testing.T, c *site.Child, token, alias string, form []byte, part int, staged func()) {
		cancelled(t, c.HTTP2(), token, form, part, staged)
	},
	"cancelled over HTTP/3": func(t *testing.T, c *site.Child, token, alias string, form []byte, part int, staged func()) {
		cancelled(t, c.HTTP3(), token, form, part, staged)
	},
}

// sendPart sends the head of an upload and the first bytes of its body.
func sendPart(t *testing.T, c *site.Child, token string, form []byte, part int) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", c.Plain)
	if err != nil {
		t.Fatal(err)
	}
	head := uploadHead(c.Plain, token, len(form))
	if _, err := conn.Write(append([]byte(head), form[:part]...)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// uploadHead returns the head of an upload over HTTP/1.1 with the length of the body.
func uploadHead(host, token string, length int) string {
	return fmt.Sprintf("POST /api/upload/file?sub_folder=%%2F HTTP/1.1\r\nHost: %s\r\n"+
		"HTTP_SERVICE_API_KEY: %s\r\nHTTP_SERVICE_ACCESS_TOKEN: %s\r\n"+
		"Content-Type: multipart/form-data; boundary=%s\r\nContent-Length: %d\r\n\r\n",
		host, site.APIKey, token, site.StreamBoundary, length)
}

// cancelled cancels the request while the Caddy stores its data. The refusal may still arrive, for
// example over HTTP/3.
func cancelled(t *testing.T, client *site.Client, token string, form []byte, part int, staged func()) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body, w := io.Pipe()
	done := make(chan error)
	go func() {
		r, err := client.Send(ctx, token, body)
		switch {
		case err == nil && (r.Status == http.StatusOK || ctx.Err() == nil):
			err = fmt.Errorf("half a request is answered with %v", r)
		case ctx.Err() != nil:
			err = nil
		}
		done <- err
	}()
	if _, err := w.Write(form[:part]); err != nil {
		t.Error(err)
	}
	staged()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.Close()
}

// TestConnectionCut: uploads cut at several positions leave nothing behind, and an item that they
// would replace is unchanged.
func TestConnectionCut(t *testing.T) { //nolint:tparallel // its subtests count what one server does
	t.Parallel()
	c := site.NewTLSChild(t)
	c.Start(site.InMemory)
	client := c.HTTP1()
	token := client.MustLogin(t)
	old := sample.Described(1, 1_000_000)
	client.MustPut(t, token, "over", "old.bin", old)
	for name, cut := range cutters {
		for _, alias := range []string{"content", "over"} {
			form, err := io.ReadAll(site.StreamForm(alias, site.StreamPart{Name: "first.bin", Body: bytes.NewReader(sample.Described(2, 500_000))},
				site.StreamPart{Name: "old.bin", Body: bytes.NewReader(sample.Described(3, 2_000_000))}))
			if err != nil {
				t.Fatal(err)
			}
			for where, part := range map[string]int{
				"in the first file": 300_000, "in the second": len(form) / 2, "before the last boundary": len(form) - 5,
			} {
				t.Run(fmt.Sprintf("%s %s of %s", name, where, alias), func(t *testing.T) {
					stagedBefore, refusedBefore := c.Staged(), c.Refused()
					cut(t, c, token, alias, form, part, func() {
						site.Eventually(t, "the upload is being stored", func() bool { return c.Staged() > stagedBefore })
					})
					site.Eventually(t, "the upload is given up", func() bool { return c.Refused() > refusedBefore })
					client.MustFetch(t, "over", "old.bin", old)
					if status, _ := client.Fetch(t, alias, "first.bin"); status != http.StatusNotFound {
						t.Errorf("the first file of a cut upload answers %d", status)
					}
					site.MustHaveOnly(t, c.Root, "replace/old.bin")
				})
			}
		}
	}
	if open, ok := c.OpenFiles(c.Root); ok && slices.ContainsFunc(open, site.IsNoFolder(c)) {
		t.Errorf("files stay open: %q", open)
	}
	c.Stop()
	site.MustHaveOnly(t, c.Root, "replace/old.bin")
	if left, err := filepath.Glob(filepath.Join(c.Root, "*", ".*")); err != nil || left != nil {
		t.Errorf("leftovers: %q %v", left, err)
	}
}
