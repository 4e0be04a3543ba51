package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cutter sends one part of an upload and then breaks the connection. It calls staged to wait until
// the Caddy stores data.
type cutter func(t *testing.T, c *child, token, alias string, form []byte, part int, staged func())

var cutters = map[string]cutter{
	"closed over HTTP/1.1": func(t *testing.T, c *child, token, alias string, form []byte, part int, staged func()) {
		conn := sendPart(t, c, token, form, part)
		staged()
		conn.Close()
	},
	"reset over HTTP/1.1": func(t *testing.T, c *child, token, alias string, form []byte, part int, staged func()) {
		conn := sendPart(t, c, token, form, part)
		staged()
		if err := conn.SetLinger(0); err != nil {
			t.Error(err)
		}
		conn.Close()
	},
	"half-closed over HTTP/1.1": func(t *testing.T, c *child, token, alias string, form []byte, part int, staged func()) {
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
	"cancelled over HTTP/2": func(t *testing.T, c *child, token, alias string, form []byte, part int, staged func()) {
		cancelled(t, c.http2(), token, form, part, staged)
	},
	"cancelled over HTTP/3": func(t *testing.T, c *child, token, alias string, form []byte, part int, staged func()) {
		cancelled(t, c.http3(), token, form, part, staged)
	},
}

// sendPart sends the head of an upload and the first bytes of its body.
func sendPart(t *testing.T, c *child, token string, form []byte, part int) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", c.plain)
	if err != nil {
		t.Fatal(err)
	}
	head := uploadHead(c.plain, token, len(form))
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
		host, apiKey, token, childBoundary, length)
}

// cancelled cancels the request while the Caddy stores its data. The refusal may still arrive, for
// example over HTTP/3.
func cancelled(t *testing.T, client *childClient, token string, form []byte, part int, staged func()) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body, w := io.Pipe()
	done := make(chan error)
	go func() {
		r, err := client.send(ctx, token, body)
		switch {
		case err == nil && (r.status == http.StatusOK || ctx.Err() == nil):
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
func TestConnectionCut(t *testing.T) {
	c := newTLSChild(t)
	c.start(inMemory)
	client := c.http1()
	token := client.mustLogin(t)
	old := described(1, 1_000_000)
	client.mustPut(t, token, "over", "old.bin", old)
	for name, cut := range cutters {
		for _, alias := range []string{"content", "over"} {
			form, err := io.ReadAll(childForm(alias, childPart{"first.bin", bytes.NewReader(described(2, 500_000))},
				childPart{"old.bin", bytes.NewReader(described(3, 2_000_000))}))
			if err != nil {
				t.Fatal(err)
			}
			for where, part := range map[string]int{
				"in the first file": 300_000, "in the second": len(form) / 2, "before the last boundary": len(form) - 5,
			} {
				t.Run(fmt.Sprintf("%s %s of %s", name, where, alias), func(t *testing.T) {
					stagedBefore, refusedBefore := c.staged(), c.refused()
					cut(t, c, token, alias, form, part, func() {
						eventually(t, "the upload is being stored", func() bool { return c.staged() > stagedBefore })
					})
					eventually(t, "the upload is given up", func() bool { return c.refused() > refusedBefore })
					client.mustFetch(t, "over", "old.bin", old)
					if status, _ := client.fetch(t, alias, "first.bin"); status != http.StatusNotFound {
						t.Errorf("the first file of a cut upload answers %d", status)
					}
					mustHaveOnly(t, c.root, "replace/old.bin")
				})
			}
		}
	}
	if open, ok := c.openFiles(c.root); ok && slices.ContainsFunc(open, isNoFolder(c)) {
		t.Errorf("files stay open: %q", open)
	}
	c.stop()
	mustHaveOnly(t, c.root, "replace/old.bin")
	if left, err := filepath.Glob(filepath.Join(c.root, "*", ".*")); err != nil || left != nil {
		t.Errorf("leftovers: %q %v", left, err)
	}
}

// isNoFolder returns a function that reports whether an open file belongs to an upload. The two
// roots and their scratch folders stay open.
func isNoFolder(c *child) func(string) bool {
	return func(open string) bool {
		name, err := filepath.Rel(c.root, open)
		if err != nil {
			return true
		}
		_, below, _ := strings.Cut(name, "/")
		scratch := strings.HasPrefix(below, ".media-tmp-") && !strings.Contains(below, "/")
		return below != "" && !scratch
	}
}
