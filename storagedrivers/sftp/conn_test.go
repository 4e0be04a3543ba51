package sftp

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// TestConnectionsLostWhileIdle: connections that were lost while idle are replaced without an
// error.
func TestConnectionsLostWhileIdle(t *testing.T) {
	t.Parallel()
	_, s, proxy := behindProxy(t, newHost(t), network.DefaultTimeout)
	for range 3 {
		proxy.CloseAll()
		put(t, s, "object", []byte("text"), overwrite)
	}
}

// TestIdleConnectionStays: an idle connection stays open, because its host replies to the checks.
func TestIdleConnectionStays(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	root := t.TempDir()
	server := startServer(t, root)
	d, _, _ := behindProxy(t, server.host(root, 1), timeout)
	time.Sleep(4 * timeout)
	is(t, d.Check(t.Context()), nil)
	if got := server.accepted.Load(); got != 1 {
		t.Errorf("%d connections were opened, want 1", got)
	}
}

func TestConnections(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ wanted, allowed, most int }{{1, 0, 1}, {3, 0, 3}, {3, 1, 1}} {
		root := t.TempDir()
		server := startServer(t, root, func(s *server) { s.max = tt.allowed })
		h := server.host(root, tt.wanted)
		d := h.driver(t, "objects")
		is(t, d.Check(t.Context()), nil)
		errs := make(chan error)
		for i := range 20 {
			go func() {
				_, err := d.Put(t.Context(), "f/"+string(rune('a'+i)), strings.NewReader("text"), create)
				errs <- err
			}()
		}
		for range 20 {
			is(t, <-errs, nil)
		}
		if got := server.connected(); got > tt.most {
			t.Errorf("%d connections of %d: %d are open", tt.wanted, tt.allowed, got)
		}
		if got := len(filesBelow(t, filepath.Join(root, "objects"))); got != 20 {
			t.Errorf("%d objects, want 20", got)
		}
	}
}
