package sftp

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pkgsftp "github.com/pkg/sftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// stuck is a session's channel whose server hangs at some request for ever.
type stuck struct {
	io.ReadWriteCloser
	at  func(packet []byte) bool
	end <-chan struct{}
}

func (s *stuck) Read(p []byte) (int, error) {
	n, err := s.ReadWriteCloser.Read(p)
	if n > 0 && s.at(p[:n]) {
		<-s.end
	}
	return n, err
}

// TestStuckFileServer: if the file server of a host hangs, for instance on a dead disk, while SSH
// itself works, no caller is blocked, and the next operation uses a new connection.
func TestStuckFileServer(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second
	for name, at := range map[string]func(p []byte) bool{
		"opening": func(p []byte) bool { return p[0] == 3 && bytes.Contains(p, []byte(tempSuffix)) },
		"writing": func(p []byte) bool { return p[0] == 6 },
		"reading": func(p []byte) bool { return p[0] == 5 },
		"closing": func(p []byte) bool { return p[0] == 4 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, end := t.TempDir(), make(chan struct{})
			if err := os.WriteFile(filepath.Join(root, "object"), []byte("content"), 0o600); err != nil {
				t.Fatal(err)
			}
			var armed atomic.Bool
			s := startServerOf(t, func(channel io.ReadWriteCloser) error {
				s, err := pkgsftp.NewServer(&stuck{channel, func(p []byte) bool {
					return at(p) && armed.CompareAndSwap(true, false)
				}, end}, pkgsftp.WithServerWorkingDirectory(root))
				if err != nil {
					return err
				}
				return s.Serve()
			})
			t.Cleanup(func() { close(end) }) // before the server ends
			h := &host{folder: root, config: Config{
				Address: s.address, User: testUser, Password: testPassword, HostKeys: s.hostKeys, Root: ".",
				Connections: 1, Timeout: options.Duration(timeout),
			}}
			d := h.driver(t, ".")
			t.Cleanup(func() { is(t, d.Close(), nil) })
			is(t, d.Check(t.Context()), nil)
			armed.Store(true)
			within(t, 3*timeout, "the operation", func() {
				var err error
				if name == "reading" {
					var body io.ReadCloser
					if body, _, err = d.Open(t.Context(), "object", all); err == nil {
						_, err = io.ReadAll(body)
						is(t, body.Close(), nil)
					}
				} else {
					_, err = d.Put(t.Context(), "new", strings.NewReader("new"), create)
				}
				is(t, err, storagedrivers.ErrUnavailable)
			})
			has(t, d, "object", []byte("content"))
		})
	}
}
