package sftp

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
)

// TestIdleConnectionStays: an idle connection stays open, because its host replies to the checks.
func TestIdleConnectionStays(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	root := t.TempDir()
	server := startServer(t, root)
	d, _, _ := behindProxy(t, server.host(root, 1), timeout)
	time.Sleep(4 * timeout)
	test.Is(t, d.Check(t.Context()), nil)
	test.Equal(t, server.accepted.Load(), 1, "connections were opened")
}

func TestConnections(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ wanted, allowed, most int }{{1, 0, 1}, {3, 0, 3}, {3, 1, 1}} {
		root := t.TempDir()
		server := startServer(t, root, func(s *server) { s.max = tt.allowed })
		h := server.host(root, tt.wanted)
		d := h.driver(t, "objects")
		test.Is(t, d.Check(t.Context()), nil)
		errs := make(chan error)
		for i := range 20 {
			go func() {
				_, err := d.Put(t.Context(), "f/"+string(rune('a'+i)), strings.NewReader("text"), create)
				errs <- err
			}()
		}
		for range 20 {
			test.Is(t, <-errs, nil)
		}
		if got := server.connected(); got > tt.most {
			t.Errorf("%d connections of %d: %d are open", tt.wanted, tt.allowed, got)
		}
		test.Equal(t, len(test.Files(t, filepath.Join(root, "objects"))), 20, "objects")
	}
}
