package faults_test

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

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestReloadUnderLoad: during repeated reloads no upload or download is interrupted, and every
// answer is good.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	c := site.NewTLSChild(t)
	c.Start(site.InMemory)
	plain := c.HTTP1()
	token := plain.MustLogin(t)
	content := sample.Described(5, 100_000)
	plain.MustPut(t, token, "over", "fixed.bin", content)
	form, err := io.ReadAll(site.StreamForm("content", site.StreamPart{Name: "new.bin", Body: bytes.NewReader(content)}))
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var clients sync.WaitGroup
	var good, closed atomic.Int64
	for _, client := range append(c.Clients(), c.Clients()...) {
		clients.Go(func() {
			for !stop.Load() {
				err := readWhole(client, "over", "fixed.bin")
				if err == nil {
					var r site.Answer
					r, err = client.Send(t.Context(), token, bytes.NewReader(form))
					if err == nil && r.Status != http.StatusOK {
						err = statusError(r.Status)
					}
				}
				switch _, unanswered := errors.AsType[site.UnansweredError](err); {
				case err == nil:
					good.Add(1)
				case unanswered:
					closed.Add(1) // servers close connections between two requests
				default:
					t.Errorf("over %s: %v", client.Version, err)
				}
			}
		})
	}
	for i := range 20 {
		before := good.Load()
		c.LoadOnly(strings.ReplaceAll(site.InMemory, "prefix /", fmt.Sprintf("cache_control max-age=%d\nprefix /", i)))
		site.Eventually(t, "uploads succeed after the reload", func() bool { return good.Load() > before+10 })
	}
	stop.Store(true)
	clients.Wait()
	t.Logf("%d uploads, %d connections closed while idle", good.Load(), closed.Load())
	stored := site.FilesBelow(t, c.Root)
	if want := int(good.Load()) + 1; len(stored) != want {
		t.Errorf("%d files are stored, want %d: a request was cut after it had begun", len(stored), want)
	}
	for _, name := range stored {
		if b, err := os.ReadFile(filepath.Join(c.Root, name)); err != nil || sample.Verify(b) != nil {
			t.Errorf("%s: %v %v", name, err, sample.Verify(b))
		}
	}
	if log := c.Output(); strings.Contains(log, `"logger":"http.handlers.media"`) {
		t.Error("the log has failed requests")
	}
}
