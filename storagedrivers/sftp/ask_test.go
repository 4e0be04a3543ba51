package sftp

import (
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestHostKey: the key that the host presents is the one that its administrator reads there, and
// asking for it needs no login.
func TestHostKey(t *testing.T) {
	t.Parallel()
	server := servers.OpenSSH(t)
	t.Run("presented", func(t *testing.T) {
		t.Parallel()
		got, err := (&Config{Address: server.Address}).HostKey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want, err := parsePublicKey(server.HostKey)
		if err != nil {
			t.Fatal(err)
		}
		if key, err := parsePublicKey(got.Key); err != nil || ssh.FingerprintSHA256(key) != ssh.FingerprintSHA256(want) {
			t.Errorf("got %q, want %q", got.Key, server.HostKey)
		}
		if got.Fingerprint != ssh.FingerprintSHA256(want) || strings.ContainsAny(got.Key, "\n") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		if _, err := (&Config{Address: "127.0.0.1:1"}).HostKey(t.Context()); err == nil {
			t.Error("no error")
		}
	})
	t.Run("silent host", func(t *testing.T) {
		t.Parallel()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		silent := Config{Address: listener.Addr().String(), Timeout: options.Duration(100 * time.Millisecond)}
		if _, err := silent.HostKey(t.Context()); err == nil {
			t.Error("no error")
		}
	})
}
