package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestReloadUnderLoad: during repeated reloads no upload or download is interrupted, and every
// answer is good.
func TestReloadUnderLoad(t *testing.T) {
	c := newTLSChild(t)
	c.start(inMemory)
	plain := c.http1()
	token := plain.mustLogin(t)
	content := described(5, 100_000)
	plain.mustPut(t, token, "over", "fixed.bin", content)
	form, err := io.ReadAll(childForm("content", childPart{"new.bin", bytes.NewReader(content)}))
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var clients sync.WaitGroup
	var good, closed atomic.Int64
	for _, client := range append(c.clients(), c.clients()...) {
		clients.Go(func() {
			for !stop.Load() {
				err := readWhole(client, "over", "fixed.bin")
				if err == nil {
					var r childReply
					r, err = client.send(t.Context(), token, bytes.NewReader(form))
					if err == nil && r.status != http.StatusOK {
						err = statusError(r.status)
					}
				}
				switch _, unanswered := errors.AsType[unansweredError](err); {
				case err == nil:
					good.Add(1)
				case unanswered:
					closed.Add(1) // servers close connections between two requests
				default:
					t.Errorf("over %s: %v", client.version, err)
				}
			}
		})
	}
	for i := range 20 {
		before := good.Load()
		c.loadOnly(strings.ReplaceAll(inMemory, "prefix /", fmt.Sprintf("cache_control max-age=%d\nprefix /", i)))
		eventually(t, "uploads succeed after the reload", func() bool { return good.Load() > before+10 })
	}
	stop.Store(true)
	clients.Wait()
	t.Logf("%d uploads, %d connections closed while idle", good.Load(), closed.Load())
	stored := filesBelow(t, c.root)
	if want := int(good.Load()) + 1; len(stored) != want {
		t.Errorf("%d files are stored, want %d: a request was cut after it had begun", len(stored), want)
	}
	for _, name := range stored {
		if b, err := os.ReadFile(filepath.Join(c.root, name)); err != nil || whole(b) != nil {
			t.Errorf("%s: %v %v", name, err, whole(b))
		}
	}
	if log := c.output(); strings.Contains(log, `"logger":"http.handlers.media"`) {
		t.Error("the log has failed requests")
	}
}
