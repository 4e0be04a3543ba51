package integration

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTerminate terminates a Caddy during an upload and a download over every version of HTTP. It
// refuses new connections, and exits when the transfers are done.
func TestTerminate(t *testing.T) {
	c := newTLSChild(t)
	c.start(inMemory)
	plain := c.http1()
	token := plain.mustLogin(t)
	large := described(1, 20_000_000)
	plain.mustPut(t, token, "content", "large.bin", large)
	plain.mustPut(t, token, "over", "replaced.bin", described(2, 1000)) // needs the scratch folder
	uploads, downloads := beginBoth(t, c, token, "large.bin", large)
	c.terminate()
	eventually(t, "new connections are refused", func() bool {
		conn, err := net.Dial("tcp", c.plain)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	for i := range uploads {
		uploads[i].resume(t)
		downloads[i].resume(t)
		uploads[i].finish(t)
		downloads[i].finish(t)
	}
	c.waitForExit()
	mustHaveOnly(t, c.root, "keep/large.bin", "replace/replaced.bin",
		"keep/slow-1.bin", "keep/slow-2.bin", "keep/slow-3.bin",
		"keep/second-slow-1.bin", "keep/second-slow-2.bin", "keep/second-slow-3.bin")
	if left := hidden(t, c.root); left != nil {
		t.Errorf("leftovers: %q", left)
	}
	for _, u := range uploads {
		if b, err := os.ReadFile(filepath.Join(c.root, "keep", u.name)); err != nil || !bytes.Equal(b, u.content) {
			t.Errorf("%s has %d bytes, want %d; error %v", u.name, len(b), len(u.content), err)
		}
	}
	if strings.Contains(c.output(), `"level":"error"`) {
		t.Error("there are errors in the log")
	}
}

// TestGracePeriodEnds terminates a Caddy whose grace period is shorter than an upload. The upload
// is cut and leaves nothing behind, and the item that it would replace is unchanged.
func TestGracePeriodEnds(t *testing.T) {
	c := newChild(t)
	c.global = "grace_period 300ms"
	c.start(onBolt)
	client := c.http1()
	token := client.mustLogin(t)
	old := described(1, 1000)
	client.mustPut(t, token, "over", "old.bin", old)
	before := c.staged()
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		answer, err := client.upload(t.Context(), token, "over", childPart{"old.bin", r})
		if err == nil && answer.status == http.StatusOK {
			t.Error("a cut upload is answered as stored")
		}
	}()
	if _, err := w.Write(described(2, 300_000)); err != nil {
		t.Error(err)
	}
	eventually(t, "the upload is being stored", func() bool { return c.staged() > before })
	c.terminate()
	c.waitForExit()
	w.Close()
	<-done
	mustHaveOnly(t, filepath.Join(c.root, "replace"), "old.bin")
	c.start(onBolt)
	eventually(t, "nothing hidden is left", func() bool { return len(hidden(t, c.root)) == 0 })
	client.mustFetch(t, "over", "old.bin", old)
}
