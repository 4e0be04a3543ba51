package faults_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestTerminate terminates a Caddy during an upload and a download over every version of HTTP. It
// refuses new connections, and exits when the transfers are done.
func TestTerminate(t *testing.T) {
	t.Parallel()
	c := site.NewTLSChild(t)
	c.Start(site.InMemory)
	plain := c.HTTP1()
	token := plain.MustLogin(t)
	large := sample.Described(1, 20_000_000)
	plain.MustPut(t, token, "content", "large.bin", large)
	plain.MustPut(t, token, "over", "replaced.bin", sample.Described(2, 1000)) // needs the scratch folder
	uploads, downloads := beginBoth(t, c, token, "large.bin", large)
	c.Terminate()
	site.Eventually(t, "new connections are refused", func() bool {
		conn, err := net.Dial("tcp", c.Plain)
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
	c.WaitForExit()
	site.MustHaveOnly(t, c.Root, "keep/large.bin", "replace/replaced.bin",
		"keep/slow-1.bin", "keep/slow-2.bin", "keep/slow-3.bin",
		"keep/second-slow-1.bin", "keep/second-slow-2.bin", "keep/second-slow-3.bin")
	if left := site.Hidden(t, c.Root); left != nil {
		t.Errorf("leftovers: %q", left)
	}
	for _, u := range uploads {
		if b, err := os.ReadFile(filepath.Join(c.Root, "keep", u.name)); err != nil || !bytes.Equal(b, u.content) {
			t.Errorf("%s has %d bytes, want %d; error %v", u.name, len(b), len(u.content), err)
		}
	}
	if strings.Contains(c.Output(), `"level":"error"`) {
		t.Error("there are errors in the log")
	}
}

// TestGracePeriodEnds terminates a Caddy whose grace period is shorter than an upload. The upload
// is cut and leaves nothing behind, and the item that it would replace is unchanged.
func TestGracePeriodEnds(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Global = "grace_period 300ms"
	c.Start(site.OnBolt)
	client := c.HTTP1()
	token := client.MustLogin(t)
	old := sample.Described(1, 1000)
	client.MustPut(t, token, "over", "old.bin", old)
	before := c.Staged()
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		answer, err := client.Upload(t.Context(), token, "over", site.StreamPart{Name: "old.bin", Body: r})
		if err == nil && answer.Status == http.StatusOK {
			t.Error("a cut upload is answered as stored")
		}
	}()
	if _, err := w.Write(sample.Described(2, 300_000)); err != nil {
		t.Error(err)
	}
	site.Eventually(t, "the upload is being stored", func() bool { return c.Staged() > before })
	c.Terminate()
	c.WaitForExit()
	w.Close()
	<-done
	site.MustHaveOnly(t, filepath.Join(c.Root, "replace"), "old.bin")
	c.Start(site.OnBolt)
	site.Eventually(t, "nothing hidden is left", func() bool { return len(site.Hidden(t, c.Root)) == 0 })
	client.MustFetch(t, "over", "old.bin", old)
}
